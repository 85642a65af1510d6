"""The tools that do something. It is on record as an agent's: no argument and no variable makes it a person's."""

from __future__ import annotations

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.views import update_views
from donewhen.jobs.evidence.requirements import Requirement, requirement_for, requirements_of
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.rest import record_dispute, set_job_aside
from donewhen.jobs.lifecycle.start import start_job as start
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.mcp.answers import CompletionAnswer, EvidenceAnswer, EvidenceItem, GivenLesson, RestAnswer, StartAnswer
from donewhen.mcp.call_context import CallContext, is_runnable
from donewhen.mcp.params import AskPersonParams, BlockJobParams, DisputeParams, JobParam, RunEvidenceParams
from donewhen.mcp.views import evidence_item, evidence_source, gate_views, next_command, reason_views


def start_job(call: CallContext, asked: JobParam) -> StartAnswer:
    """Begin a job, or begin it again, which counts as an iteration."""
    workspace = call.workspace()
    found = start(workspace, asked.job, unproved_actor(), on_progress=call.progress(workspace.job(asked.job)))
    job = found.job
    return StartAnswer(
        job=job.id,
        started=found.started,
        status=job.status,
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        reasons=reason_views(found.reasons),
        next=found.next or f"donewhen next {job.id}",
        lessons=[
            GivenLesson(lesson.lesson.id, one_line(lesson.lesson.recommendation, 600), list(lesson.reasons))
            for lesson in found.lessons
        ],
    )


def run_evidence(call: CallContext, asked: RunEvidenceParams) -> EvidenceAnswer:
    """Let the gate run what a job has to show: everything that is not fresh, or one criterion."""
    workspace = call.workspace()
    job = workspace.job(asked.job)
    only = None if asked.criterion is None else requirement_for(job, asked.criterion)
    chosen = _chosen(job, only)
    on_progress = call.progress(job)
    seen = dict(
        collect_evidence(
            workspace,
            job,
            unproved_actor(),
            again=asked.again,
            only=only,
            lenient=only is None,
            on_progress=on_progress,
        )
    )
    runs = [evidence_item(one, seen[one]) if one in seen else _not_run(workspace, job, one) for one in chosen]
    update_views(workspace, workspace.job_at(job.path))
    passed = all(run.passed for run in runs)
    step = f"donewhen complete {job.id}" if passed and only is None else f"donewhen next {job.id}"
    return EvidenceAnswer(job.id, passed, runs, step)


def complete_job(call: CallContext, asked: JobParam) -> CompletionAnswer:
    """Complete a job if every gate is open now, through the one door that there is."""
    workspace = call.workspace()
    found = complete(workspace, asked.job, unproved_actor(), on_progress=call.progress(workspace.job(asked.job)))
    job, evaluation, promise = found.job, found.evaluation, found.promise
    return CompletionAnswer(
        job=job.id,
        done=found.done,
        status=job.status,
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        promise=promise.text.splitlines()[0] if promise else None,
        receipt=promise.receipt if promise else None,
        repeated=found.repeated,
        gates=gate_views(evaluation) if evaluation else [],
        next=next_command(job, evaluation) if evaluation and not found.done else "donewhen ready",
        cascade=[one.id for one in found.cascade],
        invalidated=[one.id for one in found.invalidated],
    )


def ask_person(call: CallContext, asked: AskPersonParams) -> RestAnswer:
    """Ask a person about a job, and wait. An agent may stop then."""
    workspace = call.workspace()
    entry = set_job_aside(workspace, asked.job, unproved_actor(), question=asked.question)
    return _resting(workspace, asked.job, entry, "A person answers it; then: donewhen start {job}")


def block_job(call: CallContext, asked: BlockJobParams) -> RestAnswer:
    """Set a job aside, with what is in the way. An agent may stop then."""
    workspace = call.workspace()
    entry = set_job_aside(workspace, asked.job, unproved_actor(), reason=asked.reason)
    return _resting(workspace, asked.job, entry, "A person clears it away; then: donewhen start {job}")


def dispute_refusal(call: CallContext, asked: DisputeParams) -> RestAnswer:
    """Take a refusal to people, who decide it. An agent may stop then."""
    workspace = call.workspace()
    entry = record_dispute(workspace, asked.job, unproved_actor(), asked.reason)
    return _resting(workspace, asked.job, entry, "A person decides it: donewhen review; then: donewhen complete {job}")


def _resting(workspace: Workspace, name: str, entry: Entry, step: str) -> RestAnswer:
    job = workspace.job(name)
    return RestAnswer(job.id, job.status, str(entry.data["reason"]), step.format(job=job.id))


def _chosen(job: Job, only: Requirement | None) -> tuple[Requirement, ...]:
    """What can be run of it; zero checks is not a pass."""
    chosen = tuple(
        requirement for requirement in (requirements_of(job) if only is None else (only,)) if is_runnable(requirement)
    )
    if chosen:
        return chosen
    if only is not None and only.check.kind == "verification":
        raise UsageError(
            f"{only.name} has no check of its own: the job's verification decides it.",
            next_step=f"donewhen run {job.id}",
        )
    raise UsageError(
        f"{only.name if only else job.id} has nothing that could be run: a person decides it.",
        next_step=f'Ask for it: donewhen ask {job.id} --question "…"',
    )


def _not_run(workspace: Workspace, job: Job, requirement: Requirement) -> EvidenceItem:
    """Why something could not be run at all, or not yet."""
    try:
        ((_, seen),) = collect_evidence(workspace, job, unproved_actor(), only=requirement)
    except DonewhenError as error:
        return EvidenceItem(requirement.name, evidence_source(requirement), passed=False, reused=False, told=str(error))
    return evidence_item(requirement, seen)
