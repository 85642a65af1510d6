"""The jobs on disk: where they are, one reader and one writer for each, and nobody in each other's way.

Two forms are one model. A single repository has ``jobs/plan.md`` and ``jobs/WI-…/plan.md`` beside its code; a project
with workstreams has ``plan.md`` and ``workstreams/WS-…/jobs/WI-…/plan.md`` in a folder of its own.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from donewhen.config.loader import load
from donewhen.config.settings import Settings
from donewhen.config.state_folder import FOLDER, prepare_state_folder
from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.errors import DonewhenError, ExitCode, UsageError
from donewhen.foundation.files import read_regular, write_atomically
from donewhen.foundation.locks import locked
from donewhen.jobs.ledger.ledger import Ledger
from donewhen.jobs.plan.document import Document, parse_document, rewrite_fields
from donewhen.jobs.plan.frontmatter import DocumentError, Value
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.job import Job, Project, read_job, read_project

PLAN = "plan.md"
_TEMPORARY = ".donewhen-"

Form = Literal["small", "big"]


class WorkspaceError(DonewhenError):
    """There are no jobs here, or not the one that is meant."""

    code = "workspace"
    exit_code = ExitCode.USAGE


class JobPlace(NamedTuple):
    """A job's plan file, found by its folder; nothing has been read yet."""

    id: str
    path: Path


@dataclass(frozen=True)
class Workspace:
    """A project and its jobs."""

    root: Path
    form: Form
    clock: Clock = field(default=SYSTEM_CLOCK, compare=False)

    @property
    def project_file(self) -> Path:
        return self.root / "jobs" / PLAN if self.form == "small" else self.root / PLAN

    @property
    def base(self) -> Path:
        """Where the project's own outputs, notes and logs stand."""
        return self.project_file.parent

    @property
    def folder(self) -> Path:
        """``.donewhen/``; it need not exist."""
        return self.root / FOLDER

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger", self.folder / "state" / "locks", clock=self.clock)

    def settings(self) -> Settings:
        """The settings that hold here: the gate's own configuration."""
        return load(self.root)

    def now(self) -> str:
        """This moment, as the files write it."""
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def where(self, path: Path) -> str:
        """A file's name for people: relative to the project."""
        # Thousands of times in a survey, so without pathlib's own way.
        return str(path).removeprefix(f"{self.root}/")

    def places(self) -> Iterator[JobPlace]:
        """Every folder that is, or should be, a job, in the order of their names."""
        for folder, name in self.names():
            identifier = id_in(name)
            path = Path(f"{folder}/{name}/{PLAN}")
            if identifier is not None or path.is_file():
                yield JobPlace(identifier or name, path)

    def names(self) -> Iterator[tuple[Path, str]]:
        """Every folder that could be a job: the folder above it, and its name. Nothing in it is looked at."""
        for folder in self.job_folders():
            for entry in _folders(folder):
                yield folder, entry.name

    def job_folders(self) -> Iterator[Path]:
        """The folders in which jobs stand."""
        if self.form == "small":
            yield self.root / "jobs"
            return
        for workstream in self.workstream_folders():
            yield workstream / "jobs"

    def workstream_folders(self) -> Iterator[Path]:
        """The folders of the workstreams; there are none in the small form."""
        above = self.root / "workstreams"
        for entry in _folders(above):
            yield above / entry.name

    def place(self, name: str) -> JobPlace:
        """The job with this id, or the one job whose id or folder ends with what was typed."""
        return _chosen(name, self._named(name), self)

    def read(self, path: Path) -> Document:
        """A plan file, read now. A link is not followed: what it says could change outside of the project."""
        return parse_document(self._bytes(path), self.where(path))

    def job(self, name: str) -> Job:
        """One job, read now."""
        return self.job_at(self.place(name).path)

    def job_at(self, path: Path) -> Job:
        """The job in this plan file, read now."""
        job = read_job(self.read(path), path, self.where(path))
        stated = id_in(path.parent.name)
        if stated is not None and stated != job.id:
            raise WorkspaceError(
                f"The folder says {stated}, but the plan file says {job.id}.",
                where=f"{self.where(path)}:{job.document.line_of('work_item_id') or 1}",
                next_step="Give both the same id.",
            )
        return job

    def project(self) -> Project:
        """The project, read now."""
        return read_project(self.read(self.project_file), self.project_file, self.where(self.project_file))

    def prepare(self) -> None:
        """Make ``.donewhen/`` where it is not there yet."""
        prepare_state_folder(self.root)

    @contextmanager
    def locked(self, path: Path) -> Iterator[None]:
        """Nobody else writes to this plan file or its chain meanwhile. Whoever needs two takes the project's first."""
        name = "project" if path == self.project_file else id_in(path.parent.name) or path.parent.name
        self.prepare()
        with locked(self.folder / "state" / "locks" / f"{name}.lock"):
            yield

    def write(self, document: Document, path: Path, changes: Mapping[str, Value]) -> Document:
        """Change fields of a plan file, as it was read under the lock that the caller holds."""
        sweep(path.parent)
        try:
            raw = rewrite_fields(document, changes)
        except DocumentError as error:
            raise DocumentError(
                error.message, where=f"{self.where(path)} {error.where or ''}".strip(), next_step=error.next_step
            ) from error
        if raw == document.raw:
            return document
        write_atomically(path, raw)
        return parse_document(raw, self.where(path))

    def put(self, path: Path, data: bytes) -> None:
        """Replace a file that donewhen writes. A link is not written through: a branch can bring one with it."""
        if path.is_symlink() or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root)):
            raise WorkspaceError(
                "It is a link, or a link leads out of the project here, so nothing was written.",
                where=self.where(path),
                next_step="Remove the link.",
            )
        write_atomically(path, data)

    def _named(self, name: str) -> list[JobPlace]:
        names = list(self.names())
        # The whole id is the usual case; only what looks like it is looked at closely.
        near = [(folder, one) for folder, one in names if one.startswith(name)]
        exact = [place for place in _job_places(near) if name in (place.id, place.path.parent.name)]
        if exact:
            return exact
        places = _job_places(names)
        ending = [
            place for place in places if place.id.endswith(f"-{name}") or place.path.parent.name.endswith(f"-{name}")
        ]
        return ending or [place for place in self.places() if place.id == name]

    def _bytes(self, path: Path) -> bytes:
        where = self.where(path)
        try:
            return read_regular(path)
        except FileNotFoundError:
            raise DocumentError("The plan file is missing.", where=where, next_step="Restore it.") from None
        except IsADirectoryError:
            raise DocumentError("The plan file is a folder.", where=where) from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise DocumentError("The plan file is a link, and links are not followed.", where=where) from None
            raise DocumentError(f"The plan file can't be read: {error.strerror}.", where=where) from error


