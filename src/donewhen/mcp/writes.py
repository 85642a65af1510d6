"""The tools that do something. It is on record as an agent's: no argument and no variable makes it a person's."""

from __future__ import annotations

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.views import refresh
from donewhen.jobs.evidence.requirements import Need, need_of, needs
from donewhen.jobs.gates.evidence_status import collect
from donewhen.jobs.ledger.approval import somebody
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.rest import dispute, set_aside
from donewhen.jobs.lifecycle.start import start
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.mcp.answers import Begun, Completed, GivenLesson, Ran, Resting, Run
from donewhen.mcp.call_context import Call, can_be_run
from donewhen.mcp.params import Evidence, Objection, Obstacle, OneJob, Question
from donewhen.mcp.views import evidence_of, gates_of, reasons_of, run_of, step_of


def start_job(call: Call, asked: OneJob) -> Begun:
    """Begin a job, or begin it again, which counts as an iteration."""
    workspace = call.workspace()
    found = start(workspace, asked.job, somebody(), tell=call.progress(workspace.job(asked.job)))
    job = found.job
    return Begun(
        job=job.id,
        started=found.started,
        status=job.status,
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        reasons=reasons_of(found.reasons),
        next=found.next or f"donewhen next {job.id}",
        lessons=[
            GivenLesson(one.lesson.id, one_line(one.lesson.recommendation, 600), list(one.reasons))
            for one in found.lessons
        ],
    )


def run_evidence(call: Call, asked: Evidence) -> Ran:
    """Let the gate run what a job has to show: everything that is not fresh, or one criterion."""
    workspace = call.workspace()
    job = workspace.job(asked.job)
    only = None if asked.criterion is None else need_of(job, asked.criterion)
    chosen = _chosen(job, only)
    tell = call.progress(job)
    seen = dict(collect(workspace, job, somebody(), again=asked.again, only=only, lenient=only is None, tell=tell))
    runs = [run_of(one, seen[one]) if one in seen else _not_run(workspace, job, one) for one in chosen]
    refresh(workspace, workspace.job_at(job.path))
    passed = all(one.passed for one in runs)
    step = f"donewhen complete {job.id}" if passed and only is None else f"donewhen next {job.id}"
    return Ran(job.id, passed, runs, step)


def complete_job(call: Call, asked: OneJob) -> Completed:
    """Complete a job if every gate is open now, through the one door that there is."""
    workspace = call.workspace()
    found = complete(workspace, asked.job, somebody(), tell=call.progress(workspace.job(asked.job)))
    job, evaluation, promise = found.job, found.evaluation, found.promise
    return Completed(
        job=job.id,
        done=found.done,
        status=job.status,
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        promise=promise.text.splitlines()[0] if promise else None,
        receipt=promise.receipt if promise else None,
        repeated=found.repeated,
        gates=gates_of(evaluation) if evaluation else [],
        next=step_of(job, evaluation) if evaluation and not found.done else "donewhen ready",
        cascade=[one.id for one in found.cascade],
        invalidated=[one.id for one in found.invalidated],
    )


def ask_person(call: Call, asked: Question) -> Resting:
    """Ask a person about a job, and wait. An agent may stop then."""
    workspace = call.workspace()
    entry = set_aside(workspace, asked.job, somebody(), question=asked.question)
    return _resting(workspace, asked.job, entry, "A person answers it; then: donewhen start {job}")


def block_job(call: Call, asked: Obstacle) -> Resting:
    """Set a job aside, with what is in the way. An agent may stop then."""
    workspace = call.workspace()
    entry = set_aside(workspace, asked.job, somebody(), reason=asked.reason)
    return _resting(workspace, asked.job, entry, "A person clears it away; then: donewhen start {job}")


def dispute_refusal(call: Call, asked: Objection) -> Resting:
    """Take a refusal to people, who decide it. An agent may stop then."""
    workspace = call.workspace()
    entry = dispute(workspace, asked.job, somebody(), asked.reason)
    return _resting(workspace, asked.job, entry, "A person decides it: donewhen review; then: donewhen complete {job}")


def _resting(workspace: Workspace, name: str, entry: Entry, step: str) -> Resting:
    job = workspace.job(name)
    return Resting(job.id, job.status, str(entry.data["reason"]), step.format(job=job.id))


def _chosen(job: Job, only: Need | None) -> tuple[Need, ...]:
    """What can be run of it; zero checks is not a pass."""
    chosen = tuple(one for one in (needs(job) if only is None else (only,)) if can_be_run(one))
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


def _not_run(workspace: Workspace, job: Job, need: Need) -> Run:
    """Why something could not be run at all, or not yet."""
    try:
        ((_, seen),) = collect(workspace, job, somebody(), only=need)
    except DonewhenError as error:
        return Run(need.name, evidence_of(need), passed=False, reused=False, told=str(error))
    return run_of(need, seen)
