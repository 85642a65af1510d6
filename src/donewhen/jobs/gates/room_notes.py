"""What is worth knowing about the rooms of a job's checks, and is no reason against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.gates.signs_for_person import sign_place
from donewhen.jobs.ledger.entry_content import CommandRun, RoomRun

_MAX_LISTED = 3
_MAX_NAME = 120


def room_notes(statuses: Sequence[EvidenceStatus]) -> tuple[str, ...]:
    """A sentence for each thing that the fresh runs of a job's commands have shown besides their result."""
    fresh = [status.entry.content for status in statuses if status.entry is not None and status.state != "stale"]
    runs = [run for run in fresh if isinstance(run, CommandRun) and run.room is not None]
    # What one check needs is a reason, not a note, although the others pass without it.
    passed = [run.room for run in runs if run.passed and run.room is not None]
    needed = [run.room for run in runs if not run.passed and run.room is not None]
    return tuple(_notes(passed, needed, [*passed, *needed]))


def _notes(passed: Sequence[RoomRun], needed: Sequence[RoomRun], rooms: Sequence[RoomRun]) -> Iterator[str]:
    outside = _names(name for room in passed for name in room.outside)
    if outside and not any(room.outside for room in needed):
        them = "it" if len(outside) == 1 else "them"
        yield f"{_listed(outside)} changed outside the work area; the checks pass without {them}"
    tests = _names(name for room in passed for name in room.tests)
    if tests and not any(room.tests for room in needed):
        yield f"{_listed(tests)} changed; the checks pass with the agreed tests, too"
    silenced = _names(sign_place(sign) for room in passed for sign in room.signs if not sign.asks)
    if silenced:
        yield f"comments that silence tools were added; the checks don't run these tools: {_listed(silenced)}"
    if any(room.provisional for room in rooms):
        yield "files that came from the server's branch are provisional until CI: the server could not be asked"
    left_out = _names(name for room in rooms for name in room.left_out)
    if left_out:
        yield f"left out, because they lead out of the project or can't be read: {_listed(left_out)}"
    renamed = _names(f"{old} → {new}" for room in passed for old, new in room.renamed.items())
    if renamed:
        yield f"renamed tests count as the same: {_listed(renamed)}"


def _names(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _listed(names: Sequence[str]) -> str:
    return join_limited([one_line(name, _MAX_NAME) for name in names], _MAX_LISTED)
