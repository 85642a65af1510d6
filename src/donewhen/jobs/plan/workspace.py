"""The jobs on disk: finding, reading, locking and writing plan files.

There are two layouts. A single repository has ``jobs/plan.md`` and ``jobs/WI-…/plan.md`` beside its code; a project
with workstreams has ``plan.md`` and ``workstreams/WS-…/jobs/WI-…/plan.md`` in a folder of its own.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from donewhen.config.loader import load
from donewhen.config.settings import Settings
from donewhen.config.state_folder import FOLDER, prepare_state_folder
from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.errors import DonewhenError, ExitCode, UsageError
from donewhen.foundation.files import read_limited, read_regular, sweep_temporary_files, write_atomically
from donewhen.foundation.locks import locked
from donewhen.foundation.plain_text import join_limited
from donewhen.foundation.size_limits import PLAN_FILE, SizeLimit
from donewhen.jobs.ledger.entries import recorded_status
from donewhen.jobs.ledger.ledger import Ledger, LedgerError
from donewhen.jobs.plan.document import Document, parse_document, rewrite_fields
from donewhen.jobs.plan.frontmatter import DocumentError, Value
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.job import Job, Project, read_job, read_project, with_status

PLAN = "plan.md"
_MAX_LISTED = 5

Form = Literal["small", "big"]
_T = TypeVar("_T")
Key: TypeAlias = tuple[Hashable, ...]
"""What a computed value depends on besides the files that it was computed from; the first item says what it is."""
FROM_SETTINGS = "settings"
"""The first item of the key of a value that was computed from settings files."""


class WorkspaceError(DonewhenError):
    """There are no jobs here, or the requested one was not found."""

    code = "workspace"
    exit_code = ExitCode.USAGE


class JobPlace(NamedTuple):
    """The id and the plan file of a job, by its folder's name; the file has not been read."""

    id: str
    path: Path


