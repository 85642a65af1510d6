"""Invalidation: when something changes that done jobs depend on, directly or indirectly, they are no longer done."""

from __future__ import annotations

from typing import NamedTuple

from donewhen.jobs.board.survey import Survey, survey_jobs
from donewhen.jobs.board.validity import ValidityChecker
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.writing import writing


class InvalidatedJob(NamedTuple):
    """A job that is no longer done, and the chain of jobs that caused it."""

    id: str
    chain: tuple[str, ...]
    why: str
    entry: Entry | None = None


def find_invalid_jobs(workspace: Workspace, policy: Policy, survey: Survey) -> tuple[InvalidatedJob, ...]:
    """Return the done jobs of a survey whose dependencies or inputs have changed since."""
    known = {job.id: job.built for job in survey.jobs if job.built}
    return _invalid_jobs(ValidityChecker(workspace, policy, known=known), survey)


def _invalid_jobs(validities: ValidityChecker, survey: Survey) -> tuple[InvalidatedJob, ...]:
    # Also jobs that are done by the ledger only: editing the status in a plan must not hide them.
    done = [(job.id, validities.of(job.id)) for job in survey.jobs if "done" in (job.status, job.recorded)]
    return tuple(
        InvalidatedJob(name, (name, *validity.chain), validity.why)
        for name, validity in done
        if validity.state == "invalid"
    )


def invalidate_jobs(workspace: Workspace, policy: Policy, by: Actor) -> tuple[InvalidatedJob, ...]:
    """Record which done jobs are no longer done, and set their status to in_progress."""
    recorded = []
    survey = survey_jobs(workspace)
    # The survey may come from the index, so it only selects the candidates; validity is computed from the files.
    validities = ValidityChecker(workspace, policy, places={job.id: job.path for job in survey.jobs})
    for job in _invalid_jobs(validities, survey):
        path = workspace.place(job.id).path
        with writing(workspace, path, job.id) as plan:
            if history_of(job.id, plan.entries, policy).completed is None:
                continue
            writes: dict[str, Value] = {"status": "in_progress", "completed_at": "", "updated_at": workspace.now()}
            data = {"chain": list(job.chain), "why": job.why}
            entry = plan.append("invalidated", data, Approval(by), writes)
        recorded.append(job._replace(entry=entry))
    return tuple(recorded)
