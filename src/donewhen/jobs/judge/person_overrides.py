"""A person's override of the gate for a single criterion, recorded with their name.

It is valid for the work that they reviewed. After a change, the criterion needs new evidence or a new review.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.inputs import input_manifest, result_manifest
from donewhen.jobs.evidence.requirements import Requirement, requirement_for
from donewhen.jobs.ledger.approval import Approval, Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Overridden
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.parents import mark_parents_in_progress
from donewhen.jobs.record.writing import operation, writing

_OVERRIDABLE = ("run", "file", "judge", "verification")


class OverrideRecord(NamedTuple):
    """The entry of an override, and whether it counts."""

    entry: Entry
    counts: bool


def newest_override(
    entries: Sequence[Entry], chain: str, requirement: Requirement, subject: str, policy: Policy
) -> Entry | None:
    """Return the newest override of this criterion for exactly this work by a person who is entitled to it."""
    for entry in reversed(entries):
        override = entry.content
        if not isinstance(override, Overridden) or override.text != requirement.text:
            continue
        if override.subject == subject and is_approval(entry, chain, policy):
            return entry if override.verdict in ("pass", "fail") else None
    return None


def has_override(entries: Sequence[Entry], requirement: Requirement) -> bool:
    """Whether the ledger has any override of this criterion, valid or not."""
    return any(isinstance(entry.content, Overridden) and entry.content.text == requirement.text for entry in entries)


def subject_of(workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry]) -> str:
    """Return the hash of the work that a person reviews for a criterion."""
    if requirement.check.kind == "judge":
        from donewhen.jobs.judge.judge_evidence import judge_question

        return judge_question(workspace, job, requirement, entries).subject
    result = result_manifest(workspace, job).hash
    # The result of a command depends on more than the outputs.
    return (
        digest_of([result, input_manifest(workspace, job).hash])
        if requirement.check.kind in ("run", "verification")
        else result
    )


def override_gate(
    workspace: Workspace,
    job: Job,
    criterion: str,
    verdict: Binary,
    reason: str,
    approval: Approval,
    *,
    seen: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> OverrideRecord:
    """Record an override. Raise UsageError if the work is no longer ``seen``, the subject that the person reviewed.

    An agent's override is recorded, but has no effect. ``about`` is added to the entry.
    """
    requirement = requirement_for(job, criterion)
    if requirement.check.kind not in _OVERRIDABLE:
        raise UsageError(
            f"{criterion} is checked by hand, so there is nothing to override.",
            next_step=f'donewhen sign-off {job.id} --criterion {criterion} --reason "…"',
        )
    with operation(workspace):
        return _override(workspace, job, requirement, verdict, reason, approval, seen, about)


def _override(
    workspace: Workspace,
    job: Job,
    requirement: Requirement,
    verdict: Binary,
    reason: str,
    approval: Approval,
    seen: str | None,
    about: Mapping[str, Any] | None,
) -> OverrideRecord:
    criterion = requirement.name
    with writing(workspace, job.path, job.id) as plan:
        chain = plan.chain
        policy = approval_policy(plan.snapshot)
        subject = subject_of(plan.snapshot, job, requirement, chain.entries)
        if seen is not None and subject != seen:
            raise UsageError(
                f"{job.id} changed during the review. Nothing was recorded.",
                next_step="Review it again: donewhen review",
            )
        history = history_of(job.id, chain.entries, policy)
        data: dict[str, Any] = {
            "criterion": criterion,
            "text": requirement.text,
            "verdict": verdict,
            "reason": reason.strip(),
            "subject": subject,
            **(about or {}),
        }
        counts = approval.counts(policy)
        # Resume a job whose dispute has no other open criterion. A question waits for its own answer.
        answered = bool(history.unanswered) and history.unanswered <= {criterion}
        resumed: dict[str, Value] = {"status": "in_progress", "updated_at": workspace.now()}
        # A person's rejection reopens a completed job.
        reopened = counts and verdict == "fail" and history.completed is not None
        writes = resumed if counts and answered and history.status == "blocked" else {}
        writes = {**resumed, "completed_at": ""} if reopened else writes
        entry = plan.append("overridden", data, approval, writes)
    if reopened:
        mark_parents_in_progress(workspace, job, policy, approval.by)
    return OverrideRecord(entry, is_approval(entry, job.id, policy))
