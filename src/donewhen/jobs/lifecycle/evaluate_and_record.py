"""Evaluate a job without completing it, and write the result into its plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from donewhen.jobs.board.views import update_stale_views, update_views
from donewhen.jobs.evidence.requirements import Requirement
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.gates.job_view import JobView, view_job
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.ledger import Actor
from donewhen.jobs.lifecycle.completion import evaluation_data, evaluation_fields
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.projection import finish_interrupted_write, record_and_project


def evaluate_and_record(
    workspace: Workspace,
    name: str,
    by: Actor,
    *,
    collecting: bool,
    on_progress: Callable[[Requirement], None] = lambda _: None,
) -> JobView:
    """Evaluate a job and write the result into its plan; never counts as an iteration.

    With ``collecting``, stale checks are run again first. Where nothing can be written, such as on a read-only mount or
    after a broken entry, nothing is run or recorded, and the result says what is on record.
    """
    job = workspace.job(name)
    if not workspace.writable or not workspace.ledger.read(job.id).whole:
        return view_job(workspace, job)
    if collecting:
        collect_evidence(workspace, job, by, on_progress=on_progress, lenient=True)
    with workspace.locked(job.path):
        chain = workspace.ledger.read(job.id)
        finish_interrupted_write(workspace, workspace.read(job.path), job.path, chain.entries)
        job = workspace.job_at(job.path)
        update_stale_views(workspace, job)
        view = view_job(workspace, job)
        fields = job.document.fields
        writes = evaluation_fields(view.evaluation, view.state, workspace.now())
        results: dict[str, Any] = {key: value for key, value in writes.items() if not key.endswith("_at")}
        if view.history.completed is None and any(fields.get(key) != value for key, value in results.items()):
            data = evaluation_data(view.evaluation)
            record_and_project(workspace, job.id, job.document, job.path, "evaluated", data, Approval(by), writes)
            job = workspace.job_at(job.path)
            update_views(workspace, job)
            view = replace(view, facts=view.facts._replace(job=job))
        elif collecting:
            update_views(workspace, job)
    return view
