"""What a run depends on: the files that a job names, or else everything that git tracks; always by content."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

from donewhen.config.state_folder import FOLDER
from donewhen.foundation.canonical import digest, digest_of
from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.foundation.git import git, worktree_root
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import PLAN, Form, Workspace

MISSING = "missing"
_CHUNK = 1 << 18
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
_GENERATED = re.compile(
    r"(?:outputs/(?:rewards\.json|reward-report\.md|truth-report\.json|dashboard\.(?:json|html)|"
    r"\d{4}-\d\d-\d\d-task-tracker\.csv)|logs/(?:execution|events)\.jsonl|"
    r"notes/(?:lessons-index\.json|lessons-learned\.md|github-map\.json))"
)
# What people say about work in reviews; it must not make the evidence stale that they have looked at.
_SAID = ("/reviews.jsonl", "/reviewed.jsonl", "/hypotheses.json")
_SNAPSHOT = re.compile(r"(?:workstreams/[^/]+/)?jobs/[^/]+/artifacts/input-snapshot\.json")
_PLAN: dict[Form, re.Pattern[str]] = {
    "small": re.compile(r"jobs/(?:[^/]+/)?plan\.md"),
    "big": re.compile(r"(?:workstreams/[^/]+/(?:jobs/[^/]+/)?)?plan\.md"),
}


class Manifest(NamedTuple):
    """Files by name, each with the hash of its content."""

    files: Mapping[str, str]
    declared: bool

    @property
    def hash(self) -> str:
        return digest_of(dict(self.files))


class DeclaresFiles(Protocol):
    """What names files by its plan: a job, or what a look at all jobs remembers of one."""

    @property
    def path(self) -> Path: ...
    @property
    def depends_on(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    def line_of(self, field: str) -> int | None: ...


def input_manifest(workspace: Workspace, job: Job) -> Manifest:
    """The inputs of a job as they are now, with what the jobs it depends on have put out."""
    upstream = upstream_manifest(workspace, job).files
    if job.inputs:
        return Manifest({**upstream, **declared_manifest(workspace, job).files}, declared=True)
    tree = {_unicode(name): hash_file(path) for name, path in tracked_tree(workspace)}
    # What the job itself makes is new, so git often does not track it yet. What leads out is the gates' to refuse.
    own: dict[str, str] = {}
    with suppress(ConfigError):
        own = {name: value for name, value in output_manifest(workspace, job).files.items() if value != MISSING}
    return Manifest({**tree, **own, **upstream}, declared=False)


def declared_manifest(workspace: Workspace, job: DeclaresFiles) -> Manifest:
    """The inputs that a job names; none where it names none."""
    return Manifest(_named(workspace, job, "inputs", job.inputs), declared=True)


def upstream_manifest(
    workspace: Workspace, job: DeclaresFiles, find: Callable[[str], DeclaresFiles] | None = None
) -> Manifest:
    """What the jobs that this one depends on have put out; ``find`` gives a job by its id."""
    return Manifest(_hashed(upstream_outputs(workspace, job, find)), declared=True)


def output_manifest(workspace: Workspace, job: DeclaresFiles) -> Manifest:
    """What a job has put out."""
    return Manifest(_named(workspace, job, "outputs", job.outputs), declared=True)


def result_manifest(workspace: Workspace, job: Job) -> Manifest:
    """What a person looks at who signs a job off: its outputs and declared inputs, or all of its inputs without any."""
    named = _named(workspace, job, "outputs", job.outputs) | _named(workspace, job, "inputs", job.inputs)
    return Manifest(named, declared=True) if named else input_manifest(workspace, job)


def locate_path(workspace: Workspace, job: DeclaresFiles, path: str, field: str) -> Path:
    """A path of a plan file on disk: relative to the job, or to the project where it begins with a slash."""
    base = workspace.root if path.startswith("/") else job.path.parent
    parts = PurePosixPath(path.lstrip("/")).parts
    if not parts or ".." in parts or "\0" in path:
        line = job.line_of(field)
        raise ConfigError(
            f"The path {path!r} in {field} leads out of the job.",
            where=f"{workspace.where(job.path)}:{line}" if line else workspace.where(job.path),
            next_step="Paths are relative to the job's folder, or to the project's with a slash in front.",
        )
    full = base.joinpath(*parts)
    _refuse_link_out(workspace, job, full, path, field)
    return full


def _refuse_link_out(workspace: Workspace, job: DeclaresFiles, full: Path, path: str, field: str) -> None:
    if not Path(os.path.realpath(full)).is_relative_to(os.path.realpath(workspace.root)):
        raise ConfigError(
            f"The path {path!r} in {field} is a link out of the project.", where=workspace.where(job.path)
        )


def expand_path(workspace: Workspace, job: DeclaresFiles, path: str, field: str) -> Iterator[tuple[str, Path]]:
    """The files that a path stands for: itself, what is in a folder, or what a pattern matches."""
    full = locate_path(workspace, job, path, field)
    found: Iterable[Path] = [full]
    if full.is_dir():
        found = walk_files(full)
    elif any(character in path for character in "*?[") and not os.path.lexists(full):
        found = _matching(workspace, job, path, field) or [full]
    for one in found:
        _refuse_link_out(workspace, job, one, path, field)
        if not is_generated(workspace, one):
            yield workspace.where(one), one


def _matching(workspace: Workspace, job: DeclaresFiles, path: str, field: str) -> list[Path]:
    base = workspace.root if path.startswith("/") else job.path.parent
    try:
        return sorted(one for one in base.glob(path.lstrip("/")) if one.is_file())
    except ValueError as error:
        raise ConfigError(
            f"The pattern {path!r} in {field} can't be used: {error}.", where=workspace.where(job.path)
        ) from error


def upstream_outputs(
    workspace: Workspace, job: DeclaresFiles, find: Callable[[str], DeclaresFiles] | None = None
) -> Iterator[tuple[str, Path]]:
    """The outputs of the jobs that this one depends on; one that can't be read has none, which is a change."""
    for name in job.depends_on:
        with suppress(DonewhenError):
            upstream = (find or workspace.job)(name)
            for output in upstream.outputs:
                yield from expand_path(workspace, upstream, output, "outputs")


