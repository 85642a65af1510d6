"""Review items from lines of the work that reach for what tests it, or silence or mimic a check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.commands import newest_run
from donewhen.jobs.evidence.conditions import evidence_inputs
from donewhen.jobs.evidence.requirements import VERIFICATION, requirements_of
from donewhen.jobs.gates.signs_for_person import decisions_on_signs, open_signs, refusal_of_signs, sign_meaning
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import CommandRun
from donewhen.jobs.lifecycle.deciding_signs import OpenSigns, accept_signs, open_signs_of, refuse_signs
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import operation
from donewhen.jobs.room.basis import basis_of
from donewhen.review.items import ReviewItem


def sign_items(workspace: Workspace, job: Job, entries: Sequence[Entry], policy: Policy) -> Iterator[ReviewItem]:
    """Yield the item about the lines of a job's work that nobody has decided about yet, if its checks have passed."""
    waiting = _waiting_checks(workspace, job, entries, policy)
    if not waiting:
        return
    signs = open_signs_of(workspace, job)
    if not signs.signs or refusal_of_signs(signs.signs, decisions_on_signs(job.id, entries, policy)) is not None:
        return
    kinds = dict.fromkeys(sign.kind for sign in signs.signs)
    yield ReviewItem(
        kind="signs_found",
        title=f"{job.id}  {one_line(job.title, 120)}",
        question=f"Accept {len(signs.signs)} place(s) in {len(signs.files)} file(s) with exactly these lines?",
        why=one_line(" ".join(sign_meaning(kind) for kind in kinds), 800),
        since=min(entry.at for _, entry in waiting),
        evidence=dict(signs.texts),
        job=job.id,
        criteria=tuple(dict.fromkeys(name for name, _ in waiting if name != VERIFICATION)),
        subject=_subject(signs),
        next=f"donewhen why {job.id}",
        files={name: ",".join(ids) for name, ids in signs.files.items()},
    )


def decide_signs(
    workspace: Workspace, item: ReviewItem, job: Job, approval: Approval, reason: str, *, accepted: bool
) -> tuple[Entry, bool]:
    """Accept or refuse the lines of an item; return the entry, and whether it counts.

    Raise UsageError if the lines have changed since the item was shown.
    """
    with operation(workspace):
        signs = open_signs_of(workspace, job)
        if _subject(signs) != item.subject:
            raise UsageError(
                f"The lines of {job.id} changed since they were shown. Nothing was recorded.",
                next_step="Review them again: donewhen review",
            )
        decide = accept_signs if accepted else refuse_signs
        record = decide(workspace, job, signs, reason, approval)
    return record.entry, record.counts


def _waiting_checks(
    workspace: Workspace, job: Job, entries: Sequence[Entry], policy: Policy
) -> list[tuple[str, Entry]]:
    """The checks that have passed on the work as it is now, and wait for a person because of its lines."""
    decisions = decisions_on_signs(job.id, entries, policy)
    found: list[tuple[str, Entry]] = []
    for requirement in requirements_of(job):
        entry = newest_run(entries, requirement.evidence) if requirement.check.kind == "run" else None
        run = None if entry is None else entry.read_as(CommandRun)
        if entry is None or run is None or run.room is None or not run.settled or not run.passed:
            continue
        if open_signs(run.room.signs, decisions):
            found.append((requirement.name, entry))
    basis = basis_of(workspace, job) if found else None
    if basis is None:
        return []
    now = {"inputs": evidence_inputs(workspace, job).hash, "room": basis.hash}
    return [(name, entry) for name, entry in found if now.items() <= entry.read_as(CommandRun).parts.items()]


def _subject(signs: OpenSigns) -> str:
    return digest_of(signs.files) if signs.signs else ""
