"""Evaluate a job without completing it, and write the result into its plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from donewhen.jobs.board.views import update_stale_views
from donewhen.jobs.evidence.requirements import Requirement
from donewhen.jobs.gates.evaluation import Evaluation, evaluate
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.gates.facts import Facts, facts_of
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.ledger import Actor
from donewhen.jobs.lifecycle.completion import evaluation_data, evaluation_fields
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.snapshot import snapshot_of
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import operation, writing


class EvaluatedJob(NamedTuple):
    """A job with its facts and evaluation."""

    job: Job
    facts: Facts
    evaluation: Evaluation


def evaluate_and_record(
    workspace: Workspace,
    name: str,
    by: Actor,
    *,
    collecting: bool,
    on_progress: Callable[[Requirement], None] = lambda _: None,
) -> EvaluatedJob:
    """Evaluate a job and write the result into its plan; never counts as an iteration.

    With ``collecting``, stale checks are run again first. Where nothing can be written, such as on a read-only mount,
    nothing is run or recorded, and the result says what is on record.
    """
    before = snapshot_of(workspace)
    job = before.job(name)
    if not workspace.writable:
        facts = facts_of(before, job)
        return EvaluatedJob(job, facts, evaluate(facts))
    with operation(workspace, create=True):
        if collecting:
            collect_evidence(before, job, by, on_progress=on_progress, lenient=True)
        return _evaluate_and_record(workspace, job, by)


def _evaluate_and_record(workspace: Workspace, job: Job, by: Actor) -> EvaluatedJob:
    with writing(workspace, job.path, job.id) as plan:
        job = plan.job
        update_stale_views(plan.snapshot, job)
        facts = facts_of(plan.snapshot, job)
        evaluation = evaluate(facts)
        fields = job.document.fields
        writes = evaluation_fields(evaluation, workspace.now())
        results: dict[str, Any] = {key: value for key, value in writes.items() if not key.endswith("_at")}
        if facts.history.completed is None and any(fields.get(key) != value for key, value in results.items()):
            plan.append("evaluated", evaluation_data(evaluation), Approval(by), writes)
            job = plan.job
    return EvaluatedJob(job, facts, evaluation)
