"""What a run depends on: the files that a job names, or else everything that git tracks; always by content."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from donewhen.config.place import FOLDER
from donewhen.foundation.canonical import digest, digest_of
from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.jobs.git import git, toplevel
from donewhen.jobs.job import Job
from donewhen.jobs.workspace import PLAN, Workspace

MISSING = "missing"
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
_GENERATED = re.compile(
    r"(?:outputs/(?:rewards\.json|reward-report\.md|truth-report\.json|dashboard\.(?:json|html)|"
    r"\d{4}-\d\d-\d\d-task-tracker\.csv)|logs/(?:execution|events)\.jsonl|notes/lessons-index\.json)"
)
_SNAPSHOT = "artifacts/input-snapshot.json"
_PLAN = re.compile(r"(?:(?:workstreams/[^/]+/)?jobs/(?:[^/]+/)?|workstreams/[^/]+/|)plan\.md")


class Manifest(NamedTuple):
    """Files by name, each with the hash of its content."""

    files: Mapping[str, str]
    declared: bool

    @property
    def hash(self) -> str:
        return digest_of(dict(self.files))


def manifest(workspace: Workspace, job: Job) -> Manifest:
    """The inputs of a job as they are now, with what the jobs it depends on have put out."""
    upstream = upstream_manifest(workspace, job).files
    if job.inputs:
        return Manifest({**upstream, **declared_manifest(workspace, job).files}, declared=True)
    tree = {name: plain_hash(path) for name, path in tracked_tree(workspace)}
    return Manifest({**tree, **upstream}, declared=False)


def declared_manifest(workspace: Workspace, job: Job) -> Manifest:
    """The inputs that a job names; none where it names none."""
    named = {name: plain_hash(path) for one in job.inputs for name, path in expanded(workspace, job, one)}
    return Manifest(named, declared=True)


def upstream_manifest(workspace: Workspace, job: Job) -> Manifest:
    """What the jobs that this one depends on have put out."""
    return Manifest({name: plain_hash(path) for name, path in upstream_outputs(workspace, job)}, declared=True)


def output_manifest(workspace: Workspace, job: Job) -> Manifest:
    """What a job has put out."""
    named = {name: plain_hash(path) for one in job.outputs for name, path in expanded(workspace, job, one)}
    return Manifest(named, declared=True)


def result_manifest(workspace: Workspace, job: Job) -> Manifest:
    """What a person looks at who signs a job off: its outputs and declared inputs, or all of its inputs without any."""
    named = {
        name: plain_hash(path) for one in (*job.outputs, *job.inputs) for name, path in expanded(workspace, job, one)
    }
    return Manifest(named, declared=True) if named else manifest(workspace, job)


def located(workspace: Workspace, job: Job, path: str, field: str) -> Path:
    """A path of a plan file on disk: relative to the job, or to the project where it begins with a slash."""
    base = workspace.root if path.startswith("/") else job.folder
    parts = PurePosixPath(path.lstrip("/")).parts
    if not parts or ".." in parts or "\0" in path:
        line = job.document.line_of(field)
        raise ConfigError(
            f"The path {path!r} in {field} leads out of the job.",
            where=f"{workspace.where(job.path)}:{line}" if line else workspace.where(job.path),
            next_step="Paths are relative to the job's folder, or to the project's with a slash in front.",
        )
    full = base.joinpath(*parts)
    real = Path(os.path.realpath(full))
    if not real.is_relative_to(os.path.realpath(workspace.root)):
        raise ConfigError(
            f"The path {path!r} in {field} is a link out of the project.", where=workspace.where(job.path)
        )
    return full


def expanded(workspace: Workspace, job: Job, path: str) -> Iterator[tuple[str, Path]]:
    """The files that a path stands for: itself, what is in a folder, or what a pattern matches."""
    if any(character in path for character in "*?["):
        base = workspace.root if path.startswith("/") else job.folder
        located(workspace, job, path, "inputs")
        found = sorted(one for one in base.glob(path.lstrip("/")) if one.is_file() and not one.is_symlink())
        for one in found:
            yield workspace.where(one), one
        if not found:
            yield workspace.where(base / path.lstrip("/")), base / path.lstrip("/")
        return
    full = located(workspace, job, path, "inputs")
    if full.is_dir():
        yield from ((workspace.where(one), one) for one in _walked(full))
    else:
        yield workspace.where(full), full


def upstream_outputs(workspace: Workspace, job: Job) -> Iterator[tuple[str, Path]]:
    """The outputs of the jobs that this one depends on; a dependency that is not a job is nobody's output."""
    for name in job.depends_on:
        with suppress(UsageError):
            upstream = workspace.job(name)
            for output in upstream.outputs:
                yield from expanded(workspace, upstream, output)


def tracked_tree(workspace: Workspace) -> Iterator[tuple[str, Path]]:
    """Everything that git tracks around the project, or without git everything in it, minus what donewhen writes."""
    top = toplevel(workspace.root)
    if top is None:
        for path in _walked(workspace.root):
            if not is_generated(workspace, path):
                yield workspace.where(path), path
        return
    for raw in (git(top, "ls-files", "-z") or b"").split(b"\0"):
        name = os.fsdecode(raw)
        if name and not name.endswith("/.gitkeep") and not is_generated(workspace, top / name):
            yield name, top / name


def is_generated(workspace: Workspace, path: Path) -> bool:
    """Whether donewhen itself writes this file, so that it says nothing about the work.

    Plan files are among them: what in them is agreed is sealed, and the rest is for reading.
    """
    if not path.is_relative_to(workspace.root):
        return False
    name = path.relative_to(workspace.root).as_posix()
    project = "jobs/" if workspace.form == "small" else ""
    if name.startswith(f"{FOLDER}/") or name.endswith(f"/{_SNAPSHOT}"):
        return True
    if path.name == PLAN and _PLAN.fullmatch(name):
        return True
    return name.startswith(project) and _GENERATED.fullmatch(name.removeprefix(project)) is not None


def plain_hash(path: Path) -> str:
    """The hash of a file's content; a link is what it says, not what it leads to."""
    try:
        if path.is_symlink():
            return digest(b"link " + os.fsencode(os.readlink(path)))  # noqa: PTH115
        if path.is_dir():
            return "folder"
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError:
        return MISSING


def _walked(above: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(above):
        folders[:] = sorted(
            one
            for one in folders
            if one not in _SKIPPED_FOLDERS
            and not one.startswith(".")
            and not os.path.lexists(os.path.join(folder, one, "pyvenv.cfg"))  # noqa: PTH118
        )
        yield from (Path(folder, one) for one in sorted(files) if not one.endswith((".pyc", ".gitkeep")))
