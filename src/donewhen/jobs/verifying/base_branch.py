"""The base commit, which has the contract, the commit that is judged, and the repository of both."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.git import CommittedFile, git, worktree_root
from donewhen.foundation.git_objects import ObjectReader
from donewhen.jobs.evidence.tree_diff import git_blob_hash, resolve_commit
from donewhen.jobs.plan.workspace import PLAN, Form, Workspace

_REF_FOLDERS = ("refs", "refs/tags", "refs/heads", "refs/remotes")


class BaseError(DonewhenError):
    """The base branch can't be read."""

    code = "base"
    exit_code = ExitCode.USAGE


class Base(NamedTuple):
    """The commit that has the contract, the commit that is judged by it, and the repository of both."""

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
    head: str
    """The commit that is judged."""
    work: Mapping[str, CommittedFile]
    """The files of ``head``. Nothing else of the checkout is judged."""
    repositories: Mapping[str, Path]
    """The repositories of checked-out submodules, by folder with a trailing slash."""
    unreadable: tuple[str, ...]
    """Submodules of ``head`` that are not checked out or lack its commit."""
    working: Mapping[str, str]
    """Files of ``work`` that are in no commit, with the hashes that git gives them; empty if a commit is judged."""

    @property
    def form(self) -> Form:
        return "small" if f"{self.inside}jobs/{PLAN}" in self.files else "big"

    def content(self, name: str) -> bytes | None:
        """The content of a file on the base, by its name in the repository."""
        return self.content_of(self.files.get(name))

    def content_before(self, name: str) -> bytes | None:
        """The content of a file at the fork point."""
        return self.content_of(self.forked.get(name))

    def content_of_work(self, name: str) -> bytes | None:
        """The content of a file in the judged commit."""
        return self.content_of(self.work.get(name))

    def content_of(self, file: CommittedFile | None) -> bytes | None:
        """The content of a file of any of the commits."""
        return None if file is None else next(self.contents([file]), None)

    @property
    def is_behind(self) -> bool:
        """Whether the branch lacks commits of the base."""
        return self.fork != self.commit

    def contents(self, files: Sequence[CommittedFile]) -> Iterator[bytes]:
        """Yield the contents of some files, in this order, each as its name in the commit says it is.

        Raise GitError if git can't read one.
        """
        for top, group in groupby(files, key=self._repository):
            if top is None:
                yield from (self._working_content(file) for file in group)
                continue
            with ObjectReader(top) as reader:
                yield from reader.contents([file.blob for file in group])

    def _repository(self, file: CommittedFile) -> Path | None:
        """The repository that has a file; None if it is in no commit."""
        if self.working.get(file.name) == file.blob:
            return None
        above = [folder for folder in self.repositories if file.name.startswith(folder)]
        return self.repositories[max(above, key=len)] if above else self.top

    def _working_content(self, file: CommittedFile) -> bytes:
        content = read_unfollowed(self.top / file.name)
        if content is None or git_blob_hash(content, file.blob) != file.blob:
            raise BaseError(
                f"{file.name} was changed while it was read.", where=str(self.top), next_step="Check again."
            )
        return content


def read_unfollowed(path: Path) -> bytes | None:
    """The content of a file, or where a link leads, which is what git keeps of it; None if it is neither."""
    try:
        return os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()  # noqa: PTH115
    except OSError:
        return None


def base_of(workspace: Workspace, ref: str, commit: str = "HEAD") -> Base:
    """Resolve the base and the commit that is judged."""
    top = worktree_root(workspace.root)
    if top is None or not workspace.root.is_relative_to(top):
        raise BaseError(
            "The project is not in a git repository, so there is no base branch to compare with.",
            where=str(workspace.root),
        )
    on_base, head = _resolve(top, ref, "--base"), _resolve(top, commit, "--commit")
    inside = "" if top == workspace.root else f"{workspace.root.relative_to(top).as_posix()}/"
    repositories: dict[str, Path] = {}
    unreadable: list[str] = []
    files = _files(top, on_base, "", repositories, [])
    work = _files(top, head, "", repositories, unreadable)
    fork = (git(top, "merge-base", on_base, head) or b"").decode("ascii", "replace").strip()
    forked = _files(top, fork, "", repositories, []) if fork not in ("", on_base) else files
    return Base(ref, on_base, top, inside, files, fork, forked, head, work, repositories, tuple(unreadable), {})


def _resolve(top: Path, ref: str, option: str) -> str:
    """The commit that a name stands for. A name that stands for several is an error."""
    commit = resolve_commit(top, ref)
    if commit is None and ref == "HEAD":
        raise BaseError("This branch has no commit yet, and only commits are verified.", next_step="git commit")
    if commit is None:
        raise BaseError(
            f"There is no commit {ref!r} here.",
            next_step=f"Fetch it first: git fetch origin {ref.removeprefix('origin/')}; in CI, check out the whole "
            "history (fetch-depth: 0).",
        )
    named = (resolve_commit(top, f"{kind}/{ref}") for kind in _REF_FOLDERS)
    commits = {found for found in named if found is not None}
    # git prefers a file of this name in its own folder (as for HEAD) to every branch and tag.
    if len(commits) > 1 or (commits and commit not in commits):
        raise BaseError(
            f"{ref!r} is ambiguous: several branches, tags, remote branches or files of git have this name.",
            next_step=f"Use the full name: {option} refs/remotes/{ref}",
        )
    return commit


def _files(
    top: Path, commit: str, above: str, repositories: dict[str, Path], unreadable: list[str]
) -> dict[str, CommittedFile]:
    """The files of a commit and of its submodules, except names that can't be written to a folder safely."""
    with ObjectReader(top) as reader:
        listed, submodules = reader.files(commit)
    files = {f"{above}{name}": CommittedFile(f"{above}{name}", *file) for name, file in listed.items()}
    for name, pointer in submodules.items():
        if not _is_safe(name):
            continue
        folder = top / name
        if (folder / ".git").exists() and resolve_commit(folder, pointer) is not None:
            repositories[f"{above}{name}/"] = folder
            files |= _files(folder, pointer, f"{above}{name}/", repositories, unreadable)
        else:
            unreadable.append(f"{above}{name}")
    return {name: file for name, file in files.items() if _is_safe(name)}


def _is_safe(name: str) -> bool:
    """Whether a name stays in its folder and out of ``.git``. A commit made by hand can contain any name."""
    return not any(part.casefold() in ("", ".", "..", ".git") for part in name.split("/"))


def is_shallow(base: Base) -> bool:
    """Whether the repository is a shallow clone."""
    return git(base.top, "rev-parse", "--is-shallow-repository") == b"true\n"
