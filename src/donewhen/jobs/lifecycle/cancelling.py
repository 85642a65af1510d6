"""What it means for other jobs that a job is cancelled, said before a person decides it."""

from __future__ import annotations

from collections.abc import Iterator

from donewhen.foundation.plain_text import join_limited
from donewhen.jobs.board.survey import JobRecord, survey_jobs
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of

_MAX_LISTED = 6


def effects_of_cancelling(workspace: Workspace, job: Job) -> tuple[str, ...]:
    """The effects as sentences; none if the job is not done and no other job depends on it."""
    return tuple(_effects(workspace, job))


def _effects(workspace: Workspace, job: Job) -> Iterator[str]:
    if history_of(job.id, workspace.ledger.read(job.id).entries, approval_policy(workspace)).done:
        yield f"{job.id} is done. Its promise, and that of the project, no longer hold once it is cancelled."
    dependent = dependent_jobs(survey_jobs(workspace).jobs, job.id)
    done = [record.id for record in dependent if record.recorded == "done"]
    open_jobs = [record.id for record in dependent if record.recorded not in ("done", "cancelled")]
    if done:
        yield f"Done jobs that build on it are no longer valid: {join_limited(done, _MAX_LISTED)}."
    if open_jobs:
        yield f"Open jobs that build on it can't be completed: {join_limited(open_jobs, _MAX_LISTED)}."
    if dependent:
        yield "Remove it from their depends_on and agree again, or keep it."


def dependent_jobs(jobs: tuple[JobRecord, ...], name: str) -> tuple[JobRecord, ...]:
    """The jobs that depend on a job, directly or through others, in the order of the board."""
    affected = {name}
    while more := {job.id for job in jobs if job.id not in affected and affected.intersection(job.depends_on)}:
        affected |= more
    return tuple(job for job in jobs if job.id in affected - {name})