def find_workspace(start: Path, *, clock: Clock = SYSTEM_CLOCK) -> Workspace:
    """The jobs that belong to ``start``: in this folder, or in the nearest one above."""
    first = Path(os.path.realpath(start))
    for folder in (first, *first.parents):
        form = _form_of(folder)
        if form is not None:
            return Workspace(folder, form, clock)
        inside = sorted(path.parent for path in folder.glob(f"PJ-*/{PLAN}"))
        if len(inside) == 1:
            return Workspace(inside[0], "big", clock)
        if inside:
            names = ", ".join(path.name for path in inside[:5])
            raise WorkspaceError(
                f"There are {len(inside)} projects here: {names}.",
                where=str(folder),
                next_step="Name one with --project.",
            )
        if (folder / ".git").exists():
            break
    raise WorkspaceError(
        "There are no jobs in this folder, nor in one above.", where=str(first), next_step="Begin with: donewhen init"
    )


def _form_of(folder: Path) -> Form | None:
    if (folder / "jobs" / PLAN).is_file():
        return "small"
    if (folder / PLAN).is_file() and (id_in(folder.name) or "").startswith("PJ-"):
        return "big"
    return "big" if (folder / PLAN).is_file() and (folder / "workstreams").is_dir() else None


def _job_places(names: Iterable[tuple[Path, str]]) -> list[JobPlace]:
    return [JobPlace(found, folder / one / PLAN) for folder, one in names if (found := id_in(one)) is not None]


def _chosen(name: str, found: list[JobPlace], workspace: Workspace) -> JobPlace:
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"There is no job {name!r}.", where=str(workspace.root), next_step="donewhen status")
    names = ", ".join(workspace.where(one.path.parent) for one in found[:5])
    raise UsageError(f"{name!r} could be {len(found)} jobs: {names}.", next_step="Give the whole id.")


def _folders(above: Path) -> list[os.DirEntry[str]]:
    """The folders in a folder, sorted; links and hidden ones are left out."""
    try:
        with os.scandir(above) as entries:
            found = [
                entry for entry in entries if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=lambda one: one.name)


def sweep(folder: Path) -> None:
    """Remove what a writer that was killed has left behind; whoever holds the lock is the only writer."""
    for path in folder.glob(f"{_TEMPORARY}*.tmp"):
        path.unlink(missing_ok=True)
