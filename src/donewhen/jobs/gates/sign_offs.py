"""Criteria that a person checks by hand: signed off, refused, or waiting for somebody to look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.jobs.contract.decisions import Decision, DecisionRecord, decide
from donewhen.jobs.contract.inputs import input_manifest, result_manifest
from donewhen.jobs.evidence.requirements import Requirement, requirement_for
from donewhen.jobs.ledger.approval import Approval, Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import SignedOff, SignOffRefused
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace


@dataclass(frozen=True)
class SignOff:
    """What people have said about a criterion that is checked by hand."""

    state: Literal["passed", "failed", "stale", "needs_human"]
    why: tuple[str, ...]
    entry: Entry | None


def sign_off_of(
    workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry], policy: Policy
) -> SignOff:
    """Return what the newest decision about a criterion says of the work as it is."""
    decisions = [entry for entry in reversed(entries) if _is_about(entry, requirement.text)]
    if not decisions:
        return SignOff("needs_human", ("nobody has signed it off yet",), None)
    # A decision that does not count does not replace an earlier valid one.
    entry = next((entry for entry in decisions if is_approval(entry, job.id, policy)), decisions[0])
    by = f"{entry.who} ({entry.by.kind})"
    if not is_approval(entry, job.id, policy):
        what = "signed off" if isinstance(entry.content, SignedOff) else "refused"
        return SignOff("needs_human", (f"{what} by {by}, which does not count",), entry)
    refusal = entry.content if isinstance(entry.content, SignOffRefused) else None
    try:
        now = result_manifest(workspace, job).hash if refusal is None else refused_subject(workspace, job)
    except DonewhenError as error:
        return SignOff("stale", (str(error),), entry)
    if _subject(entry) != now:
        what = "the outputs changed since it was signed off" if refusal is None else "the work changed since"
        return SignOff("needs_human", (what if refusal is None else f"{by} refused it, and {what}",), entry)
    if refusal is not None:
        return SignOff("failed", (f"{by} says that it is not met: {refusal.reason}",), entry)
    return SignOff("passed", (), entry)


def refuse_sign_off(workspace: Workspace, job: Job, criterion: str, reason: str, approval: Approval) -> DecisionRecord:
    """Record that a manual criterion is not met. That holds until the work changes."""
    requirement = manual_requirement(job, criterion)
    subject = refused_subject(workspace, job)
    value = {"criterion": requirement.name, "text": requirement.text, "subject": subject}
    return decide(workspace, job, Decision("refuse_sign_off", reason, value), approval)


def refused_subject(workspace: Workspace, job: Job) -> str:
    """Return the hash of the work that a person refused. Any change makes it other work: what is wrong with an output
    may have to be put right somewhere else."""
    return digest_of([result_manifest(workspace, job).hash, input_manifest(workspace, job).hash])


def manual_requirement(job: Job, criterion: str) -> Requirement:
    """Return the requirement of a manual criterion; raise UsageError if it is checked in another way."""
    requirement = requirement_for(job, criterion)
    if requirement.check.kind != "manual":
        raise UsageError(
            f"{criterion} can't be signed off: it is decided by its own check ({requirement.evidence}).",
            next_step=f"donewhen run {job.id}",
        )
    return requirement


def decisions_by_key(entries: Sequence[Entry], text: str, outputs: str) -> Sequence[Entry]:
    """Return the decisions that were signed with a key about a criterion and these outputs, newest first.

    A refusal is about more than the outputs, so it always counts as one of these.
    """
    signed = (entry for entry in entries if entry.by.kind == "key" and _is_about(entry, text))
    about = (entry for entry in signed if isinstance(entry.content, SignOffRefused) or _subject(entry) == outputs)
    return sorted(about, key=lambda entry: entry.seq, reverse=True)


def _is_about(entry: Entry, text: str) -> bool:
    content = entry.content
    return isinstance(content, SignedOff | SignOffRefused) and content.value.text == text


def _subject(entry: Entry) -> str | None:
    content = entry.content
    return content.value.subject if isinstance(content, SignedOff | SignOffRefused) else None
