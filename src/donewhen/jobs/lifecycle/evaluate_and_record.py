"""Evaluate a job without completing it, and write the result into its plan."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from donewhen.jobs.board.views import update_stale_views
from donewhen.jobs.evidence.requirements import Requirement
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.gates.job_view import JobView, view_job
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import evaluation_data, evaluation_fields
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.snapshot import snapshot_of
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import RecordedError, operation, writing

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


def evaluate_and_record(
    workspace: Workspace,
    name: str,
    by: Actor,
    *,
    collecting: bool,
    on_progress: Callable[[Requirement], None] = lambda _: None,
) -> JobView:
    """Evaluate a job and write the result into its plan; never counts as an iteration.

    With ``collecting``, stale checks are run again first. Where nothing can be written, such as on a read-only mount,
    on a full disk or after a broken entry, nothing is recorded, and the result says what is on record.
    """
    before = snapshot_of(workspace)
    job = before.job(name)
    if not workspace.writable or not before.ledger.read(job.id).whole:
        return view_job(before, job)
    try:
        with operation(workspace, create=True):
            if collecting:
                collect_evidence(before, job, by, on_progress=on_progress, lenient=True)
            return _evaluate_and_record(workspace, job, by)
    except (OSError, RecordedError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not (isinstance(cause, OSError) and cause.errno in _NO_SPACE):
            raise
        return view_job(snapshot_of(workspace), workspace.job_at(job.path))


def _evaluate_and_record(workspace: Workspace, job: Job, by: Actor) -> JobView:
    with writing(workspace, job.path, job.id) as plan:
        job = plan.job
        found = update_stale_views(plan.snapshot, job)
        view = view_job(plan.snapshot, job, found)
        fields = job.document.fields
        writes = evaluation_fields(view.evaluation, view.state, workspace.now())
        results: dict[str, Any] = {key: value for key, value in writes.items() if not key.endswith("_at")}
        if any(fields.get(key) != value for key, value in results.items()):
            plan.append("evaluated", evaluation_data(view.evaluation), Approval(by), writes)
            view = replace(view, facts=view.facts._replace(job=plan.job))
    return view
