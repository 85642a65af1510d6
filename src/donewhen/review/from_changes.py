"""Review items from changes that a check needs and that a job may not make by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.commands import newest_run
from donewhen.jobs.evidence.conditions import evidence_inputs
from donewhen.jobs.evidence.failures import failure_text
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement, requirements_of
from donewhen.jobs.gates.changes_for_person import ASKED, refusal_of
from donewhen.jobs.judge.person_overrides import has_override, newest_override, subject_of
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import CommandRun
from donewhen.jobs.lifecycle.accepting import OpenChanges, accept_changes, all_open_changes, refuse_changes
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import operation
from donewhen.jobs.room.basis import basis_of
from donewhen.review.items import Kind, ReviewItem


class _Waiting(NamedTuple):
    """A check whose newest run needs changes that a person has to accept."""

    requirement: Requirement
    entry: Entry
    needs: str


def change_items(workspace: Workspace, job: Job, entries: Sequence[Entry], policy: Policy) -> Iterator[ReviewItem]:
    """Yield the item about the changes that the checks of a job need, if they were not decided about yet."""
    waiting = _waiting_checks(workspace, job, entries, policy)
    if not waiting:
        return
    needs: Kind = (
        "outside_work_area" if any(check.needs == "outside_work_area" for check in waiting) else "tests_changed"
    )
    changes = all_open_changes(workspace, job, ASKED[needs])
    files = _files(changes)
    if not files or refusal_of(workspace, job, needs, entries, policy) is not None:
        return
    names = tuple(dict.fromkeys(check.requirement.name for check in waiting))
    reasons = (_reason(check) for check in waiting)
    yield ReviewItem(
        kind=needs,
        title=f"{job.id}  {one_line(job.title, 120)}",
        question=_question(files, needs),
        why=one_line("; ".join(dict.fromkeys(reasons)), 800),
        since=min(check.entry.at for check in waiting),
        evidence=_evidence(changes, files),
        job=job.id,
        criteria=tuple(name for name in names if name != VERIFICATION),
        subject=_subject(changes),
        next=f"donewhen why {job.id}",
        files=files,
    )


def decide_changes(
    workspace: Workspace, item: ReviewItem, job: Job, approval: Approval, reason: str, *, accepted: bool
) -> tuple[Entry, bool]:
    """Accept or refuse the changes of an item; return the last entry, and whether it counts.

    Raise UsageError if a file has changed since the item was shown.
    """
    with operation(workspace):
        changes = all_open_changes(workspace, job, ASKED[item.kind])
        if _subject(changes) != item.subject:
            raise UsageError(
                f"The files of {job.id} changed since they were shown. Nothing was recorded.",
                next_step="Review them again: donewhen review",
            )
        if not accepted:
            all_of_it = OpenChanges(changes[0].what, _files(changes))
            record = refuse_changes(workspace, job, all_of_it, reason, approval)
            return record.entry, record.counts
        records = [accept_changes(workspace, job, change, reason, approval) for change in changes if change.files]
    return records[-1].entry, all(record.counts for record in records)


def _waiting_checks(workspace: Workspace, job: Job, entries: Sequence[Entry], policy: Policy) -> list[_Waiting]:
    """The checks that need changes, if the work is as it was then. Nothing else is compared: the reviewer's environment
    is seldom the agent's."""
    found = []
    for requirement in requirements_of(job):
        entry = newest_run(entries, requirement.evidence) if requirement.check.kind == "run" else None
        run = None if entry is None else entry.read_as(CommandRun)
        if entry is not None and run is not None and run.settled and run.room is not None and run.room.needs in ASKED:
            found.append(_Waiting(requirement, entry, run.room.needs))
    basis = basis_of(workspace, job) if found else None
    if basis is None:
        return []
    now = {"inputs": evidence_inputs(workspace, job).hash, "room": basis.hash}
    return [
        check
        for check in found
        if now.items() <= check.entry.read_as(CommandRun).parts.items()
        and not _is_overridden(workspace, job, check.requirement, entries, policy)
    ]


def _is_overridden(
    workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry], policy: Policy
) -> bool:
    if requirement.name == VERIFICATION or not has_override(entries, requirement):
        return False
    subject = subject_of(workspace, job, requirement, entries)
    return newest_override(entries, job.id, requirement, subject, policy) is not None


def _evidence(changes: Sequence[OpenChanges], files: Mapping[str, str]) -> dict[str, str]:
    """The difference of each file, by its name; of several files also a list."""
    diffs = {name: diff for change in changes for name, diff in change.diffs.items()}
    listed = [one_line(name, 300) if blob else f"{one_line(name, 300)} (removed)" for name, blob in files.items()]
    return {"changed files": "\n".join(listed), **diffs} if len(listed) > 1 else diffs


def _question(files: Mapping[str, str], needs: str) -> str:
    what = "changed test file(s)" if needs == "tests_changed" else "changed file(s)"
    return f"Accept {len(files)} {what} with exactly this content?"


def _reason(check: _Waiting) -> str:
    requirement = check.requirement
    name = f"`{requirement.evidence}`" if requirement.name == VERIFICATION else requirement.name
    return f"{name}: {failure_text(check.entry.read_as(CommandRun))}"


def _files(changes: Sequence[OpenChanges]) -> dict[str, str]:
    return {name: blob for change in changes for name, blob in change.files.items()}


def _subject(changes: Sequence[OpenChanges]) -> str:
    files = _files(changes)
    return digest_of(files) if files else ""
