"""Evaluating a job without completing it; the result is shown in its plan and never counts as an iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from donewhen.jobs.board.views import make_current, refresh
from donewhen.jobs.evidence.requirements import Need
from donewhen.jobs.gates.evaluation import Evaluation, evaluate
from donewhen.jobs.gates.evidence_status import collect
from donewhen.jobs.gates.facts import Facts, facts_of
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.ledger import Actor
from donewhen.jobs.lifecycle.completion import projected, told
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.projection import record, repair


class Evaluated(NamedTuple):
    """How far a job is."""

    job: Job
    facts: Facts
    evaluation: Evaluation


def evaluate_and_record(
    workspace: Workspace, name: str, by: Actor, *, collecting: bool, tell: Callable[[Need], None] = lambda _: None
) -> Evaluated:
    """Evaluate a job and show the result in its plan; it never counts as an iteration. With ``collecting``, what is
    stale is run again first."""
    job = workspace.job(name)
    if collecting:
        collect(workspace, job, by, tell=tell, lenient=True)
    with workspace.locked(job.path):
        chain = workspace.ledger.read(job.id)
        repair(workspace, workspace.read(job.path), job.path, chain.entries)
        job = workspace.job_at(job.path)
        make_current(workspace, job)
        facts = facts_of(workspace, job)
        evaluation = evaluate(facts)
        fields = job.document.fields
        shown = projected(evaluation, workspace.now())
        news: dict[str, Any] = {key: value for key, value in shown.items() if not key.endswith("_at")}
        if facts.history.completed is None and any(fields.get(key) != value for key, value in news.items()):
            record(workspace, job.id, job.document, job.path, "evaluated", told(evaluation), Approval(by), shown)
            job = workspace.job_at(job.path)
            refresh(workspace, job)
        elif collecting:
            refresh(workspace, job)
    return Evaluated(job, facts, evaluation)
