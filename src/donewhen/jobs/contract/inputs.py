"""The files that a run depends on, by content hash: those that a job names, or else everything that git tracks."""

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
from donewhen.foundation.files import read_regular
from donewhen.foundation.git import tracked_files
from donewhen.foundation.size_limits import CHECKED_FILE
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.snapshot import Snapshot
from donewhen.jobs.plan.workspace import PLAN, Form, Key, Workspace

MISSING = "missing"
_CHUNK = 1 << 18
_NO_CONTENT = (".pyc", ".gitkeep")
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
_GENERATED = re.compile(
    r"(?:outputs/(?:rewards\.json|reward-report\.md|truth-report\.json|dashboard\.(?:json|html)|"
    r"\d{4}-\d\d-\d\d-task-tracker\.csv)|logs/(?:execution|events)\.jsonl|"
    r"notes/(?:lessons-index\.json|lessons-learned\.md|github-map\.json)|(?:outputs|logs|notes)/\.gitignore)"
)
# Written by reviews of the work; must not make the reviewed evidence stale.
_REVIEW_FILES = ("/reviews.jsonl", "/reviewed.jsonl", "/hypotheses.json")
_SNAPSHOT = re.compile(r"(?:workstreams/[^/]+/)?jobs/[^/]+/artifacts/input-snapshot\.json")
_PLAN: dict[Form, re.Pattern[str]] = {
    "small": re.compile(r"jobs/(?:[^/]+/)?plan\.md"),
    "big": re.compile(r"(?:workstreams/[^/]+/(?:jobs/[^/]+/)?)?plan\.md"),
}


class Manifest(NamedTuple):
    """File names, each with the hash of its content."""

    files: Mapping[str, str]
    declared: bool

    @property
    def hash(self) -> str:
        return digest_of(dict(self.files))


class DeclaresFiles(Protocol):
    """Something that names files: a job, or the summary of a job in a survey."""

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
    """The current inputs of a job, and the outputs of the jobs that it depends on."""
    return workspace.once(_manifest_key(job), lambda: _input_manifest(workspace, job, workspace.content_hashes()))


def input_manifest_now(workspace: Workspace, job: Job) -> Manifest:
    """The inputs as they are now, also for a snapshot, which has these from then on."""
    manifest = _input_manifest(workspace, job, {})
    if isinstance(workspace, Snapshot):
        workspace.put_computed(_manifest_key(job), manifest)
    return manifest


def _manifest_key(job: Job) -> Key:
    return "inputs", job.path, job.inputs, job.outputs, job.depends_on


def _input_manifest(workspace: Workspace, job: Job, known: Mapping[str, str]) -> Manifest:
    upstream = upstream_manifest(workspace, job).files
    if job.inputs:
        return Manifest({**upstream, **declared_manifest(workspace, job).files}, declared=True)
    tree = {printable_name(name): known.get(path) or hash_file(path) for name, path in tracked_tree(workspace)}
    # The job's own outputs are new and often not tracked by git yet. The gates report paths that leave the project.
    own: dict[str, str] = {}
    with suppress(ConfigError):
        own = {name: value for name, value in output_manifest(workspace, job).files.items() if value != MISSING}
    return Manifest({**tree, **own, **upstream}, declared=False)


def declared_manifest(workspace: Workspace, job: DeclaresFiles) -> Manifest:
    """The inputs that a job names; may be empty."""
    return Manifest(_hash_paths(workspace, job, "inputs", job.inputs), declared=True)


def upstream_manifest(
    workspace: Workspace, job: DeclaresFiles, find: Callable[[str], DeclaresFiles] | None = None
) -> Manifest:
    """The outputs of the jobs that this one depends on; ``find`` returns a job by its id."""
    return Manifest(_hash_files(upstream_outputs(workspace, job, find)), declared=True)


def output_manifest(
    workspace: Workspace, job: DeclaresFiles, hash_of: Callable[[str, Path], str] | None = None
) -> Manifest:
    """The outputs of a job; ``hash_of`` returns the hash of a file, by its name in the project and its path."""
    files = (pair for path in job.outputs for pair in expand_path(workspace, job, path, "outputs"))
    return Manifest(_hash_files(files, hash_of), declared=True)


