"""Invalidation: when something changes that done jobs depend on, directly or indirectly, they are no longer done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from donewhen.jobs.board.validity import Validity, ValidityChecker
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.writing import writing

if TYPE_CHECKING:
    from donewhen.jobs.board.survey import Survey


class InvalidatedJob(NamedTuple):
    """A job that is no longer done, and the chain of jobs that caused it."""

    id: str
    chain: tuple[str, ...]
    why: str
    entry: Entry | None = None
    own_output: bool = False
    """Whether only an output of the job itself is gone or changed."""
    code: FindingCode = FindingCode.DONE_INVALID


def code_of(validity: Validity) -> FindingCode:
    """The code of the reason why a done job is no longer valid."""
    if validity.own_output:
        return FindingCode.OUTPUT_CHANGED
    if validity.voided:
        return FindingCode.VOIDED
    return FindingCode.DONE_UNTRUE if validity.refuted else FindingCode.DONE_INVALID


def find_invalid_jobs(workspace: Workspace, policy: Policy, survey: Survey) -> tuple[InvalidatedJob, ...]:
    """Return the done jobs of a survey whose dependencies, inputs or outputs have changed since."""
    known = {job.id: job.built for job in survey.jobs if job.built}
    return _invalid_jobs(ValidityChecker(workspace, policy, known=known), survey)


def mark_invalid_jobs(workspace: Workspace, survey: Survey) -> Survey:
    """The survey with what the files of done jobs say: those that are no longer true are marked. Reads every output."""
    invalid = {job.id for job in find_invalid_jobs(workspace, approval_policy(workspace), survey)}
    jobs = tuple(
        job._replace(known=job.known._replace(invalid=True)) if job.id in invalid and job.known.completed else job
        for job in survey.jobs
    )
    return replace(survey, jobs=jobs)


def _invalid_jobs(validities: ValidityChecker, survey: Survey) -> tuple[InvalidatedJob, ...]:
    # Also jobs that are done by the ledger only: editing the status in a plan must not hide them.
    done = [(job.id, validities.of(job.id)) for job in survey.jobs if "done" in (job.status, job.recorded)]
    return tuple(
        InvalidatedJob(
            name, (name, *validity.chain), validity.why, own_output=validity.own_output, code=code_of(validity)
        )
        for name, validity in done
        if validity.state == "invalid"
    )


def invalidate_jobs(workspace: Workspace, policy: Policy, by: Actor) -> tuple[InvalidatedJob, ...]:
    """Record which done jobs are no longer done, and set their status to in_progress."""
    recorded = []
    # Imported where it is used: a job that completes as expected invalidates nothing.
    from donewhen.jobs.board.survey import survey_jobs

    survey = survey_jobs(workspace)
    # The survey may come from the index, so it only selects the candidates; validity is computed from the files.
    validities = ValidityChecker(workspace, policy, places={job.id: job.path for job in survey.jobs})
    for job in _invalid_jobs(validities, survey):
        if job.code != FindingCode.DONE_INVALID:
            # It says nothing about what was just completed; the job itself and those that build on it are held back.
            continue
        path = workspace.place(job.id).path
        with writing(workspace, path, job.id) as plan:
            if history_of(job.id, plan.entries, policy).completed is None:
                continue
            writes: dict[str, Value] = {"status": "in_progress", "completed_at": "", "updated_at": workspace.now()}
            data = {"chain": list(job.chain), "why": job.why}
            entry = plan.append("invalidated", data, Approval(by), writes)
        recorded.append(job._replace(entry=entry))
    return tuple(recorded)