@dataclass(frozen=True)
class Workspace:
    """A project and its jobs."""

    root: Path
    form: Form
    clock: Clock = field(default=SYSTEM_CLOCK, compare=False)

    @property
    def live(self) -> Workspace:
        """The workspace as it is on disk now; of a snapshot, the workspace that it was taken of."""
        return self

    @property
    def project_file(self) -> Path:
        return self.root / "jobs" / PLAN if self.form == "small" else self.root / PLAN

    @property
    def base(self) -> Path:
        """The folder of the project's own outputs, notes and logs."""
        return self.project_file.parent

    @property
    def folder(self) -> Path:
        """``.donewhen/``; it may not exist yet."""
        return self.root / FOLDER

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger", self.folder / "state" / "locks", clock=self.clock)

    @property
    def writable(self) -> bool:
        """Whether this process may write here; not on a read-only mount, for example."""
        return os.access(self.folder if self.folder.is_dir() else self.root, os.W_OK)

    def is_parent_plan(self, path: Path) -> bool:
        """Whether a plan file is that of the project or of a workstream, which the branches of all jobs share."""
        return path == self.project_file or path.parent.parent == self.root / "workstreams"

    def settings(self) -> Settings:
        """The settings of this project."""
        return load(self.root)

    def once(self, key: Key, compute: Callable[[], _T]) -> _T:
        """``compute()``; a snapshot computes it once for each key."""
        return compute()

    def read_file(self, path: Path, limit: SizeLimit) -> bytes:
        """The content of a file; a snapshot remembers its hash."""
        return read_limited(path, limit)

    def content_hashes(self) -> Mapping[str, str]:
        """The hashes of files whose content a snapshot has, by path."""
        return {}

    def now(self) -> str:
        """The current time, as written in the files."""
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def where(self, path: Path) -> str:
        """A file's name relative to the project, for messages."""
        # Called thousands of times in a survey; pathlib's own way is slower.
        return str(path).removeprefix(f"{self.root}/")

    def places(self) -> Iterator[JobPlace]:
        """Every folder that is a job, or is named like one, sorted by name."""
        for folder, name in self.names():
            identifier = id_in(name)
            path = Path(f"{folder}/{name}/{PLAN}")
            if path.is_file() if identifier is None else not is_left_over(path):
                yield JobPlace(identifier or name, path)

    def names(self) -> Iterator[tuple[Path, str]]:
        """Every folder that could be a job, as its parent folder and its name; the folder itself is not read."""
        for folder in self.job_folders():
            for entry in _folders(folder):
                yield folder, entry.name

    def job_folders(self) -> Iterator[Path]:
        """The folders that contain jobs."""
        if self.form == "small":
            yield self.root / "jobs"
            return
        for workstream in self.workstream_folders():
            yield workstream / "jobs"

    def workstream_folders(self) -> Iterator[Path]:
        """The folders of the workstreams; none in the small form."""
        parent = self.root / "workstreams"
        for entry in _folders(parent):
            yield parent / entry.name

    def place(self, name: str) -> JobPlace:
        """The job with this id, or the only job whose id or folder name ends with ``name``."""
        return _single_match(name, self._matching_places(name), self)

    def job_with_id(self, identifier: str) -> Job:
        """Read the job with exactly this id, as plans and the ledger name it."""
        return self.job_at(_single_match(identifier, self._places_of(identifier), self).path)

    def read(self, path: Path) -> Document:
        """Read a plan file. Symlinks are refused: their content could change outside of the project."""
        return parse_document(self._read_bytes(path), self.where(path))

    def job(self, name: str) -> Job:
        """Read a job by its id, or by the end of its id or folder name."""
        return self.job_at(self.place(name).path)

    def job_at(self, path: Path) -> Job:
        """Read the job in this plan file."""
        job = read_job(self.read(path), path, self.where(path))
        folder_id = id_in(path.parent.name)
        if folder_id is not None and folder_id != job.id:
            raise WorkspaceError(
                f"The folder has the id {folder_id}, but the plan file has {job.id}.",
                where=f"{self.where(path)}:{job.document.line_of('work_item_id') or 1}",
                next_step="Use the same id in both.",
            )
        return job

    def project(self) -> Project:
        """Read the project. Its status is in the ledger; the plan says one only if there is no record yet."""
        project = read_project(self.read(self.project_file), self.project_file, self.where(self.project_file))
        try:
            recorded = recorded_status(self.ledger.read(project.id).entries)
        except (OSError, LedgerError):
            return project  # whoever reads the chain reports it
        return project if recorded is None else with_status(project, recorded)

    def prepare(self) -> None:
        """Create ``.donewhen/`` if it does not exist."""
        prepare_state_folder(self.root)

    @contextmanager
    def locked(self, path: Path) -> Iterator[None]:
        """Hold the write lock of this plan file and its chain. If you need two, take the project's first."""
        name = "project" if path == self.project_file else id_in(path.parent.name) or path.parent.name
        self.prepare()
        with locked(self.folder / "state" / "locks" / f"{name}.lock"):
            yield

    def rewritten(self, document: Document, path: Path, changes: Mapping[str, Value]) -> bytes:
        """A plan file with other values of these fields."""
        try:
            return rewrite_fields(document, changes)
        except DocumentError as error:
            raise DocumentError(
                error.message, where=f"{self.where(path)} {error.where or ''}".strip(), next_step=error.next_step
            ) from error

    def write(self, document: Document, path: Path, changes: Mapping[str, Value]) -> Document:
        """Change fields of a plan file. The caller holds its lock and has read ``document`` under it."""
        remove_temporary_files(path.parent)
        raw = self.rewritten(document, path, changes)
        return document if raw == document.raw else self.write_plan(path, raw)

    def write_plan(self, path: Path, raw: bytes) -> Document:
        """Replace a plan file. The caller holds its lock (see ``record/writing.py``)."""
        remove_temporary_files(path.parent)
        write_atomically(path, raw)
        return parse_document(raw, self.where(path))

    def put(self, path: Path, data: bytes) -> None:
        """Replace a file that donewhen writes. Symlinks are refused: a branch can contain one."""
        if path.is_symlink() or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root)):
            raise WorkspaceError(
                "The path is a symlink, or leads out of the project through one. Nothing was written.",
                where=self.where(path),
                next_step="Remove the symlink.",
            )
        write_atomically(path, data)

    def _matching_places(self, name: str) -> list[JobPlace]:
        exact = self._places_of(name)
        if exact or id_in(name) == name:
            return exact
        names = list(self.names())
        if any(folder_name == name for _, folder_name in names):
            return [JobPlace(id_in(name) or name, folder / name / PLAN) for folder, other in names if other == name]
        return [
            place
            for place in _job_places(names)
            if place.id.endswith(f"-{name}") or place.path.parent.name.endswith(f"-{name}")
        ]

    def _places_of(self, identifier: str) -> list[JobPlace]:
        """The jobs with exactly this id. An id such as WI-20260214-001 is part of the folder's name; of a folder
        without one, the plan says it."""
        if id_in(identifier) == identifier:
            # Thousands of folders: only those that begin with it are looked at.
            candidates = ((folder, name) for folder, name in self.names() if name.startswith(identifier))
            found = [place for place in _job_places(candidates) if place.id == identifier]
            return [place for place in found if not is_left_over(place.path)]
        found = []
        for folder, name in self.names():
            if id_in(name) is None:
                with suppress(DonewhenError):
                    path = folder / name / PLAN
                    if self.job_at(path).id == identifier:
                        found.append(JobPlace(identifier, path))
        return found

    def _read_bytes(self, path: Path) -> bytes:
        where = self.where(path)
        try:
            return read_regular(path, PLAN_FILE)
        except FileNotFoundError:
            raise DocumentError(
                "The plan file is missing.", where=where, next_step="Restore it from version control."
            ) from None
        except IsADirectoryError:
            raise DocumentError("The plan file is a folder.", where=where) from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise DocumentError("The plan file is a symlink. Symlinks are not followed.", where=where) from None
            raise DocumentError(f"The plan file can't be read: {error.strerror}.", where=where) from error


