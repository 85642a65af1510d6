"""The dashboard's data, and its file format: one job per line, one event per line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from donewhen.dashboard.original_parts import TOKENS, StatsRow, encode_workstreams, newest_time, number_of_workstreams

SCHEMA = "donewhen/dashboard/v4"
EVENTS = 100
"""Number of newest events on the dashboard."""


class GateReasonRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a gate is closed: a code and a sentence."""

    code: str
    says: str


class GateRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a gate at its last evaluation; an open gate has no reasons."""

    gate: str
    open: bool
    reasons: tuple[GateReasonRow, ...]


class ScorePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A score in the ledger: time, score and type of event."""

    at: str
    score: int
    what: str


class StatusChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of a job's status."""

    at: str
    status: str


class PlanPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields that come from a job's plan."""

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
    """The fields that come from a job's chain; runs are left out."""

    gates: tuple[GateRow, ...] = ()
    blocked_reason: str = ""
    receipt: str = ""
    scores: tuple[ScorePoint, ...] = ()
    moves: tuple[StatusChange, ...] = ()


class StateRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a job, the code of the main reason, and the next step."""

    state: str
    code: str
    next_command: str


class JobRow(PlanPart, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All fields of a job on the dashboard."""

    state: str
    code: str
    next_command: str
    alone: StateRow | None
    """The state without its project and its dependencies; None if it is the same."""
    gates: tuple[GateRow, ...]
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
    """An event of any chain, with a sentence."""

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
    """A job that can't be read, and why."""

    where: str
    says: str


class Board(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole dashboard."""

    schema: str
    generated_at: str
    """The time of the newest event, so that the same state always gives the same file."""
    project: ProjectRow
    counts: dict[str, int]
    stats: StatsRow
    tokens: dict[str, str]
    unread: tuple[UnreadableJob, ...]
    events: tuple[EventRow, ...]
    workstreams: msgspec.Raw
    """For readers of the original tool: the rows again, by workstream. donewhen itself doesn't read them."""
    jobs: dict[str, JobRow]


def board_of(
    project: ProjectRow,
    jobs: Mapping[str, JobRow],
    events: Iterable[EventRow],
    unread: Iterable[UnreadableJob],
    statuses: Iterable[str],
) -> Board:
    """Build a sorted board with its counts."""
    by_status = Counter(job.status for job in jobs.values())
    counts: dict[str, int] = {status: by_status[status] for status in statuses}
    rows = dict(sorted(jobs.items()))
    newest = newest_events(events)
    return Board(
        schema=SCHEMA,
        generated_at=newest_time(newest, rows.values()),
        project=project,
        counts=counts,
        stats=StatsRow(number_of_workstreams(rows.values()), len(rows), counts),
        tokens=dict(TOKENS),
        unread=tuple(unread),
        events=newest,
        workstreams=msgspec.Raw(encode_workstreams(project, rows.values())),
        jobs=rows,
    )


def newest_events(events: Iterable[EventRow]) -> tuple[EventRow, ...]:
    """The newest events, oldest first. Chains are merged by time, which is good enough for display."""
    return tuple(sorted(events, key=lambda event: (event.at, event.chain, event.seq))[-EVENTS:])


def encode_board(board: Board) -> bytes:
    """Encode the board for its file. ``<`` is escaped, so that nothing in it can end the page's element that holds
    the same bytes."""
    encode = _ENCODER.encode
    jobs = b",\n".join(b"%s: %s" % (encode(name), encode(job)) for name, job in board.jobs.items())
    parts = [
        b'{"schema": %s' % encode(board.schema),
        b'"generated_at": %s' % encode(board.generated_at),
        b'"project": %s' % encode(board.project),
        b'"counts": %s' % encode(board.counts),
        b'"stats": %s' % encode(board.stats),
        b'"tokens": %s' % encode(board.tokens),
        b'"unread": %s' % encode(board.unread),
        b'"events": [\n%s\n]' % b",\n".join(map(encode, board.events)),
        b'"workstreams": %s' % bytes(board.workstreams),
        b'"jobs": {\n%s\n}}\n' % jobs,
    ]
    raw = b",\n".join(parts).replace(b"<", b"\\u003c")
    _keep(raw, board)
    return raw


def decode_board(raw: bytes) -> Board | None:
    """Decode a board, or return None. Cached, because one command decodes it several times and thousands of jobs take
    a while."""
    # Compared, not looked up: hashing megabytes takes longer than comparing them.
    for seen, board in _LAST:
        if seen == raw:
            return board
    return _keep(raw, _decode(raw))


def _decode(raw: bytes) -> Board | None:
    try:
        board = _DECODER.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    named = all(name == job.id for name, job in board.jobs.items())
    return board if board.schema == SCHEMA and named else None


def _keep(raw: bytes, board: Board | None) -> Board | None:
    _LAST[:] = [(raw, board)]
    return board


_LAST: list[tuple[bytes, Board | None]] = []
"""The last file that was read or written."""
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Board)