def result_manifest(workspace: Workspace, job: Job) -> Manifest:
    """The files that a sign-off covers: a job's outputs and declared inputs, or all of its inputs if it has neither."""
    declared = _hash_paths(workspace, job, "outputs", job.outputs) | _hash_paths(workspace, job, "inputs", job.inputs)
    return Manifest(declared, declared=True) if declared else input_manifest(workspace, job)


def locate_path(workspace: Workspace, job: DeclaresFiles, path: str, field: str) -> Path:
    """Resolve a path of a plan file: relative to the job, or to the project if it starts with a slash."""
    base = workspace.root if path.startswith("/") else job.path.parent
    parts = PurePosixPath(path.lstrip("/")).parts
    if not parts or ".." in parts or "\0" in path:
        line = job.line_of(field)
        raise ConfigError(
            f"The path {path!r} in {field} is not inside the job or the project.",
            where=f"{workspace.where(job.path)}:{line}" if line else workspace.where(job.path),
            next_step="Paths are relative to the job's folder, or with a leading slash to the project.",
        )
    full = base.joinpath(*parts)
    _refuse_link_out(workspace, job, full, path, field)
    return full


def _refuse_link_out(workspace: Workspace, job: DeclaresFiles, full: Path, path: str, field: str) -> None:
    if not Path(os.path.realpath(full)).is_relative_to(os.path.realpath(workspace.root)):
        raise ConfigError(
            f"The path {path!r} in {field} leads out of the project through a symlink.", where=workspace.where(job.path)
        )


def expand_path(workspace: Workspace, job: DeclaresFiles, path: str, field: str) -> Iterator[tuple[str, Path]]:
    """The files of a path: the file itself, the files in a folder, or the matches of a pattern."""
    full = locate_path(workspace, job, path, field)
    files: Iterable[Path] = [full]
    if full.is_dir():
        files = walk_files(full)
    elif any(character in path for character in "*?[") and not os.path.lexists(full):
        files = _glob(workspace, job, path, field) or [full]
    for file in files:
        _refuse_link_out(workspace, job, file, path, field)
        if not is_generated(workspace, file):
            yield workspace.where(file), file


def matching_paths(workspace: Workspace, job: DeclaresFiles, path: str, field: str) -> tuple[str, ...]:
    """The files that a path of a plan names, each as such a path: those that a pattern matches, or else itself."""
    if not any(character in path for character in "*?["):
        return (path,)
    try:
        found = [f"/{name}" for name, file in expand_path(workspace, job, path, field) if file.exists()]
    except ConfigError:
        found = []
    return tuple(found) or (path,)


def _glob(workspace: Workspace, job: DeclaresFiles, path: str, field: str) -> list[Path]:
    base = workspace.root if path.startswith("/") else job.path.parent
    try:
        found = sorted(file for file in base.glob(path.lstrip("/")) if file.is_file())
        return [file for file in found if not file.name.endswith(_NO_CONTENT)]
    except ValueError as error:
        raise ConfigError(
            f"The pattern {path!r} in {field} is not valid: {error}.", where=workspace.where(job.path)
        ) from error


def upstream_outputs(
    workspace: Workspace, job: DeclaresFiles, find: Callable[[str], DeclaresFiles] | None = None
) -> Iterator[tuple[str, Path]]:
    """The outputs of the jobs that this one depends on; a job that can't be read has none, which counts as a change."""
    for name in job.depends_on:
        with suppress(DonewhenError):
            upstream = (find or workspace.job_with_id)(name)
            for output in upstream.outputs:
                yield from expand_path(workspace, upstream, output, "outputs")