def find_workspace(start: Path, *, clock: Clock = SYSTEM_CLOCK) -> Workspace:
    """The workspace that ``start`` belongs to: in this folder, or in the nearest parent that has one."""
    first = Path(os.path.realpath(start))
    for folder in (first, *first.parents):
        form = _form_of(folder)
        if form is not None:
            return Workspace(folder, form, clock)
        inside = sorted(path.parent for path in folder.glob(f"PJ-*/{PLAN}"))
        if len(inside) == 1:
            return Workspace(inside[0], "big", clock)
        if inside:
            names = join_limited([path.name for path in inside], _MAX_LISTED)
            raise WorkspaceError(
                f"There are {len(inside)} projects here: {names}.",
                where=str(folder),
                next_step="Name one with --project.",
            )
        if (folder / ".git").exists():
            break
    raise WorkspaceError(
        "There are no jobs in this folder or its parents.",
        where=str(first),
        next_step="Start with: donewhen init --jobs",
    )


def _form_of(folder: Path) -> Form | None:
    if (folder / "jobs" / PLAN).is_file():
        return "small"
    if (folder / PLAN).is_file() and (id_in(folder.name) or "").startswith("PJ-"):
        return "big"
    return "big" if (folder / PLAN).is_file() and (folder / "workstreams").is_dir() else None


def _job_places(names: Iterable[tuple[Path, str]]) -> list[JobPlace]:
    return [
        JobPlace(identifier, folder / name / PLAN) for folder, name in names if (identifier := id_in(name)) is not None
    ]


def is_left_over(plan: Path) -> bool:
    """Whether there is no plan, and the folder has nothing but empty folders: git leaves those of a job behind that is
    on another branch."""
    if os.path.lexists(plan):
        return False
    # A link to a folder is listed among the folders.
    return not any(
        files or any(os.path.islink(f"{parent}/{name}") for name in folders)  # noqa: PTH114
        for parent, folders, files in os.walk(plan.parent)
    )


def _single_match(name: str, places: list[JobPlace], workspace: Workspace) -> JobPlace:
    if len(places) == 1:
        return places[0]
    if not places:
        raise UsageError(f"There is no job {name!r}.", where=str(workspace.root), next_step="donewhen status")
    names = join_limited([workspace.where(place.path.parent) for place in places], _MAX_LISTED)
    raise UsageError(f"{name!r} matches {len(places)} jobs: {names}.", next_step="Give the full id.")


def _folders(parent: Path) -> list[os.DirEntry[str]]:
    """The folders in a folder, sorted by name; symlinks and hidden folders are skipped."""
    try:
        with os.scandir(parent) as entries:
            folders = [
                entry for entry in entries if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(folders, key=lambda entry: entry.name)


def remove_temporary_files(folder: Path) -> None:
    """Remove temporary files that a killed writer left behind. The caller holds the lock."""
    sweep_temporary_files(folder)
