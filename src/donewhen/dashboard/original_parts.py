"""The parts of ``dashboard.json`` that readers of the original tool need. All of them follow from the rows.

So the same rows always give the same bytes: ``generated_at`` is the time of the newest event, not of the writing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from donewhen.dashboard.data import EventRow, JobRow, ProjectRow

_STARTED = frozenset({"in_progress", "blocked", "done"})
TOKENS = {"cost_source": "none", "cost_confidence": "none", "billing_mode": "unknown"}
"""donewhen counts no tokens of agents."""


class WorkItemRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job, with the names of the original tool."""

    work_item_id: str
    title: str
    status: str
    wave_id: str
    depends_on: tuple[str, ...]
    reward_target: int
    reward_score: int
    truth_status: str


class StatsRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of workstreams and jobs."""

    workstreams_total: int
    jobs_total: int
    jobs_status: dict[str, int]


def newest_time(events: Iterable[EventRow], jobs: Iterable[JobRow]) -> str:
    """The time of the newest event; without events, of the newest change of a plan."""
    return max((event.at for event in events), default="") or max((job.updated_at for job in jobs), default="")


def number_of_workstreams(jobs: Iterable[JobRow]) -> int:
    """The number of workstreams that have jobs; in the small form, the project stands for one."""
    return len({job.workstream for job in jobs})


def encode_workstreams(project: ProjectRow, jobs: Iterable[JobRow]) -> bytes:
    """The workstreams of these jobs as JSON, in the order of their ids, one job per line."""
    grouped: dict[str, list[JobRow]] = {}
    for job in jobs:
        grouped.setdefault(job.workstream, []).append(job)
    encode = _ENCODER.encode
    return b"[\n%s\n]" % b",\n".join(
        b'{"id": %s, "title": %s, "status": %s, "jobs": [\n%s\n]}'
        % (
            encode(name or project.id),
            encode(rows[0].workstream_title if name else project.title),
            # By the jobs on the dashboard; the plan of the workstream may not say so yet.
            encode(_status_of({job.status for job in rows})),
            b",\n".join([encode(_work_item(job)) for job in rows]),
        )
        for name, rows in sorted(grouped.items())
    )


def _status_of(statuses: set[str]) -> str:
    if statuses <= {"done", "cancelled"}:
        return "done" if "done" in statuses else "cancelled"
    return "in_progress" if statuses & _STARTED else "planned"


def _work_item(job: JobRow) -> WorkItemRow:
    score = job.score or 0
    return WorkItemRow(job.id, job.title, job.status, job.wave, job.depends_on, job.target, score, job.truth)


_ENCODER = msgspec.json.Encoder()
