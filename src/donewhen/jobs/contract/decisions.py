"""Decisions about a job by a person or another accepted approver, and their effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.agreement import job_agreement, project_agreement
from donewhen.jobs.ledger.approval import Approval, Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.terms_content import JobTerms
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import BUDGETS, MAX_SCORE, TARGETS, Job, Stakes
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.parents import mark_parents_in_progress
from donewhen.jobs.record.writing import operation, writing

DecisionKind = Literal["raise_budget", "rescope", "split", "stakes", "target", "cancel", "sign_off", "refuse_sign_off"]


@dataclass(frozen=True)
class Decision:
    """A decision that can be applied to a job."""

    kind: DecisionKind
    reason: str
    value: Any = None


class DecisionRecord(NamedTuple):
    """A recorded decision, and whether it takes effect."""

    entry: Entry
    counts: bool
    writes: Mapping[str, Value]


def decide(workspace: Workspace, job: Job, decision: Decision, approval: Approval) -> DecisionRecord:
    """Record a decision and apply it. A decision by an agent is only recorded, as a proposal."""
    if not decision.reason.strip():
        raise UsageError("A decision needs a reason.", next_step='Give one with --reason "…".')
    with operation(workspace):
        return _decide(workspace, job, decision, approval)


def _decide(workspace: Workspace, job: Job, decision: Decision, approval: Approval) -> DecisionRecord:
    with writing(workspace, job.path, job.id) as plan:
        chain, job = plan.chain, plan.job
        about_project = project_agreement(plan.snapshot, plan.snapshot.project())
        policy = Policy.of(about_project.seal.terms if about_project.seal else None)
        agreed = job_agreement(job, chain, about_project).seal
        sealed = agreed.terms if agreed else None
        budget = sealed.max_iterations if isinstance(sealed, JobTerms) else job.max_iterations
        terms = _new_terms(job, decision, budget)
        data: dict[str, Any] = {"decision": decision.kind, "reason": decision.reason.strip()}
        if decision.value is not None:
            data["value"] = decision.value
        if terms and approval.counts(policy):
            # In one entry, so that a decision is applied completely or not at all, and can't be reused elsewhere.
            data["terms"] = terms
        effects: dict[str, Value] = {"status": "cancelled"} if decision.kind == "cancel" else {}
        if decision.kind == "rescope" and job.status == "cancelled":
            effects = {"status": "planned"}
        before = history_of(job.id, chain.entries, policy)
        if terms and before.auto_blocked and before.status == "blocked" and before.waiting is None:
            # The agent goes on; for another scope, the plan has to be edited first.
            effects = {"status": "in_progress"}
        changed = {**terms, **effects} if approval.counts(policy) else {}
        writes = {**changed, "updated_at": workspace.now()} if approval.counts(policy) else {}
        entry = plan.append("decided", data, approval, writes)
    counts = is_approval(entry, job.id, policy)
    if (
        counts
        and decision.kind in ("cancel", "rescope")
        and effects
        and (before.completed is not None or before.status == "cancelled")
    ):
        mark_parents_in_progress(workspace, job, policy, approval.by, begin=False)
    return DecisionRecord(entry, counts, changed)


def _new_terms(job: Job, decision: Decision, budget: int) -> dict[str, Value]:
    """The terms that a decision changes, with their new values."""
    value = decision.value
    match decision.kind:
        case "raise_budget":
            if value <= max(budget, job.iteration):
                raise UsageError(
                    f"{value} does not raise the budget: {job.id} may take {budget} iterations "
                    f"and has taken {job.iteration}.",
                    next_step="Give the new total.",
                )
            return {"max_iterations": value}
        case "target":
            if not 0 <= value <= MAX_SCORE:
                raise UsageError(f"The target {value} can't be reached: a score is at most {MAX_SCORE}.")
            return {"reward_target": value}
        case "stakes":
            return {"stakes": value, **_default_terms(job, value)}
        case _:
            return {}


def _default_terms(job: Job, stakes: Stakes) -> dict[str, Value]:
    """The target and budget for new stakes, as far as the job had the defaults of its old stakes."""
    terms: dict[str, Value] = {}
    if job.reward_target == TARGETS[job.stakes]:
        terms["reward_target"] = TARGETS[stakes]
    if job.max_iterations == BUDGETS[job.stakes]:
        terms["max_iterations"] = BUDGETS[stakes]
    return terms
