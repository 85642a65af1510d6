"""The labelled tickets of a mission, found by their keys. What is kept in memory is where they stand."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

from donewhen.foundation.disk_dict import DiskDict
from donewhen.judging.mission import Mission
from donewhen.judging.ticket import Ticket, TicketError, parse_ticket, tickets_from_lines
from donewhen.learning.measuring.splits import SplitMember

_AT_HAND = 8_000_000
"""Characters of tickets that are kept, because they are often wanted again soon."""
_ANYWAY = 600
"""What a ticket takes however short it is."""


class TicketReader:
    """Opened once for a run; the files must stay what they were."""

    def __init__(self, mission: Mission) -> None:
        self._mission = mission.name
        self._files = mission.ticket_files
        self.members: list[SplitMember] = []
        # Of each member: which file, which line, and where that begins. As bare numbers, for there may be millions.
        self._file, self._number, self._start = array("I"), array("Q"), array("Q")
        content = hashlib.sha256()
        superseded = mission.superseded()
        with DiskDict() as seen:
            for file, path in enumerate(self._files):
                without = superseded.without(path)
                for number, line, start in _lines(path):
                    content.update(line)
                    for found in tickets_from_lines(
                        [line], str(path), self._mission, seen, first=number, without=without
                    ):
                        if isinstance(found, TicketError):
                            raise found
                        self.members.append(_member(found))
                        self._file.append(file)
                        self._number.append(number)
                        self._start.append(start)
        self.hash = f"sha256:{content.hexdigest()}"
        self._by_key = array("Q", sorted(range(len(self.members)), key=lambda at: self.members[at].key))
        self._tickets: OrderedDict[str, Ticket] = OrderedDict()
        self._held = 0
        if not self.members:
            raise TicketError("There are no tickets.", where=", ".join(map(str, mission.ticket_files)))

    def tickets(self, keys: Sequence[str]) -> Iterator[Ticket]:
        """Tickets by their keys, as they are wanted."""
        return (self.ticket(key) for key in keys)

    def ticket(self, key: str) -> Ticket:
        """The ticket with a key, from its file unless it was wanted a moment ago."""
        known = self._tickets.get(key)
        if known is not None:
            self._tickets.move_to_end(key)
            return known
        found = self._tickets[key] = self._read(key)
        self._held += _size(found)
        while self._held > _AT_HAND and len(self._tickets) > 1:
            self._held -= _size(self._tickets.popitem(last=False)[1])
        return found

    def _read(self, key: str) -> Ticket:
        place = bisect_left(self._by_key, key, key=lambda at: self.members[at].key)
        at = self._by_key[place] if place < len(self._by_key) else 0
        if self.members[at].key != key:
            raise KeyError(key)
        path = self._files[self._file[at]]
        with path.open("rb") as file:
            file.seek(self._start[at])
            line = file.readline()
        where = f"{path}:{self._number[at]}"
        ticket = parse_ticket(line, where, self._mission)
        if ticket.key != key:
            raise TicketError("The tickets were changed while they were being learned from.", where=where)
        return ticket


def _member(ticket: Ticket) -> SplitMember:
    """As much of a ticket as stays in memory."""
    assert ticket.label is not None  # noqa: S101 - only labelled tickets are read
    return SplitMember(ticket.key, ticket.group_id, ticket.cluster, ticket.label)


def _size(ticket: Ticket) -> int:
    return _ANYWAY + sum(map(len, ticket.evidence.values()))


def _lines(path: Path) -> Iterator[tuple[int, bytes, int]]:
    start = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield number, line, start
                start += len(line)
    except OSError as error:
        raise TicketError(f"The tickets can't be read: {error.strerror}.", where=str(path)) from error
