"""Start a job, or start it again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.jobs.contract.agreeing import seal_tightened_job, seal_tightened_terms
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.inputs import output_manifest, upstream_manifest
from donewhen.jobs.evidence.baselines import baseline_of
from donewhen.jobs.evidence.commands import evidence_name, reports_tests, run_as_evidence
from donewhen.jobs.evidence.requirements import Requirement, requirements_of
from donewhen.jobs.evidence.room_session import room_session
from donewhen.jobs.evidence.test_config import hash_test_configs
from donewhen.jobs.evidence.tree_diff import resolve_commit
from donewhen.jobs.gates.agreement_gate import agreement_gate
from donewhen.jobs.gates.budget_gate import budget_gate
from donewhen.jobs.gates.dependency_gate import dependency_reasons
from donewhen.jobs.gates.facts import Facts, facts_of
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult
from donewhen.jobs.lessons.lesson_recording import finish_interrupted_capture_if_possible
from donewhen.jobs.lessons.lesson_search import LessonMatch
from donewhen.jobs.lessons.lesson_suggestions import lessons_for, plan_with_lessons
from donewhen.jobs.lifecycle.overlapping import Overlap, overlapping_jobs
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.snapshot import snapshot_of
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.gone_back import require_no_step_back
from donewhen.jobs.record.parents import mark_parents_in_progress
from donewhen.jobs.record.projection import rework_fields
from donewhen.jobs.record.workers import Other, note_started, this_worker, whose, worker_data, worker_on_record
from donewhen.jobs.record.writing import operation, writing
from donewhen.jobs.room.surroundings import surroundings_in

_REASON_OF_RESTART = "It was started again."


class StartResult(NamedTuple):
    """Whether a job was started, and if not, why."""

    job: Job
    reasons: tuple[GateReason, ...]
    next: str | None
    entry: Entry | None
    lessons: tuple[LessonMatch, ...] = ()
    """Lessons of earlier jobs that match this one; they were written into the plan."""
    taken_over: Other = ""
    """Whether it was in progress in another clone, or in another agent's session."""
    overlapping: tuple[Overlap, ...] = ()
    """Other jobs in progress in this work tree that may change the same files."""

    @property
    def started(self) -> bool:
        return self.entry is not None


def start_job(
    workspace: Workspace,
    name: str,
    by: Actor,
    *,
    agent_session: str = "",
    on_progress: Callable[[Requirement], None] = lambda _: None,
) -> StartResult:
    """Start a job, or start it again, which counts as an iteration unless a person's answer made it possible.

    Records who works on it; ``agent_session`` is the id of the agent's session, if it is known.

    Records hashes of its inputs from other jobs and of its outputs, and runs its test commands once as a baseline.
    Writes matching lessons of other jobs into its plan.
    """
    with operation(workspace, create=True):
        finish_interrupted_capture_if_possible(workspace)
        return _start_job(workspace, name, by, agent_session, on_progress)


def _start_job(
    workspace: Workspace, name: str, by: Actor, agent_session: str, on_progress: Callable[[Requirement], None]
) -> StartResult:
    before = snapshot_of(workspace)
    job = before.job(name)
    require_no_step_back(before, job.id, lost_only=True)
    closed = _closed_gate(facts_of(before, job))
    if closed is not None:
        return StartResult(job, closed.reasons, closed.next, None)
    testing = [
        requirement
        for requirement in requirements_of(job)
        if requirement.check.kind == "run" and reports_tests(requirement.check.argv)
    ]
    with room_session(before, job) if testing else nullcontext() as session:
        for requirement in testing:
            on_progress(requirement)
            argv = requirement.check.argv
            with suppress(CommandNotRunnableError):
                if session is None:
                    run_as_evidence(before, job, argv, by)
                else:
                    # Of the agreed files, usually known since the agreement.
                    limit = before.settings().jobs.command_timeout
                    around = surroundings_in(before, session.reading.basis)
                    baseline_of(session, argv, evidence_name(requirement.evidence), around, limit, by)
            raise_if_cancelled()
    seal_tightened_terms(before, job, by)
    with writing(workspace, job.path, job.id) as plan:
        seal_tightened_job(plan, by)
        job, now_open = plan.job, plan.snapshot
        facts = facts_of(now_open, job)
        closed = _closed_gate(facts)
        if closed is not None:
            return StartResult(job, closed.reasons, closed.next, None)
        # Before the ledger entry: lessons decide nothing, and after a crash the next start finds them in the plan.
        lessons = lessons_for(now_open, job, plan.entries)
        if (raw := plan_with_lessons(job, lessons)) is not None:
            job = plan.replace_text(raw)
        now = workspace.now()
        writes: dict[str, Value] = {"status": "in_progress", "updated_at": now, "completed_at": ""}
        if facts.history.started is None:
            writes["started_at"] = now
        elif facts.history.answer is None:
            writes["iteration"] = facts.history.iteration + 1
            writes |= rework_fields(plan.entries, _REASON_OF_RESTART)
        data: dict[str, Any] = {
            "outputs": dict(output_manifest(now_open, job).files),
            "upstream": dict(upstream_manifest(now_open, job).files),
            "harness": hash_test_configs(now_open, job),
        }
        if (commit := resolve_commit(workspace.root)) is not None:
            data["commit"] = commit
        me = this_worker(workspace.root, agent_session)
        data["worker"] = worker_data(me)
        in_progress = facts.history.status == "in_progress"
        if taken_over := whose(worker_on_record(plan.entries), me) if in_progress else "":
            data["taken_over"] = taken_over
        if lessons:
            data["lessons"] = {lesson.lesson.id: lesson.lesson.hash for lesson in lessons}
        entry = plan.append("started", data, Approval(by), writes)
        job = plan.job
    note_started(workspace.root, me)
    after = now_open.after_writing(job)
    mark_parents_in_progress(after, job, approval_policy(after), by)
    return StartResult(job, (), None, entry, lessons, taken_over, tuple(overlapping_jobs(after, job)))


def _closed_gate(facts: Facts) -> GateResult | None:
    """Return the first gate that prevents a start."""
    reasons = tuple(dependency_reasons(facts))
    dependency = GateResult("dependency", reasons, "donewhen ready" if reasons else None)
    gates = (agreement_gate(facts), budget_gate(facts), _restart_gate(facts), dependency)
    return next((gate for gate in gates if not gate.passed), None)


def _restart_gate(facts: Facts) -> GateResult:
    """Closed if starting again, which counts as an iteration except after an answer, would exceed the budget."""
    job, history = facts.job, facts.history
    following = history.iteration + 1
    unblocked = history.auto_blocked and history.decided_since_block
    if history.started is None or following <= job.max_iterations or unblocked or history.answer is not None:
        return GateResult("budget", ())
    message = f"Starting {job.id} again would be iteration {following}; the limit is {job.max_iterations}."
    step = f'donewhen decide {job.id} --raise-budget {following} --reason "…"'
    return GateResult("budget", (GateReason(GateCode.BUDGET_EXCEEDED, message, facts.where),), step)
