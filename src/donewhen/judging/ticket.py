"""A ticket: evidence about a piece of work, and the label that a person gave it. Read line by line, nothing skipped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeGuard

from donewhen.foundation.canonical import refuse_duplicate_keys
from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.plain_text import one_line
from donewhen.models.roles import Binary

LABELS: tuple[Binary, ...] = ("pass", "fail")
_EVIDENCE = ("per_image", "evidence", "text")
_LONGEST_NAME = 200


class TicketError(DonewhenError):
    """A ticket can't be used."""

    code = "ticket"
    exit_code = ExitCode.USAGE


class Ticket(NamedTuple):
    """One ticket. The same group may come with both labels: those are two tickets."""

    group_id: str
    mission: str
    label: Binary | None
    evidence: Mapping[str, str]
    cluster: str
    label_source: str = ""
    label_timestamp: str = ""

    @property
    def key(self) -> str:
        """``group::label``, which names a labelled ticket; a ticket without a label has only its group."""
        return self.group_id if self.label is None else f"{self.group_id}::{self.label}"

    @property
    def text(self) -> str:
        """All of the evidence."""
        return "\n\n".join(self.evidence.values())


class Superseded(NamedTuple):
    """Works whose labels stand in one file, and in no other."""

    groups: frozenset[str] = frozenset()
    by: Path | None = None

    def without(self, path: Path) -> frozenset[str]:
        """What is left out of a file."""
        return frozenset() if path == self.by else self.groups


NOTHING = Superseded()


def group_ids_in(path: Path) -> frozenset[str]:
    """The works of which a file has tickets; a line that is none is told by whoever reads it."""
    found: set[str] = set()
    try:
        for line in path.read_bytes().split(b"\n"):
            with suppress(ValueError):
                data = json.loads(line)
                found |= {str(data.get("group_id"))} if isinstance(data, dict) else set()
    except OSError:
        return frozenset()
    return frozenset(found)


def parse_ticket(line: bytes | str, where: str, mission: str, *, labelled: bool = True) -> Ticket:
    """One line of JSON as a ticket; what is wrong with it is said with its place."""
    try:
        # Not json.loads of bytes: that guesses an encoding, and lets half of a surrogate pair through.
        text = line.decode("utf-8").removeprefix("\ufeff") if isinstance(line, bytes) else line
        data = json.loads(text, object_pairs_hook=refuse_duplicate_keys)
    except (ValueError, RecursionError) as error:
        told = f"{error.msg} (column {error.colno})" if isinstance(error, json.JSONDecodeError) else str(error)
        raise TicketError(f"The line is not JSON: {told}.", where=where, next_step="One object a line.") from error
    if not isinstance(data, dict):
        raise TicketError("The line is not an object.", where=where)
    return ticket_of(data, where, mission, labelled=labelled)


def ticket_of(data: Mapping[str, Any], where: str, mission: str, *, labelled: bool = True) -> Ticket:
    """A ticket from its fields."""
    group = data.get("group_id")
    if not _is_name(group) or "::" in group:
        raise TicketError("group_id must be a short printable text without '::'.", where=where)
    stated = data.get("mission", None if labelled else mission)
    if stated != mission:
        message = (
            "It has no mission." if stated is None else f"It belongs to the mission {one_line(str(stated), 60)!r}."
        )
        raise TicketError(message, where=where, next_step=f"This mission is {mission!r}; one mission a run.")
    label = data.get("label")
    if label not in LABELS and (labelled or label is not None):
        message = "It has no label." if label is None else f"{one_line(str(label), 60)!r} is no label."
        raise TicketError(message, where=where, next_step="A label is pass or fail.")
    # The word itself and no copy of it: where a million labels are kept, they are all the same two.
    known = None if label is None else LABELS[LABELS.index(label)]
    cluster = data.get("cluster", group)
    if not _is_name(cluster):
        raise TicketError("cluster must be a short printable text.", where=where)
    source, timestamp = data.get("label_source", ""), data.get("label_timestamp", "")
    if not isinstance(source, str) or not isinstance(timestamp, str):
        raise TicketError("label_source and label_timestamp must be texts.", where=where)
    return Ticket(group, mission, known, _evidence(data, where), cluster, source, timestamp)


def _is_name(value: object) -> TypeGuard[str]:
    """Names stand in prompts, files and messages: no line ends, nothing hidden, no half of a surrogate pair."""
    return isinstance(value, str) and value.isprintable() and bool(value.strip()) and len(value) <= _LONGEST_NAME


def _evidence(data: Mapping[str, Any], where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for field in _EVIDENCE:
        value = data.get(field)
        if value is None:
            continue
        items = {field: value} if field == "text" else value
        if not isinstance(items, dict) or not all(isinstance(item, str) for item in items.values()):
            shape = "a text" if field == "text" else "names with texts"
            raise TicketError(f"{field} must be {shape}.", where=where)
        doubled = found.keys() & items.keys()
        if doubled:
            raise TicketError(f"Two pieces of evidence are named {min(doubled)!r}.", where=where)
        found |= items
    if not any(one.strip() for one in found.values()):
        raise TicketError("It has no evidence.", where=where, next_step=f"One of: {', '.join(_EVIDENCE)}.")
    return found


def read_tickets(
    paths: Iterable[Path], mission: str, *, labelled: bool = True, superseded: Superseded = NOTHING
) -> Iterator[Ticket]:
    """The tickets of some files, one after the other, in little memory. The first bad line ends it with an error."""
    for found in read_each_line(paths, mission, labelled=labelled, superseded=superseded):
        if isinstance(found, TicketError):
            raise found
        yield found


def read_each_line(
    paths: Iterable[Path], mission: str, *, labelled: bool = True, superseded: Superseded = NOTHING
) -> Iterator[Ticket | TicketError]:
    """Every line as a ticket or as what is wrong with it; only what is superseded is left out."""
    with DiskDict() as seen:
        for path in paths:
            try:
                with path.open("rb") as file:
                    without = superseded.without(path)
                    yield from tickets_from_lines(file, str(path), mission, seen, labelled=labelled, without=without)
            except OSError as error:
                yield TicketError(f"The tickets can't be read: {error.strerror}.", where=str(path))


def tickets_from_lines(
    lines: IO[bytes] | Iterable[bytes],
    name: str,
    mission: str,
    seen: DiskDict,
    *,
    labelled: bool = True,
    first: int = 1,
    without: frozenset[str] = frozenset(),
) -> Iterator[Ticket | TicketError]:
    """The same for lines that come from anywhere, without some groups. ``seen`` knows where each key stood, so that
    none comes twice."""
    for number, line in enumerate(lines, first):
        where = f"{name}:{number}"
        if not line.strip():
            continue
        try:
            ticket = parse_ticket(line, where, mission, labelled=labelled)
        except TicketError as error:
            yield error
            continue
        if ticket.group_id in without:
            continue
        earlier = seen.first(ticket.key, where)
        if earlier is not None:
            yield TicketError(
                f"The ticket {one_line(ticket.key, 80)} occurs twice.",
                where=where,
                next_step=f"The first is at {earlier}.",
            )
            continue
        yield ticket
