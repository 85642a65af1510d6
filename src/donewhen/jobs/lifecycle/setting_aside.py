"""Stop working on a job before it is done: blocked, waiting for an answer, disputed, or unverified."""

from __future__ import annotations

from pathlib import Path

from donewhen.foundation.errors import UsageError
from donewhen.jobs.board.open_jobs import find_open_jobs, own_jobs
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.evidence.requirements import VERIFICATION
from donewhen.jobs.gates.evidence_status import evidence_statuses
from donewhen.jobs.ledger.approval import Approval, unproved_actor
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.writing import writing


def set_job_aside(workspace: Workspace, name: str, by: Actor, *, reason: str = "", question: str = "") -> Entry:
    """Record that a job is blocked for a reason, or waits for a person's answer; the agent may stop then."""
    text = (reason or question).strip()
    if not text:
        raise UsageError("The reason is empty." if not question else "The question is empty.")
    job = workspace.job(name)
    with writing(workspace, job.path, job.id) as plan:
        history = history_of(job.id, plan.entries, approval_policy(plan.snapshot))
        if history.completed is not None or history.status == "cancelled":
            state = "done" if history.completed is not None else "cancelled"
            raise UsageError(f"{job.id} is {state}, so there is nothing to wait for.", next_step="donewhen status")
        data = {"decision": "block", "reason": text} if reason else {"decision": "ask", "reason": text}
        return plan.append("decided", data, Approval(by), {"status": "blocked", "updated_at": workspace.now()})


def record_dispute(workspace: Workspace, name: str, by: Actor, reason: str) -> Entry:
    """Record a dispute of a refusal: people decide on the refused criteria, and the agent may stop meanwhile."""
    if not reason.strip():
        raise UsageError("A dispute needs a reason why the refusal is wrong.", next_step='Give it with --reason "…".')
    job = workspace.job(name)
    with writing(workspace, job.path, job.id) as plan:
        history = history_of(job.id, plan.entries, approval_policy(plan.snapshot))
        results = (entry for entry in reversed(plan.entries) if entry.type in ("refused", "completed", "started"))
        last = next(results, None)
        if last is None or last.type != "refused" or history.status == "cancelled":
            raise UsageError(
                f"{job.id} was not refused, so there is nothing to dispute.", next_step=f"donewhen complete {job.id}"
            )
        unmet = [
            status
            for status in evidence_statuses(plan.snapshot, job)
            if status.requirement.name != VERIFICATION and status.state != "passed"
        ]
        # Manual criteria were not refused: they wait for a sign-off.
        disputed = [status.requirement.name for status in unmet if status.requirement.check.kind != "manual"]
        if unmet and not disputed:
            raise UsageError(
                f"{job.id} only waits for a person's sign-off, which was not refused.",
                next_step=f'donewhen ask {job.id} --question "…"',
            )
        if not disputed:
            raise UsageError(
                f"All criteria of {job.id} are met; only unmet criteria can be disputed.",
                next_step=f"donewhen complete {job.id}",
            )
        data = {"decision": "dispute", "reason": reason.strip(), "value": {"criteria": disputed}}
        return plan.append("decided", data, Approval(by), {"status": "blocked", "updated_at": workspace.now()})


def record_unverified_stop(root: Path, why: str) -> None:
    """Record for every job in progress, except those of others, that its agent stopped without verification."""
    workspace = find_workspace(root)
    for name in own_jobs(workspace, find_open_jobs(workspace).names).own:
        job = workspace.job_with_id(name)
        chain = workspace.ledger.read(name)
        if chain.whole and history_of(name, chain.entries, approval_policy(workspace)).status == "in_progress":
            with writing(workspace, job.path, name) as plan:
                plan.append("unverified", {"why": why}, Approval(unproved_actor()))
