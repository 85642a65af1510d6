"""What the dashboard's data is made of, and how it stands in its file: one job a line, one event a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

SCHEMA = "donewhen/dashboard/v2"
EVENTS = 100
"""So many of the newest events are shown."""


class GateReasonShown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a gate is closed: a code, and one sentence."""

    code: str
    says: str


class GateShown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A gate as it was when somebody last asked it; open without reasons."""

    gate: str
    open: bool
    reasons: tuple[GateReasonShown, ...]


class ScorePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A score that the ledger has: when, how much, and by which kind of event."""

    at: str
    score: int
    what: str


class StatusChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of status."""

    at: str
    status: str


class PlanPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a job's plan says."""

    id: str
    title: str
    status: str
    stakes: str
    priority: str
    wave: str
    depends_on: tuple[str, ...]
    due_date: str
    estimate_hours: float
    iteration: int
    max_iterations: int
    rework_count: int
    rework_reason: str
    target: int
    score: int | None
    evaluated_at: str
    truth: str
    next_action: str
    started_at: str
    completed_at: str
    updated_at: str


class ChainPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a job's chain says, but for what was merely run."""

    gates: tuple[GateShown, ...] = ()
    next_command: str = ""
    blocked_reason: str = ""
    receipt: str = ""
    scores: tuple[ScorePoint, ...] = ()
    moves: tuple[StatusChange, ...] = ()


class JobRow(PlanPart, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that the dashboard says of a job."""

    gates: tuple[GateShown, ...]
    next_command: str
    blocked_reason: str
    receipt: str
    scores: tuple[ScorePoint, ...]
    moves: tuple[StatusChange, ...]
    workstream: str
    workstream_title: str
    agreement: str
    tampered: tuple[str, ...]
    path: str


class EventRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event of any chain, in one sentence."""

    at: str
    chain: str
    seq: int
    type: str
    by: str
    kind: str
    says: str


class ProjectRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The project."""

    id: str
    title: str
    status: str
    agreement: str


class UnreadableJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job that can't be shown, and why."""

    where: str
    says: str


class Board(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole dashboard."""

    schema: str
    project: ProjectRow
    counts: dict[str, int]
    unread: tuple[UnreadableJob, ...]
    events: tuple[EventRow, ...]
    jobs: dict[str, JobRow]


def board_of(
    project: ProjectRow,
    jobs: Mapping[str, JobRow],
    events: Iterable[EventRow],
    unread: Iterable[UnreadableJob],
    statuses: Iterable[str],
) -> Board:
    """A board in its order, with its counts."""
    found = Counter(job.status for job in jobs.values())
    counts: dict[str, int] = {status: found[status] for status in statuses}
    return Board(SCHEMA, project, counts, tuple(unread), newest_events(events), dict(sorted(jobs.items())))


def newest_events(events: Iterable[EventRow]) -> tuple[EventRow, ...]:
    """The newest events, oldest first. Between chains the times, which are for display, must do."""
    return tuple(sorted(events, key=lambda event: (event.at, event.chain, event.seq))[-EVENTS:])


def encode_board(board: Board) -> bytes:
    """The board as its file has it. No ``<`` is left in it, so nothing in it can end the element of the page that
    holds the same bytes."""
    encode = _ENCODER.encode
    jobs = b",\n".join(b"%s: %s" % (encode(name), encode(one)) for name, one in board.jobs.items())
    parts = [
        b'{"schema": %s' % encode(board.schema),
        b'"project": %s' % encode(board.project),
        b'"counts": %s' % encode(board.counts),
        b'"unread": %s' % encode(board.unread),
        b'"events": [\n%s\n]' % b",\n".join(map(encode, board.events)),
        b'"jobs": {\n%s\n}}\n' % jobs,
    ]
    raw = b",\n".join(parts).replace(b"<", b"\\u003c")
    _remember(raw, board)
    return raw


def decode_board(raw: bytes) -> Board | None:
    """The board that a file holds, or None. One command looks several times, and thousands of jobs take a while."""
    if raw not in _KNOWN:
        _remember(raw, _understood(raw))
    return _KNOWN[raw]


def _understood(raw: bytes) -> Board | None:
    try:
        board = _DECODER.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    named = all(name == one.id for name, one in board.jobs.items())
    return board if board.schema == SCHEMA and named else None


def _remember(raw: bytes, board: Board | None) -> None:
    _KNOWN.clear()
    _KNOWN[raw] = board


_KNOWN: dict[bytes, Board | None] = {}
"""The last file that was read or made."""
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Board)
