"""The event log of a run. All other files of a run are derived from it."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import msgspec

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.files import read_lines
from donewhen.foundation.size_limits import RUN_EVENT
from donewhen.foundation.typed_content import content_as
from donewhen.learning.running.event_content import EventContent, decode_content

EventType = Literal[
    "run_started",
    "evaluated",
    "epoch_started",
    "rolled",
    "selected",
    "decided",
    "proposed",
    "closed",
    "supported",
    "trialled",
    "guidance_changed",
    "fated",
    "queued",
    "credited",
    "epoch_ended",
    "assessed",
    "budget_hit",
    "run_finished",
]

FORMAT = 2
"""The format of new events; events that name none have format 1, which differs in nothing else."""
_BLOCK = 1 << 16
_T = TypeVar("_T", bound=EventContent)
_TYPES: frozenset[str] = frozenset(get_args(EventType))


class RunError(DonewhenError):
    """A run can't continue, or can't be read."""

    code = "run"
    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One event of a run. ``data`` is the content as written, ``content`` the same as a typed value."""

    number: int
    type: EventType
    at: str
    data: Mapping[str, Any]
    spent: Mapping[str, float]
    """The cost of the run up to this event."""
    content: EventContent = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", decode_content(self.type, self.data))

    def read_as(self, kind: builtins.type[_T]) -> _T:
        """The content, for a caller who knows its kind."""
        return content_as(self.content, kind, "Event", self.number)

    @property
    def substance(self) -> tuple[str, bytes]:
        """The event without its time and cost, for comparison."""
        return self.type, canonical_json(self.data)


class EventLog:
    """The append-only event log of a run, with one writer. Recorded events are read on demand."""

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = path
        self._clock = clock
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        _cut_torn_line(path)
        self._earlier = _iterate_events(path, path.stat().st_size)
        self._count = 0

    @property
    def recorded(self) -> tuple[RunEvent, ...]:
        """All events in the file."""
        return read_events(self.path)

    def earlier(self) -> RunEvent | None:
        """The next event that was recorded before the log was opened; None after the last."""
        event = next(self._earlier, None)
        self._count += event is not None
        return event

    def append(self, kind: EventType, data: Mapping[str, Any], spent: Mapping[str, float]) -> RunEvent:
        """Append an event and flush it, so that it survives if the process is killed."""
        # Round-trip, so that the event equals what is read from the file: tuples become lists.
        content = json.loads(canonical_json(data))
        at = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        event = RunEvent(self._count + 1, kind, at, content, dict(spent))
        row = {"number": event.number, "type": kind, "at": at, "data": content, "spent": event.spent, "v": FORMAT}
        try:
            self._file.write(canonical_json(row) + b"\n")
            self._file.flush()
        except OSError as error:
            raise RunError(
                f"An event can't be written: {error.strerror}.",
                where=str(self.path),
                next_step="Free disk space, then: donewhen learn --resume",
            ) from error
        self._count += 1
        return event

    def close(self) -> None:
        os.fsync(self._file.fileno())
        self._file.close()


def _cut_torn_line(path: Path) -> None:
    """Remove an incomplete last line, left by a writer that was killed."""
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        tail = b""
        while size and b"\n" not in tail:
            step = min(_BLOCK, size)
            size -= step
            file.seek(size)
            tail = file.read(step) + tail
        if tail and not tail.endswith(b"\n"):
            file.truncate(size + tail.rfind(b"\n") + 1)


def read_events(path: Path) -> tuple[RunEvent, ...]:
    """Read the events of a run; an incomplete last line is ignored."""
    return tuple(_iterate_events(path))


def each_event(path: Path) -> Iterator[RunEvent]:
    """Iterate over the events of a run without loading them all."""
    return _iterate_events(path)


def first_event(path: Path) -> RunEvent | None:
    """The first event of a run, which holds its manifest; None if there is none."""
    return next(_iterate_events(path), None)


def _iterate_events(path: Path, up_to: int | None = None) -> Iterator[RunEvent]:
    position = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(read_lines(file, RUN_EVENT, path), 1):
                position += len(line)
                if up_to is not None and position > up_to:
                    return
                if line.endswith(b"\n"):
                    yield _parse_event(line, number, f"{path}:{number}")
    except OSError as error:
        raise RunError(f"The events of the run can't be read: {error.strerror}.", where=str(path)) from error


def _parse_event(line: bytes, number: int, where: str) -> RunEvent:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RunError(f"The line is not an event: {error}.", where=where) from error
    if not isinstance(row, dict):
        raise RunError("The line is not an event.", where=where)
    version = row.get("v", 1)
    if type(version) is int and version > FORMAT:
        raise RunError(
            f"A newer version of donewhen wrote this run (format {version}; this version reads up to {FORMAT}).",
            where=where,
            next_step="Update donewhen. Nothing was changed.",
        )
    if missing := sorted({"number", "type", "at", "data", "spent"} - row.keys()):
        raise RunError(f"The line is not an event: it has no {missing[0]!r}.", where=where)
    kind, spent = row["type"], row["spent"]
    known = isinstance(kind, str) and kind in _TYPES
    costs = isinstance(spent, dict) and all(type(value) in (int, float) for value in spent.values())
    if row["number"] != number or not (
        known and costs and isinstance(row["data"], dict) and isinstance(row["at"], str)
    ):
        raise RunError(f"The line is not a valid event with number {number}.", where=where)
    try:
        return RunEvent(number, row["type"], row["at"], row["data"], row["spent"])
    except msgspec.ValidationError as error:
        raise RunError(f"The content of the event {row['type']!r} is invalid: {error}.", where=where) from error
