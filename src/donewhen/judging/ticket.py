"""Tickets: evidence about a piece of work and the label that a person gave it, parsed line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeGuard

from donewhen.foundation.binary import Binary
from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.files import read_limited, read_lines
from donewhen.foundation.json_parsing import parse_json
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.size_limits import LABEL_LOG, TICKET_LINE

LABELS: tuple[Binary, ...] = ("pass", "fail")
_EVIDENCE_FIELDS = ("per_image", "evidence", "text")
_MAX_NAME_CHARS = 200


class TicketError(DonewhenError):
    """A ticket is invalid."""

    code = "ticket"
    exit_code = ExitCode.USAGE


class Ticket(NamedTuple):
    """One ticket. A group with both labels makes two tickets."""

    group_id: str
    mission: str
    label: Binary | None
    evidence: Mapping[str, str]
    cluster: str
    label_source: str = ""
    label_timestamp: str = ""

    @property
    def key(self) -> str:
        """``group::label`` for a labelled ticket, the group alone for an unlabelled one."""
        return self.group_id if self.label is None else f"{self.group_id}::{self.label}"

    @property
    def text(self) -> str:
        """All evidence as one text."""
        return "\n\n".join(self.evidence.values())


class Superseded(NamedTuple):
    """Groups whose labels count in one file only."""

    groups: frozenset[str] = frozenset()
    by: Path | None = None

    def without(self, path: Path) -> frozenset[str]:
        """The groups to skip in a file."""
        return frozenset() if path == self.by else self.groups


NOTHING = Superseded()


def group_ids_in(path: Path) -> frozenset[str]:
    """The groups that occur in a file. Bad lines are skipped here; ``read_each_line`` reports them."""
    groups: set[str] = set()
    try:
        for line in read_limited(path, LABEL_LOG).split(b"\n"):
            with suppress(ValueError):
                data = json.loads(line)
                groups |= {str(data.get("group_id"))} if isinstance(data, dict) else set()
    except OSError:
        return frozenset()
    return frozenset(groups)


def parse_ticket(line: bytes | str, where: str, mission: str, *, labelled: bool = True) -> Ticket:
    """Parse one line of JSON as a ticket; raise TicketError with its location if it is invalid."""
    try:
        # Not json.loads of bytes: that guesses the encoding and accepts unpaired surrogates.
        text = line.decode("utf-8").removeprefix("\ufeff") if isinstance(line, bytes) else line
        data = parse_json(text, allow_nan=True)
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg} (column {error.colno})" if isinstance(error, json.JSONDecodeError) else str(error)
        advice = "Write one JSON object per line."
        raise TicketError(f"The line is not JSON: {reason}.", where=where, next_step=advice) from error
    if not isinstance(data, dict):
        raise TicketError("The line is not a JSON object.", where=where)
    return ticket_of(data, where, mission, labelled=labelled)


def ticket_of(data: Mapping[str, Any], where: str, mission: str, *, labelled: bool = True) -> Ticket:
    """Build a ticket from its fields; raise TicketError if one is invalid."""
    group = data.get("group_id")
    if not _is_name(group) or "::" in group:
        raise TicketError(
            f"group_id must be printable text of at most {_MAX_NAME_CHARS} characters without '::'.", where=where
        )
    stated = data.get("mission", None if labelled else mission)
    if stated != mission:
        message = (
            "The ticket has no mission."
            if stated is None
            else f"The ticket belongs to the mission {one_line(str(stated), 60)!r}."
        )
        raise TicketError(message, where=where, next_step=f"Set mission to {mission!r}; a run has one mission.")
    label = data.get("label")
    if label not in LABELS and (labelled or label is not None):
        message = "The ticket has no label." if label is None else f"{one_line(str(label), 60)!r} is not a label."
        raise TicketError(message, where=where, next_step="Set label to pass or fail.")
    # The shared constant instead of a copy, so that a million labels are only two strings in memory.
    known = None if label is None else LABELS[LABELS.index(label)]
    cluster = data.get("cluster", group)
    if not _is_name(cluster):
        raise TicketError(f"cluster must be printable text of at most {_MAX_NAME_CHARS} characters.", where=where)
    source, timestamp = data.get("label_source", ""), data.get("label_timestamp", "")
    if not isinstance(source, str) or not isinstance(timestamp, str):
        raise TicketError("label_source and label_timestamp must be strings.", where=where)
    return Ticket(group, mission, known, _parse_evidence(data, where), cluster, source, timestamp)


def _is_name(value: object) -> TypeGuard[str]:
    """Whether a value is short printable text. Names occur in prompts, files and messages."""
    return isinstance(value, str) and value.isprintable() and bool(value.strip()) and len(value) <= _MAX_NAME_CHARS


def _parse_evidence(data: Mapping[str, Any], where: str) -> dict[str, str]:
    evidence: dict[str, str] = {}
    for field in _EVIDENCE_FIELDS:
        value = data.get(field)
        if value is None:
            continue
        items = {field: value} if field == "text" else value
        if not isinstance(items, dict) or not all(isinstance(item, str) for item in items.values()):
            shape = "a string" if field == "text" else "an object whose values are strings"
            raise TicketError(f"{field} must be {shape}.", where=where)
        duplicates = evidence.keys() & items.keys()
        if duplicates:
            raise TicketError(f"Two pieces of evidence are named {min(duplicates)!r}.", where=where)
        evidence |= items
    if not any(text.strip() for text in evidence.values()):
        raise TicketError(
            "The ticket has no evidence.", where=where, next_step=f"Add one of: {', '.join(_EVIDENCE_FIELDS)}."
        )
    return evidence


def read_tickets(
    paths: Iterable[Path], mission: str, *, labelled: bool = True, superseded: Superseded = NOTHING
) -> Iterator[Ticket]:
    """Yield the tickets of some files without loading them all; raise TicketError at the first bad line."""
    for ticket in read_each_line(paths, mission, labelled=labelled, superseded=superseded):
        if isinstance(ticket, TicketError):
            raise ticket
        yield ticket


def read_each_line(
    paths: Iterable[Path], mission: str, *, labelled: bool = True, superseded: Superseded = NOTHING
) -> Iterator[Ticket | TicketError]:
    """Yield every line as a ticket or an error; skip superseded tickets."""
    with DiskDict() as seen:
        for path in paths:
            try:
                with path.open("rb") as file:
                    without = superseded.without(path)
                    lines = read_lines(file, TICKET_LINE, path)
                    yield from tickets_from_lines(lines, str(path), mission, seen, labelled=labelled, without=without)
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
    """Yield a ticket or an error for each line, except for the groups in ``without``. ``seen`` maps each key to its
    first location, to detect duplicates."""
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
                f"Duplicate ticket {one_line(ticket.key, 80)}: it first occurs at {earlier}.",
                where=where,
                next_step="Remove one of them.",
            )
            continue
        yield ticket