def tracked_tree(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Everything that git tracks around the project, or without git everything in it, minus what donewhen writes.

    Where git does not answer, or tracks nothing of the project, everything in it counts too: rather that than nothing.
    """
    top = worktree_root(workspace.root)
    names: list[str] = []
    inside = ""
    if top is not None and workspace.root.is_relative_to(top):
        listed = git(top, "ls-files", "-z", "--recurse-submodules") or b""
        names = [os.fsdecode(one) for one in listed.split(b"\0") if one]
        inside = "" if top == workspace.root else f"{workspace.root.relative_to(top).as_posix()}/"
    if top is None or not any(one.startswith(inside) for one in names):
        top, inside = workspace.root, ""
        names = [workspace.where(path) for path in walk_files(workspace.root)]
    for name in names:
        # By their names, because there are thousands of them, and most are nobody's input.
        own = name.startswith(inside) and _is_generated(workspace.form, name.removeprefix(inside))
        own = own or (name.endswith(_SAID) and _is_said(workspace, inside, name))
        if not own and name.rpartition("/")[2] != ".gitkeep":
            yield name, f"{top}/{name}"


def _is_said(workspace: Workspace, inside: str, name: str) -> bool:
    """Whether a file is one of a mission of the project, in which people's words are kept."""
    # Settings are looked at for such a file only: what git tracks is no question of theirs.
    return PurePosixPath(name).parent.parent == PurePosixPath(f"{inside}{workspace.settings().judge.missions}")


def is_generated(workspace: Workspace, path: Path) -> bool:
    """Whether donewhen itself writes this file, so that it says nothing about the work.

    Plan files are among them: what in them is agreed is sealed, and the rest is for reading.
    """
    name = workspace.where(path)
    return not name.startswith("/") and _is_generated(workspace.form, name)


def _is_generated(form: Form, name: str) -> bool:
    project = "jobs/" if form == "small" else ""
    if name.startswith(f"{FOLDER}/") or is_plan(form, name):
        return True
    return name.startswith(project) and (
        _SNAPSHOT.fullmatch(name) is not None or _GENERATED.fullmatch(name.removeprefix(project)) is not None
    )


def is_plan(form: Form, name: str) -> bool:
    """Whether a file of the project is a plan file."""
    return name.endswith(PLAN) and _PLAN[form].fullmatch(name) is not None


def hash_file(path: Path | str) -> str:
    """The hash of a file's content; a link is what it says, not what it leads to."""
    # Thousands of times for a tree, most of them small: without pathlib, and without a buffer for each.
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return digest(b"link " + os.fsencode(os.readlink(path)))  # noqa: PTH115
        if not stat.S_ISREG(mode):
            # Not opened: a pipe would be waited for.
            return "folder" if stat.S_ISDIR(mode) else "special"
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            found = hashlib.sha256()
            while chunk := file.read(_CHUNK):
                found.update(chunk)
            return f"sha256:{found.hexdigest()}"
    except OSError:
        return MISSING


def _named(workspace: Workspace, job: DeclaresFiles, field: str, paths: Iterable[str]) -> dict[str, str]:
    return _hashed(pair for path in paths for pair in expand_path(workspace, job, path, field))


def _hashed(found: Iterable[tuple[str, Path]]) -> dict[str, str]:
    return {_unicode(name): _hash_behind(path) for name, path in found}


def _hash_behind(path: Path) -> str:
    """The hash of a file's content; of a link, what it says and what it leads to."""
    if not path.is_symlink():
        return hash_file(path)
    return digest_of([hash_file(path), hash_file(Path(os.path.realpath(path)))])


def _unicode(name: str) -> str:
    """A file's name in a form that can be written down, also where it is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def walk_files(above: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(above):
        files += [one for one in folders if os.path.islink(os.path.join(folder, one))]  # noqa: PTH114, PTH118
        folders[:] = sorted(
            one
            for one in folders
            if one not in _SKIPPED_FOLDERS
            and not one.startswith(".")
            and not os.path.lexists(os.path.join(folder, one, "pyvenv.cfg"))  # noqa: PTH118
        )
        yield from (Path(folder, file) for file in sorted(files) if not file.endswith((".pyc", ".gitkeep")))
