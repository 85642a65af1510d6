"""The files as a person agreed to them: of a commit, or without git of a list in a store of our own."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.git import GitError, git, repository_root
from donewhen.foundation.git_objects import TreeFile, folders_of
from donewhen.jobs.contract.inputs import is_own_file
from donewhen.jobs.ledger.entry_content import AgreedTree
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.blobs import Blobs, DiskBlobs, GitBlobs, MissingContentError, SeveralBlobs, StoredBlobs
from donewhen.jobs.room.disk_tree import DiskTree

SHA256 = "0" * 64
"""The form of content names where there is no repository."""


@dataclass(frozen=True)
class Place:
    """Where a project lies: the repository around it, or without one the project itself."""

    top: Path
    inside: str
    """The project's folder in the repository, with a trailing slash; empty if it is the repository."""
    has_git: bool

    def is_generated(self, workspace: Workspace, name: str) -> bool:
        """Whether donewhen writes this file, so that it is no part of the work."""
        return is_own_file(workspace, self.inside, name)

    def record_of_others(self, workspace: Workspace, job: Job) -> Callable[[str], bool]:
        """Whether a file or folder belongs to the record: what donewhen writes, and the folders of jobs on which this
        one does not depend. There may be thousands of them."""
        kept = {job.folder.name}
        for name in job.depends_on:
            with suppress(DonewhenError):
                kept.add(workspace.place(name).path.parent.name)
        every = job.path == workspace.project_file

        def is_record(name: str) -> bool:
            if not every and (folder := self._job_folder(workspace, name)) and folder not in kept:
                return True
            return is_own_file(workspace, self.inside, name)

        return is_record

    def _job_folder(self, workspace: Workspace, name: str) -> str:
        """The name of the job's folder that a file or folder lies in, or is; empty if it is in none."""
        parts = name.removeprefix(self.inside).split("/") if name.startswith(self.inside) else []
        if workspace.form == "big":
            parts = parts[2:] if parts[:1] == ["workstreams"] else []
        return parts[1] if len(parts) > 1 and parts[0] == "jobs" and id_in(parts[1]) is not None else ""


@dataclass(frozen=True)
class AgreedFiles:
    """The agreed files by name."""

    place: Place
    files: Mapping[str, TreeFile] = field(repr=False)
    blobs: Blobs = field(repr=False)
    like: str
    """The name of some git object: which algorithm names contents."""
    submodules: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Folders of submodules, with the names of their commits."""
    committed: Mapping[str, TreeFile] = field(default_factory=dict, repr=False)
    """The files as the commit has them, where ``files`` are those of a checkout."""
    converted: Collection[str] = field(default=(), repr=False)
    """Files with another content in a checkout that git converts back without a filter."""

    @property
    def folders(self) -> Collection[str]:
        return folders_of(self.files)


def place_of(workspace: Workspace) -> Place:
    """Where a project lies."""
    top = repository_root(workspace.root)
    # A repository without a commit has no tree that could be agreed to.
    if top is None or git(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
        return Place(workspace.root, "", has_git=False)
    inside = "" if top == workspace.root else f"{workspace.root.relative_to(top).as_posix()}/"
    return Place(top, inside, has_git=True)


@contextmanager
def agreed_files(workspace: Workspace, tree: AgreedTree, job: Job) -> Iterator[AgreedFiles]:
    """The files of an agreement about a job. Contents can be read while the context is open."""
    store = StoredBlobs(tree_store(workspace))
    if tree.commit is None:
        place = Place(workspace.root, "", has_git=False)
        yield AgreedFiles(place, _listed_files(store, tree.list or ""), store, SHA256)
        return
    top = repository_root(workspace.root)
    if top is None:
        raise MissingCommitError(tree.commit, "This is not a git repository any more.")
    inside = "" if top == workspace.root else f"{workspace.root.relative_to(top).as_posix()}/"
    place = Place(top, inside, has_git=True)
    with GitBlobs(top) as outer:
        try:
            files, submodules, repositories = _committed_files(outer, tree.commit)
        except GitError as error:
            raise MissingCommitError(tree.commit, error.message) from error
        is_record = place.record_of_others(workspace, job)
        kept = {name: file for name, file in files.items() if not is_record(name)}
        with GitBlobs(top, repositories) as blobs:
            yield AgreedFiles(place, kept, SeveralBlobs(blobs, store), tree.commit, submodules, kept)


class MissingCommitError(DonewhenError):
    """The agreed commit is not in this clone."""

    code = "commit_missing"

    def __init__(self, commit: str, problem: str, *, submodule: str = "") -> None:
        if submodule:
            message = f"The agreed commit {commit[:12]} of the submodule {submodule} can't be read here. {problem}"
            super().__init__(message, next_step=f"Fetch it: git submodule update --init {shlex.quote(submodule)}")
            return
        super().__init__(
            f"The agreed commit {commit[:12]} can't be read here. {problem}",
            next_step=f"Fetch it: git fetch origin {commit}; or in CI, check out the whole history (fetch-depth: 0)",
        )


def store_files(workspace: Workspace, place: Place, disk: DiskTree, like: str) -> str:
    """Store the files on disk and return the name of their list."""
    store = StoredBlobs(tree_store(workspace))
    names = [(name, file.blob) for name, file in disk.files.items()]
    for content in DiskBlobs(str(place.top)).contents(names):
        store.put(content, like)
    listed = {name: f"{file.mode} {file.blob}" for name, file in disk.files.items()}
    return store.put(canonical_json(listed), SHA256)


def tree_store(workspace: Workspace) -> Path:
    """The folder of contents of our own; local to this machine."""
    return workspace.folder / "state" / "tree"


def _listed_files(store: StoredBlobs, name: str) -> dict[str, TreeFile]:
    content = store.get(name) if name else None
    if content is None:
        raise MissingContentError(
            "The list of the agreed files is not on this machine, or it is damaged.",
            next_step="Agree again here: donewhen agree",
        )
    listed: dict[str, str] = json.loads(content)
    return {path: TreeFile(*value.split(" ", 1)) for path, value in listed.items()}


def _committed_files(
    blobs: GitBlobs, commit: str, above: str = ""
) -> tuple[dict[str, TreeFile], dict[str, str], dict[str, Path]]:
    """The files of a commit and of its submodules that are checked out."""
    reader = blobs.reader()
    found, links = reader.files(commit)
    files = {f"{above}{name}": file for name, file in found.items()}
    submodules = {f"{above}{name}": linked for name, linked in links.items()}
    repositories: dict[str, Path] = {}
    for name, linked in links.items():
        folder = reader.top / name
        if not os.path.lexists(folder / ".git"):
            continue
        repositories[f"{above}{name}"] = folder
        with GitBlobs(folder) as inner:
            try:
                more, deeper, others = _committed_files(inner, linked, f"{above}{name}/")
            except GitError as error:
                raise MissingCommitError(linked, error.message, submodule=f"{above}{name}") from error
        files |= more
        submodules |= deeper
        repositories |= others
    return files, submodules, repositories
