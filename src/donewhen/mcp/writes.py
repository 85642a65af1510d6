"""The tools that write. Changes are recorded as an agent's; no argument or variable makes them a person's."""

from __future__ import annotations

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.probing import Probing
from donewhen.jobs.evidence.requirements import Requirement, requirement_for, runnable_requirements
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Decided
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.setting_aside import record_dispute, set_job_aside
from donewhen.jobs.lifecycle.start import start_job as start
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import operation
from donewhen.mcp.answers import CompletionAnswer, EvidenceAnswer, EvidenceItem, GivenLesson, RestAnswer, StartAnswer
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.params import AskPersonParams, BlockJobParams, DisputeParams, JobParam, RunEvidenceParams
from donewhen.mcp.views import evidence_item, evidence_source, gate_views, reason_views


def start_job(call: CallContext, params: JobParam) -> StartAnswer:
    """Start a job, or start it again, which counts as an iteration."""
    workspace = call.workspace()
    result = start(workspace, params.job, unproved_actor(), on_progress=call.progress(workspace.job(params.job)))
    job = result.job
    return StartAnswer(
        job=job.id,
        started=result.started,
        status=job.status,
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        reasons=reason_views(result.reasons),
        next=result.next or f"donewhen next {job.id}",
        lessons=[
            GivenLesson(lesson.lesson.id, one_line(lesson.lesson.recommendation, 600), list(lesson.reasons))
            for lesson in result.lessons
        ],
    )


def run_evidence(call: CallContext, params: RunEvidenceParams) -> EvidenceAnswer:
    """Run the evidence of a job: everything that is not fresh, or one criterion."""
    workspace = call.workspace()
    job = workspace.job(params.job)
    only = None if params.criterion is None else requirement_for(job, params.criterion)
    chosen = runnable_requirements(job, only, by_hand=f'Ask for it: donewhen ask {job.id} --question "…"')
    on_progress = call.progress(job)
    with operation(workspace, create=True):
        collected = collect_evidence(
            workspace,
            job,
            unproved_actor(),
            again=params.again,
            only=only,
            lenient=only is None,
            on_progress=on_progress,
        )
    seen = dict(collected)
    runs = [
        evidence_item(requirement, seen[requirement]) if requirement in seen else _not_run(workspace, job, requirement)
        for requirement in chosen
    ]
    passed = all(run.passed for run in runs)
    step = f"donewhen complete {job.id}" if passed and only is None else f"donewhen next {job.id}"
    return EvidenceAnswer(job.id, passed, runs, step)


def complete_job(call: CallContext, params: JobParam) -> CompletionAnswer:
    """Complete a job if every gate is open now."""
    workspace = call.workspace()
    show = call.progress(workspace.job(params.job))
    result = complete(workspace, params.job, unproved_actor(), on_progress=show, probing=Probing())
    job, evaluation, promise = result.job, result.evaluation, result.promise
    return CompletionAnswer(
        job=job.id,
        done=result.done,
        status=job.status,
        state=result.state.word,
        code=result.state.code,
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        promise=promise.text.splitlines()[0] if promise else None,
        receipt=promise.receipt if promise else None,
        repeated=result.repeated,
        gates=gate_views(evaluation) if evaluation else [],
        next=result.state.next,
        cascade=[job_done.id for job_done in result.cascade],
        invalidated=[invalidated.id for invalidated in result.invalidated],
        notes=[*evaluation.notes] if evaluation else [],
        strength={name: strength.level for name, strength in result.strength.items()},
    )


def ask_person(call: CallContext, params: AskPersonParams) -> RestAnswer:
    """Record a question to a person and block the job. The agent may stop then."""
    workspace = call.workspace()
    entry = set_job_aside(workspace, params.job, unproved_actor(), question=params.question)
    return _rest_answer(
        workspace,
        params.job,
        entry,
        "Say that you have asked, and stop. When a person has answered: donewhen next {job}",
    )


def block_job(call: CallContext, params: BlockJobParams) -> RestAnswer:
    """Block a job with a reason. The agent may stop then."""
    workspace = call.workspace()
    entry = set_job_aside(workspace, params.job, unproved_actor(), reason=params.reason)
    return _rest_answer(workspace, params.job, entry, "You may stop. When the obstacle is gone: donewhen start {job}")


def dispute_refusal(call: CallContext, params: DisputeParams) -> RestAnswer:
    """Dispute a refusal; a person decides. The agent may stop then."""
    workspace = call.workspace()
    entry = record_dispute(workspace, params.job, unproved_actor(), params.reason)
    return _rest_answer(
        workspace, params.job, entry, "You may stop. When a person has decided in the review: donewhen complete {job}"
    )


def _rest_answer(workspace: Workspace, name: str, entry: Entry, step: str) -> RestAnswer:
    job = workspace.job(name)
    return RestAnswer(job.id, job.status, entry.read_as(Decided).reason, step.format(job=job.id))


def _not_run(workspace: Workspace, job: Job, requirement: Requirement) -> EvidenceItem:
    """Return why a requirement was not run."""
    try:
        ((_, run),) = collect_evidence(workspace, job, unproved_actor(), only=requirement)
    except DonewhenError as error:
        return EvidenceItem(requirement.name, evidence_source(requirement), passed=False, reused=False, told=str(error))
    return evidence_item(requirement, run)
