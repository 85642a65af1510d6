"""A lesson that is being captured: noted before the ledger, so that a capture that was killed can be finished.

The ledger is written before the lessons file. The note tells a lesson that was never written to the file from one that
somebody removed from it. It decides nothing: only what the ledger has recorded is finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_limited, sweep_temporary_files
from donewhen.foundation.locks import locked
from donewhen.foundation.size_limits import STATE
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import LessonNote
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import Writing, operation, writing


class PendingLesson(msgspec.Struct, frozen=True):
    """A lesson and the jobs whose chains record it."""

    lesson: str
    hash: str
    block: str
    """The text to append to the lessons file."""
    jobs: tuple[str, ...]


def pending_lesson(workspace: Workspace) -> PendingLesson | None:
    """The lesson whose capture has begun; None if there is none, or if the note can't be used."""
    try:
        return msgspec.json.decode(read_limited(_path(workspace), STATE), type=PendingLesson)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError):
        # An unusable note; nothing can be finished with it.
        clear_pending_lesson(workspace)
        return None


def note_pending_lesson(workspace: Workspace, pending: PendingLesson) -> None:
    """Note a lesson before it is recorded; the caller holds the locks."""
    workspace.put(_path(workspace), msgspec.json.encode(pending))


def clear_pending_lesson(workspace: Workspace) -> None:
    """Remove the note, and what a writer left behind that was killed when it made one."""
    with suppress(FileNotFoundError):
        _path(workspace).unlink()
    sweep_temporary_files(_path(workspace).parent)


def jobs_of(workspace: Workspace, pending: PendingLesson) -> list[Job]:
    """The jobs of a pending lesson that still exist and have a chain."""
    jobs = []
    for name in pending.jobs:
        with suppress(DonewhenError):
            jobs.append(workspace.job(name))
    return [job for job in jobs if workspace.ledger.read(job.id).entries]


def capture_entry(entries: Sequence[Entry], pending: PendingLesson) -> Entry | None:
    """The entry that records a lesson in a job's chain."""
    for entry in reversed(entries):
        note = entry.content
        if isinstance(note, LessonNote) and note.how == "captured" and note.lesson == pending.lesson:
            return entry if note.hash == pending.hash else None
    return None


@contextmanager
def capture_locks(workspace: Workspace, jobs: Iterable[Job]) -> Iterator[list[Writing]]:
    """Hold the locks of jobs and of the lessons. A start holds its job's lock when it takes that of the lessons."""
    unique = {job.id: job for job in jobs}
    with operation(workspace), ExitStack() as stack:
        locks = {name: stack.enter_context(writing(workspace, unique[name].path, name)) for name in sorted(unique)}
        stack.enter_context(lessons_lock(workspace))
        yield [locks[name] for name in unique]


@contextmanager
def lessons_lock(workspace: Workspace) -> Iterator[None]:
    """Hold the lock of the lessons file and its index."""
    with locked(workspace.folder / "state" / "locks" / "lessons.lock"):
        yield


def _path(workspace: Workspace) -> Path:
    return workspace.folder / "state" / "pending-lesson.json"
