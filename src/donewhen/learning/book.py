"""The labelled tickets of a mission, found by their keys. What is kept in memory is where they stand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from donewhen.judging.mission import Mission
from donewhen.judging.ticket import Ticket, TicketError, from_lines, parse_ticket
from donewhen.learning.splits import Member

_AT_HAND = 4096


class Book:
    """Opened once for a run; the files must stay what they were."""

    def __init__(self, mission: Mission) -> None:
        self._mission = mission.name
        self.members: list[Member] = []
        self._places: dict[str, tuple[Path, int, str]] = {}
        content = hashlib.sha256()
        seen: dict[bytes, str] = {}
        for path in mission.ticket_files:
            for number, line, start in _lines(path):
                content.update(line)
                for found in from_lines([line], str(path), self._mission, seen, first=number):
                    if isinstance(found, TicketError):
                        raise found
                    if found.label is not None:
                        self.members.append(Member(found.key, found.group_id, found.cluster, found.label))
                        self._places[found.key] = (path, start, f"{path}:{number}")
        self.hash = f"sha256:{content.hexdigest()}"
        self.ticket = lru_cache(maxsize=_AT_HAND)(self._read)
        if not self.members:
            raise TicketError("There are no tickets.", where=", ".join(map(str, mission.ticket_files)))

    def tickets(self, keys: Sequence[str]) -> Iterator[Ticket]:
        """Tickets by their keys, as they are wanted."""
        return (self.ticket(key) for key in keys)

    def _read(self, key: str) -> Ticket:
        path, start, where = self._places[key]
        with path.open("rb") as file:
            file.seek(start)
            line = file.readline()
        ticket = parse_ticket(line, where, self._mission)
        if ticket.key != key:
            raise TicketError("The tickets were changed while they were being learned from.", where=where)
        return ticket


def _lines(path: Path) -> Iterator[tuple[int, bytes, int]]:
    start = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield number, line, start
                start += len(line)
    except OSError as error:
        raise TicketError(f"The tickets can't be read: {error.strerror}.", where=str(path)) from error
