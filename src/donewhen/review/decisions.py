"""Record a person's answer to what a job waits for: words, a sign-off, a decision about the budget."""

from __future__ import annotations

from dataclasses import dataclass

from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.evidence.requirements import requirement_for
from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.gates.sign_offs import refuse_sign_off
from donewhen.jobs.judge.person_overrides import override_gate, subject_of
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.lifecycle.answering import answer_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.review.items import Choice, Kind, ReviewItem

ABOUT_WAITING: frozenset[Kind] = frozenset({"asked", "blocked", "out_of_budget", "sign_off", "evidence_weak"})
_REASON = "Decided in the review."


@dataclass(frozen=True)
class WaitingDecision:
    """What was recorded, whether it counts, and what follows from it."""

    entry: Entry
    counts: bool
    effect: str


def decide_waiting(
    workspace: Workspace, item: ReviewItem, choice: Choice, approval: Approval, words: str
) -> WaitingDecision:
    """Record the answer to an item that a job waits for. Raise UsageError if it is about something else by now."""
    job = workspace.job(str(item.job))
    match item.kind:
        case "asked" | "blocked":
            record = answer_job(workspace, job.id, words, approval, seen=item.subject)
            return WaitingDecision(
                record.entry, record.counts, "answered; the agent reads it at its next stop, and goes on"
            )
        case "out_of_budget":
            return _decide_budget(workspace, job, item, choice, approval, words)
        case _:
            return _look(workspace, job, item, str(item.criterion), choice, approval, words)


def _decide_budget(
    workspace: Workspace, job: Job, item: ReviewItem, choice: Choice, approval: Approval, words: str
) -> WaitingDecision:
    reason = words.strip() or _REASON
    match choice:
        case "raise_budget":
            decision = Decision("raise_budget", reason, item.budget)
            effect = f"{item.budget} iterations are allowed; the agent can go on"
        case "rescope":
            decision = Decision("rescope", reason)
            effect = f"edit {workspace.where(job.path)}, then: donewhen agree {job.id}"
        case _:
            decision = Decision("cancel", reason)
            effect = "the job is cancelled"
    record = decide(workspace, job, decision, approval)
    return WaitingDecision(record.entry, record.counts, effect)


def _look(
    workspace: Workspace, job: Job, item: ReviewItem, criterion: str, choice: Choice, approval: Approval, words: str
) -> WaitingDecision:
    """Sign off a criterion, or refuse it."""
    requirement = requirement_for(job, criterion)
    if item.subject != subject_of(workspace, job, requirement, workspace.ledger.read(job.id).entries):
        raise UsageError(
            f"{job.id} changed during the review. Nothing was recorded.", next_step="Review it again: donewhen review"
        )
    reason = words.strip() or _REASON
    if choice == "pass":
        signed = sign_off(workspace, job, criterion, reason, approval)
        return WaitingDecision(signed.entry, signed.counts, f"signed off; next: donewhen complete {job.id}")
    effect = "not met; the agent goes on with your reason"
    if item.kind == "sign_off":
        refused = refuse_sign_off(workspace, job, criterion, reason, approval)
        return WaitingDecision(refused.entry, refused.counts, effect)
    override = override_gate(workspace, job, criterion, "fail", reason, approval, seen=item.subject)
    return WaitingDecision(override.entry, override.counts, effect)
