"""Other jobs in progress in the same work tree that may change the same files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.board.views import open_jobs_on_dashboard
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.names import is_pattern


@dataclass(frozen=True)
class Overlap:
    """A job in progress, and what it and another one may both change."""

    job: str
    path: str


def overlapping_jobs(workspace: Workspace, job: Job) -> Iterator[Overlap]:
    """The jobs in progress whose work areas overlap with that of this one. For people: it decides nothing."""
    mine = _area(job)
    for other in open_jobs(workspace, job) if mine else ():
        shared = next((path for path in mine for theirs in _area(other) if _overlap(path, theirs)), None)
        if shared is not None:
            yield Overlap(other.id, shared)


def open_jobs(workspace: Workspace, job: Job) -> Iterator[Job]:
    """The other jobs in progress, as far as the dashboard knows them."""
    for name in sorted(open_jobs_on_dashboard(workspace) - {job.id}):
        with suppress(DonewhenError):
            other = workspace.job_with_id(name)
            if other.status == "in_progress":
                yield other


def _area(job: Job) -> tuple[str, ...]:
    return tuple(path for path in (*(job.work or ()), *job.outputs) if path.startswith("/"))


def _overlap(path: str, other: str) -> bool:
    """Whether two patterns begin with the same folders, as far as they name any."""
    for mine, theirs in zip(path.split("/"), other.split("/"), strict=False):
        if is_pattern(mine) or is_pattern(theirs):
            return True
        if mine != theirs:
            return False
    return True
