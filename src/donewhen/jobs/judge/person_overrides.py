"""A person who sees it otherwise than the gate: their word on one criterion, on record with their name.

It holds for the work as it was when they looked at it. What changes afterwards has to be shown, or looked at, again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.inputs import input_manifest, result_manifest
from donewhen.jobs.evidence.requirements import Requirement, requirement_for
from donewhen.jobs.ledger.approval import Approval, Policy, is_approval
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.parents import mark_parents_in_progress
from donewhen.jobs.record.projection import finish_interrupted_write, record_and_project

Word = Literal["pass", "fail"]
_LEGAL = ("run", "file", "judge", "verification")


class OverrideRecord(NamedTuple):
    """The record of a word, and whether it counts."""

    entry: Entry
    counts: bool


def newest_override(
    entries: Sequence[Entry], chain: str, requirement: Requirement, subject: str, policy: Policy
) -> Entry | None:
    """The last word of somebody whose word counts, on this criterion, about just this work."""
    for entry in reversed(entries):
        if entry.type != "overridden" or entry.data.get("text") != requirement.text:
            continue
        if entry.data.get("subject") == subject and is_approval(entry, chain, policy):
            return entry if entry.data.get("verdict") in ("pass", "fail") else None
    return None


def has_override(entries: Sequence[Entry], requirement: Requirement) -> bool:
    """Whether anybody has ever said something about this criterion."""
    return any(entry.type == "overridden" and entry.data.get("text") == requirement.text for entry in entries)


def subject_of(workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry]) -> str:
    """The name of what a person looks at who judges a criterion."""
    if requirement.check.kind == "judge":
        from donewhen.jobs.judge.judge_evidence import judge_question

        return judge_question(workspace, job, requirement, entries).subject
    result = result_manifest(workspace, job).hash
    # What a command says depends on more than the outputs, and all of that was shown.
    return (
        digest_of([result, input_manifest(workspace, job).hash])
        if requirement.check.kind in ("run", "verification")
        else result
    )


def override_gate(
    workspace: Workspace,
    job: Job,
    criterion: str,
    verdict: Word,
    reason: str,
    approval: Approval,
    *,
    seen: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> OverrideRecord:
    """Put a person's word on record. ``seen`` is the subject that they were shown: it must not have changed meanwhile.

    An agent's word is recorded as what it is, and changes nothing. ``about`` is kept with it.
    """
    requirement = requirement_for(job, criterion)
    if requirement.check.kind not in _LEGAL:
        raise UsageError(
            f"{criterion} is checked by hand, so there is nothing to overrule.",
            next_step=f'donewhen sign-off {job.id} --criterion {criterion} --reason "…"',
        )
    with workspace.locked(job.path):
        chain = workspace.ledger.read(job.id)
        document = finish_interrupted_write(workspace, workspace.read(job.path), job.path, chain.entries)
        policy = approval_policy(workspace)
        subject = subject_of(workspace, job, requirement, chain.entries)
        if seen is not None and subject != seen:
            raise UsageError(
                f"{job.id} was changed while it was being looked at, so nothing was recorded.",
                next_step="Look at it again: donewhen review",
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
        # Whoever waited for a person's answer has it now; of a dispute, all of it.
        answered = history.waiting is not None and history.unanswered <= {criterion}
        going_on: dict[str, Value] = {"status": "in_progress", "updated_at": workspace.now()}
        # What a person does not accept is not done, whoever has promised it.
        reopened = counts and verdict == "fail" and history.completed is not None
        writes = going_on if counts and answered and history.status == "blocked" else {}
        writes = {**going_on, "completed_at": ""} if reopened else writes
        entry, _ = record_and_project(workspace, job.id, document, job.path, "overridden", data, approval, writes)
    if reopened:
        mark_parents_in_progress(workspace, job, policy, approval.by)
    return OverrideRecord(entry, is_approval(entry, job.id, policy))
