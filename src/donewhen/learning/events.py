"""What happened in a run, in the order it happened. Everything else that a run leaves behind is made from this."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.errors import DonewhenError, ExitCode

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
    "budget_hit",
    "run_finished",
]

_TYPES: frozenset[str] = frozenset(get_args(EventType))


class RunError(DonewhenError):
    """A run can't go on, or can't be read."""

    code = "run"
    exit_code = ExitCode.USAGE


class Event(NamedTuple):
    """One thing that happened."""

    number: int
    type: EventType
    at: str
    data: Mapping[str, Any]
    spent: Mapping[str, float]
    """What the run had cost by then."""

    @property
    def substance(self) -> tuple[str, bytes]:
        """The event without its time."""
        return self.type, canonical_json(self.data)


class EventLog:
    """The events of one run in a file that only grows. One writer."""

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = path
        self._clock = clock
        path.parent.mkdir(parents=True, exist_ok=True)
        self.recorded = list(read_events(path)) if path.exists() else []
        self._file = path.open("ab")
        if path.stat().st_size:
            self._cut_torn_line()

    def append(self, kind: EventType, data: Mapping[str, Any], spent: Mapping[str, float]) -> Event:
        """Write an event down; when this returns, a process that is killed has not lost it."""
        # As it will be read again: what was a tuple comes back as a list.
        content = json.loads(canonical_json(data))
        at = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        event = Event(len(self.recorded) + 1, kind, at, content, dict(spent))
        row = {"number": event.number, "type": kind, "at": at, "data": content, "spent": event.spent}
        try:
            self._file.write(canonical_json(row) + b"\n")
            self._file.flush()
        except OSError as error:
            raise RunError(
                f"An event can't be written: {error.strerror}.",
                where=str(self.path),
                next_step="Make room, then: donewhen learn --resume",
            ) from error
        self.recorded.append(event)
        return event

    def close(self) -> None:
        os.fsync(self._file.fileno())
        self._file.close()

    def _cut_torn_line(self) -> None:
        """A writer that was cut off has left half a line; what it had not finished has not happened."""
        content = self.path.read_bytes()
        if not content.endswith(b"\n"):
            os.truncate(self.path, content.rfind(b"\n") + 1)


def read_events(path: Path) -> tuple[Event, ...]:
    """The events of a run; half a line at the end is left out."""
    return tuple(_events(path))


def first_event(path: Path) -> Event | None:
    """The first event of a run, which says what it began with."""
    return next(_events(path), None)


def _events(path: Path) -> Iterator[Event]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield _event(line, number, f"{path}:{number}")
    except OSError as error:
        raise RunError(f"The events of the run can't be read: {error.strerror}.", where=str(path)) from error


def _event(line: bytes, number: int, where: str) -> Event:
    try:
        row = json.loads(line)
        event = Event(row["number"], row["type"], row["at"], row["data"], row["spent"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"The line is not an event: {error}.", where=where) from error
    if event.number != number or event.type not in _TYPES or not isinstance(event.data, dict):
        raise RunError("The line is not the event that belongs here.", where=where)
    return event
