"""Deciding about what a job has changed outside of its work area, or in its tests: with the content that was shown."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from donewhen.foundation.plain_text import one_line, shorten
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import DecisionRecord
from donewhen.jobs.evidence.environment import EnvironmentNow, environment_now
from donewhen.jobs.gates.changes_for_person import AcceptedKind as AcceptedKind
from donewhen.jobs.gates.changes_for_person import changes_of
from donewhen.jobs.ledger.approval import Approval, is_approval
from donewhen.jobs.ledger.entry_content import AgreedEnvironment
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import operation, writing
from donewhen.jobs.room.agreed_tree import place_of
from donewhen.jobs.room.reading import RoomReading, read_rooms
from donewhen.jobs.room.room_plan import Change
from donewhen.jobs.room.surroundings import current_places, surroundings_of

_MAX_BYTES = 1 << 20
_MAX_LINES = 2000
_HEAD_LINES = 2
"""The names, which are shown of every file."""
_MAX_WIDTH = 1000


@dataclass(frozen=True)
class OpenChanges:
    """Changes that a person has to decide about."""

    what: AcceptedKind
    files: Mapping[str, str]
    """Names with the names of their contents; empty for a removed file."""
    diffs: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The difference of each file to the agreed one, as lines of text."""

    @property
    def diff(self) -> str:
        """All differences as one text."""
        return "\n".join(self.diffs.values())


def open_changes(workspace: Workspace, job: Job, what: AcceptedKind) -> OpenChanges:
    """The changes of a job outside of its work area, or of tests, that nobody has accepted."""
    return all_open_changes(workspace, job, [what])[0]


def all_open_changes(workspace: Workspace, job: Job, kinds: Sequence[AcceptedKind]) -> tuple[OpenChanges, ...]:
    """The changes of each of these kinds that nobody has accepted, read at one moment."""
    with read_rooms(workspace, job) as reading:
        return tuple(OpenChanges(what, {}) if reading is None else _open_changes(reading, what) for what in kinds)


def accept_changes(
    workspace: Workspace, job: Job, changes: OpenChanges, reason: str, approval: Approval
) -> DecisionRecord:
    """Record that these contents are accepted. By an agent, it has no effect."""
    return _decide(workspace, job, "accept_changes", changes, reason, approval)


def note_for_ci(workspace: Workspace, job: str, kinds: Sequence[AcceptedKind], approval: Approval) -> str | None:
    """What is missing before CI counts an acceptance; None if nothing is."""
    if approval.by.kind == "key" or not place_of(workspace).has_git:
        return None
    options = " and ".join(f"donewhen agree {job} --{kind} --key FILE" for kind in kinds)
    return f"In CI it does not count yet: merge this agreement to the base branch first, or sign it: {options}"


def refuse_changes(
    workspace: Workspace, job: Job, changes: OpenChanges, reason: str, approval: Approval
) -> DecisionRecord:
    """Record that these contents are refused: checks that need them fail until the contents change, or a person accepts
    them. By an agent, it has no effect."""
    return _decide(workspace, job, "refuse_changes", changes, reason, approval)


def environment_differences(workspace: Workspace, job: Job) -> EnvironmentNow | None:
    """The programs and packages that the checks of a job find here, and how they differ from what was accepted; None if
    the job's agreement says nothing about them."""
    with read_rooms(workspace, job) as reading:
        if reading is None or reading.basis.environment is None:
            return None
        network = reading.basis.environment.network
        places = msgspec.structs.replace(current_places(workspace), network=network)
        return environment_now(workspace, reading, surroundings_of(workspace, places))


def accept_environment(
    workspace: Workspace, job: Job, environment: AgreedEnvironment, reason: str, approval: Approval
) -> DecisionRecord:
    """Record that these programs and packages are accepted on this machine. By an agent, it has no effect."""
    value = msgspec.to_builtins(environment)
    data = {"decision": "accept_environment", "reason": reason.strip(), "value": value}
    return _record(workspace, job, data, approval)


def _decide(
    workspace: Workspace,
    job: Job,
    decision: Literal["accept_changes", "refuse_changes"],
    changes: OpenChanges,
    reason: str,
    approval: Approval,
) -> DecisionRecord:
    data = {
        "decision": decision,
        "reason": reason.strip(),
        "value": {"what": changes.what, "files": dict(changes.files)},
    }
    return _record(workspace, job, data, approval)


def _record(workspace: Workspace, job: Job, data: Mapping[str, Any], approval: Approval) -> DecisionRecord:
    with operation(workspace), writing(workspace, job.path, job.id) as plan:
        policy = approval_policy(plan.snapshot)
        entry = plan.append("decided", data, approval)
    return DecisionRecord(entry, is_approval(entry, job.id, policy), {})


def _open_changes(reading: RoomReading, what: AcceptedKind) -> OpenChanges:
    changes = changes_of(reading.plan, what)
    diffs: dict[str, str] = {}
    # A long file must not hide the others.
    most = max(_MAX_LINES // max(1, len(changes)), _HEAD_LINES)
    for change in changes:
        lines = [shorten(line, _MAX_WIDTH) for line in _diff(reading, change)]
        rest = [f"[… {len(lines) - most} more lines]"] if len(lines) > most else []
        diffs[change.name] = "\n".join([*lines[:most], *rest])
    return OpenChanges(what, {change.name: change.blob for change in changes}, diffs)


def _diff(reading: RoomReading, change: Change) -> Iterator[str]:
    old = reading.agreed.files.get(change.name)
    before = _content(reading, change.name, "" if old is None else old.blob)
    after = _content(reading, change.name, change.blob)
    title = one_line(change.name, 300)
    yield f"--- {title if old is not None else '(new file)'}"
    yield f"+++ {title if change.blob else '(removed)'}"
    texts = [_lines(content) for content in (before, after)]
    if texts[0] is None or texts[1] is None:
        yield f"[not a text, or too large to show, {change.blob[:12]}]"
        return
    yield from list(difflib.unified_diff(texts[0], texts[1], lineterm="", n=3))[2:]


def _content(reading: RoomReading, name: str, blob: str) -> bytes:
    return next(iter([*reading.blobs.contents([(name, blob)])])) if blob else b""


def _lines(content: bytes) -> list[str] | None:
    if len(content) > _MAX_BYTES or b"\0" in content:
        return None
    return content.decode("utf-8", "replace").splitlines()