def tracked_tree(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """All files that git tracks in the repository, except those that donewhen writes.

    Without git, if git fails, or if it tracks no file of the project: all files of the project.
    """
    tracked = tracked_files(workspace.root)
    top, names = (None, []) if tracked is None else tracked
    inside = ""
    if top is not None and top != workspace.root:
        inside = f"{workspace.root.relative_to(top).as_posix()}/"
    if top is None or not any(name.startswith(inside) for name in names):
        top, inside = workspace.root, ""
        names = [workspace.where(path) for path in walk_files(workspace.root)]
    for name in names:
        if not is_own_file(workspace, inside, name):
            yield name, f"{top}/{name}"


def is_own_file(workspace: Workspace, inside: str, name: str) -> bool:
    """Whether a file of the repository is none of the work: donewhen writes it, reviews do, or it only keeps a folder.

    ``inside`` is the project's folder in the repository, with a trailing slash.
    """
    # By name only: there are thousands of files, and most of them are not generated.
    own = name.startswith(inside) and is_generated_name(workspace.form, name.removeprefix(inside))
    own = own or (name.endswith(_REVIEW_FILES) and _is_review_file(workspace, inside, name))
    return own or name.rpartition("/")[2] == ".gitkeep"


def _is_review_file(workspace: Workspace, inside: str, name: str) -> bool:
    """Whether a file belongs to a mission of the project, where reviews are stored."""
    # Settings are read only for such a file: other files don't depend on them.
    return PurePosixPath(name).parent.parent == PurePosixPath(f"{inside}{workspace.settings().judge.missions}")


def is_generated(workspace: Workspace, path: Path) -> bool:
    """Whether donewhen itself writes this file, so that it is not part of the work.

    This includes plan files: their agreed terms are sealed, and the rest is informational.
    """
    name = workspace.where(path)
    return not name.startswith("/") and is_generated_name(workspace.form, name)


def is_generated_name(form: Form, name: str) -> bool:
    """Whether donewhen itself writes the file with this name in the project."""
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
    """The hash of a file's content; for a symlink, of its target path."""
    # Called for thousands of mostly small files: without pathlib and without buffering.
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return digest(b"link " + os.fsencode(os.readlink(path)))  # noqa: PTH115
        if not stat.S_ISREG(mode):
            # Not opened: opening a pipe would block.
            return "folder" if stat.S_ISDIR(mode) else "special"
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            content_hash = hashlib.sha256()
            while chunk := file.read(_CHUNK):
                content_hash.update(chunk)
            return f"sha256:{content_hash.hexdigest()}"
    except OSError:
        return MISSING


def has_content(path: Path, content_hash: str | None) -> bool:
    """Whether a file has the content with this hash, or differs from it only in its line ends: git changes these when
    it checks a text file out."""
    now = hash_file(path)
    if now == content_hash or content_hash is None or not now.startswith("sha256:"):
        return now == content_hash
    try:
        content = read_regular(path, CHECKED_FILE)
    except OSError:
        return False
    unix = content.replace(b"\r\n", b"\n")
    spellings = (unix, unix.replace(b"\n", b"\r\n")) if b"\0" not in content else ()
    return any(f"sha256:{hashlib.sha256(text).hexdigest()}" == content_hash for text in spellings)


def _hash_paths(workspace: Workspace, job: DeclaresFiles, field: str, paths: Iterable[str]) -> dict[str, str]:
    return _hash_files(pair for path in paths for pair in expand_path(workspace, job, path, field))


def _hash_files(files: Iterable[tuple[str, Path]], hash_of: Callable[[str, Path], str] | None = None) -> dict[str, str]:
    if hash_of is not None:
        return {printable_name(name): hash_of(name, path) for name, path in files}
    return {printable_name(name): hash_with_target(path) for name, path in files}


def hash_with_target(path: Path) -> str:
    """The hash of a file's content; for a symlink, of its target path and of the target's content."""
    if not path.is_symlink():
        return hash_file(path)
    return digest_of([hash_file(path), hash_file(Path(os.path.realpath(path)))])


def printable_name(name: str) -> str:
    """A file's name as valid Unicode, also if it is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def walk_files(parent: Path) -> Iterator[Path]:
    """The files below a folder; hidden folders, caches and virtual environments are skipped."""
    for folder, folders, files in os.walk(parent):
        files += [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED_FOLDERS
            and not name.startswith(".")
            and not os.path.lexists(os.path.join(folder, name, "pyvenv.cfg"))  # noqa: PTH118
        )
        yield from (Path(folder, file) for file in sorted(files) if not file.endswith(_NO_CONTENT))
