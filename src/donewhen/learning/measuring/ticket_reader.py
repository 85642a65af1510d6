"""Random access to the labelled tickets of a mission by key. Only their file positions are kept in memory."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.files import read_lines
from donewhen.foundation.size_limits import TICKET_LINE
from donewhen.judging.mission import Mission
from donewhen.judging.ticket import Ticket, TicketError, parse_ticket, tickets_from_lines
from donewhen.learning.measuring.splits import SplitMember

_CACHE_CHARS = 8_000_000
"""Size of the ticket cache, in characters."""
_OVERHEAD = 600
"""Memory that a ticket takes in addition to its text."""


class TicketReader:
    """Opened once for a run; the files must not change meanwhile."""

    def __init__(self, mission: Mission) -> None:
        self._mission = mission.name
        self._files = mission.ticket_files
        self.members: list[SplitMember] = []
        # File, line number and offset of each member, in arrays because there may be millions.
        self._file, self._number, self._start = array("I"), array("Q"), array("Q")
        content = hashlib.sha256()
        superseded = mission.superseded()
        with DiskDict() as seen:
            for file, path in enumerate(self._files):
                without = superseded.without(path)
                for number, line, start in _lines(path):
                    content.update(line)
                    for ticket in tickets_from_lines(
                        [line], str(path), self._mission, seen, first=number, without=without
                    ):
                        if isinstance(ticket, TicketError):
                            raise ticket
                        self.members.append(_member(ticket))
                        self._file.append(file)
                        self._number.append(number)
                        self._start.append(start)
        self.hash = f"sha256:{content.hexdigest()}"
        self._by_key = array("Q", sorted(range(len(self.members)), key=lambda index: self.members[index].key))
        self._tickets: OrderedDict[str, Ticket] = OrderedDict()
        self._cached_chars = 0
        if not self.members:
            raise TicketError("There are no tickets.", where=", ".join(map(str, mission.ticket_files)))

    def tickets(self, keys: Sequence[str]) -> Iterator[Ticket]:
        """Yield tickets by their keys, read on demand."""
        return (self.ticket(key) for key in keys)

    def ticket(self, key: str) -> Ticket:
        """The ticket with a key, from the cache or from its file."""
        known = self._tickets.get(key)
        if known is not None:
            self._tickets.move_to_end(key)
            return known
        ticket = self._tickets[key] = self._read(key)
        self._cached_chars += _size(ticket)
        while self._cached_chars > _CACHE_CHARS and len(self._tickets) > 1:
            self._cached_chars -= _size(self._tickets.popitem(last=False)[1])
        return ticket

    def _read(self, key: str) -> Ticket:
        position = bisect_left(self._by_key, key, key=lambda member: self.members[member].key)
        index = self._by_key[position] if position < len(self._by_key) else 0
        if self.members[index].key != key:
            raise KeyError(key)
        path = self._files[self._file[index]]
        with path.open("rb") as file:
            file.seek(self._start[index])
            line = file.readline()
        where = f"{path}:{self._number[index]}"
        ticket = parse_ticket(line, where, self._mission)
        if ticket.key != key:
            raise TicketError("The ticket file was changed during the run.", where=where)
        return ticket


def _member(ticket: Ticket) -> SplitMember:
    """The part of a ticket that is kept in memory."""
    assert ticket.label is not None  # noqa: S101 - only labelled tickets are read
    return SplitMember(ticket.key, ticket.group_id, ticket.cluster, ticket.label)


def _size(ticket: Ticket) -> int:
    return _OVERHEAD + sum(map(len, ticket.evidence.values()))


def _lines(path: Path) -> Iterator[tuple[int, bytes, int]]:
    start = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(read_lines(file, TICKET_LINE, path), 1):
                yield number, line, start
                start += len(line)
    except OSError as error:
        raise TicketError(f"The tickets can't be read: {error.strerror}.", where=str(path)) from error
