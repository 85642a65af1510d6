"""The base branch: the commit that has the contract, and the repository around the project."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.git import CommittedFile, blob_contents, files_in_commit, git, worktree_root
from donewhen.jobs.evidence.tree_diff import resolve_commit
from donewhen.jobs.plan.workspace import PLAN, Form, Workspace

_REF_FOLDERS = ("refs", "refs/tags", "refs/heads", "refs/remotes")


class BaseError(DonewhenError):
    """The base branch can't be read."""

    code = "base"
    exit_code = ExitCode.USAGE


class Base(NamedTuple):
    """The commit that has the contract, and the repository around the project."""

    ref: str
    commit: str
    top: Path
    inside: str
    """The project's folder in the repository, with a trailing slash; empty if it is the repository itself."""
    files: Mapping[str, CommittedFile]
    fork: str
    """The fork point of the branch; equal to ``commit`` if the branch is up to date, empty if unknown."""
    forked: Mapping[str, CommittedFile]
    """The files at the fork point; those of ``commit`` if it is unknown."""
    repositories: Mapping[str, Path]
    """The repositories of checked-out submodules, by folder with a trailing slash."""

    @property
    def form(self) -> Form:
        return "small" if f"{self.inside}jobs/{PLAN}" in self.files else "big"

    def content(self, name: str) -> bytes | None:
        """The content of a file on the base, by its name in the repository."""
        return self._content(self.files.get(name))

    def content_before(self, name: str) -> bytes | None:
        """The content of a file at the fork point."""
        return self._content(self.forked.get(name))

    @property
    def is_behind(self) -> bool:
        """Whether the branch lacks commits of the base."""
        return self.fork != self.commit

    def contents(self, files: Sequence[CommittedFile]) -> Iterator[bytes]:
        """Yield the contents of some files, in this order; fewer if git can't read one."""
        for top, group in groupby(files, key=lambda file: self._repository(file.name)):
            yield from blob_contents(top, [file.blob for file in group])

    def _content(self, file: CommittedFile | None) -> bytes | None:
        return None if file is None else next(self.contents([file]), None)

    def _repository(self, name: str) -> Path:
        above = [folder for folder in self.repositories if name.startswith(folder)]
        return self.repositories[max(above, key=len)] if above else self.top


def base_of(workspace: Workspace, ref: str) -> Base:
    """Resolve a ref to the base."""
    top = worktree_root(workspace.root)
    if top is None or not workspace.root.is_relative_to(top):
        raise BaseError(
            "The project is not in a git repository, so there is no base branch to compare with.",
            where=str(workspace.root),
        )
    commit = resolve_commit(top, ref)
    if commit is None:
        raise BaseError(
            f"There is no commit {ref!r} here.",
            next_step=f"Fetch it first: git fetch origin {ref.removeprefix('origin/')}; in CI, check out the whole "
            "history (fetch-depth: 0).",
        )
    commits = {git(top, "rev-parse", "--verify", "--quiet", f"{kind}/{ref}^{{commit}}") for kind in _REF_FOLDERS} - {
        None
    }
    if len(commits) > 1:
        raise BaseError(
            f"{ref!r} is ambiguous: several branches, tags or remote branches have this name.",
            next_step=f"Use the full name: --base refs/remotes/{ref}",
        )
    inside = "" if top == workspace.root else f"{workspace.root.relative_to(top).as_posix()}/"
    repositories: dict[str, Path] = {}
    files = _files(top, commit, "", repositories)
    fork = (git(top, "merge-base", commit, "HEAD") or b"").decode("ascii", "replace").strip()
    forked = _files(top, fork, "", repositories) if fork not in ("", commit) else files
    return Base(ref, commit, top, inside, files, fork, forked, repositories)


def _files(top: Path, commit: str, above: str, repositories: dict[str, Path]) -> dict[str, CommittedFile]:
    """The files of a commit and of its submodules; submodules that are not checked out are skipped."""
    files = {f"{above}{file.name}": file._replace(name=f"{above}{file.name}") for file in files_in_commit(top, commit)}
    listed = git(top, "ls-tree", "-r", "-z", "--full-tree", commit) or b""
    for row in listed.split(b"\0"):
        meta, _, raw = row.partition(b"\t")
        if meta.startswith(b"160000 ") and (top / os.fsdecode(raw) / ".git").exists():
            folder = f"{above}{os.fsdecode(raw)}/"
            repositories[folder] = top / os.fsdecode(raw)
            files |= _files(repositories[folder], meta.split()[2].decode(), folder, repositories)
    return files


def is_shallow(base: Base) -> bool:
    """Whether the repository is a shallow clone."""
    return git(base.top, "rev-parse", "--is-shallow-repository") == b"true\n"


def count_untracked(base: Base) -> int:
    """The number of files that git neither tracks nor ignores; they are not part of the work."""
    listed = git(base.top, "ls-files", "-z", "--others", "--exclude-standard") or b""
    return sum(bool(name) for name in listed.split(b"\0"))
