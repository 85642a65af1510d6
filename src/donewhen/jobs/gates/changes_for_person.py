"""Changes that only a person can decide about: files outside the work area, and tests, that a check does not pass
without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import ChangesRefused
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import basis_of
from donewhen.jobs.room.reading import read_rooms
from donewhen.jobs.room.room_plan import Change, RoomPlan

AcceptedKind = Literal["work", "tests"]

ASKED: Mapping[str, tuple[AcceptedKind, ...]] = {
    # The second run has the changed tests, too, so that one answer is enough.
    "outside_work_area": ("work", "tests"),
    "tests_changed": ("tests",),
}
"""The kinds of changes that a check may need, by what a person has to decide."""


def changes_of(plan: RoomPlan, kind: AcceptedKind) -> tuple[Change, ...]:
    """The changes of a kind that nobody has accepted."""
    return plan.tests if kind == "tests" else plan.outside


def refusal_of(workspace: Workspace, job: Job, needs: str, entries: Sequence[Entry], policy: Policy) -> Entry | None:
    """The newest refusal by a person of all the changes that a check needs now; None if there is none. Other contents
    than those that were refused are a new question."""
    refusals = [
        (entry, entry.content.value.files)
        for entry in reversed(entries)
        if isinstance(entry.content, ChangesRefused) and is_approval(entry, job.id, policy)
    ]
    if not refusals:
        return None
    files = open_files(workspace, job, needs)
    return next((entry for entry, refused in refusals if files and files.items() <= refused.items()), None)


def open_files(workspace: Workspace, job: Job, needs: str) -> Mapping[str, str]:
    """The changes that a check may need and that nobody has accepted: names with the names of their contents."""
    basis = basis_of(workspace, job)
    if basis is None:
        return {}
    return workspace.once(("open files", job.path, needs, basis.hash), lambda: _open_files(workspace, job, needs))


def _open_files(workspace: Workspace, job: Job, needs: str) -> Mapping[str, str]:
    with read_rooms(workspace, job) as reading:
        plan = None if reading is None else reading.plan
    kinds = ASKED.get(needs, ())
    return {} if plan is None else {change.name: change.blob for kind in kinds for change in changes_of(plan, kind)}
