"""The entries of the ledger: their fields, and how a line and a chain of lines are verified.

Every line contains the hash of the line before it, so a change to the past is detected. A writer who rewrites the whole
chain is not detected, which is why heads can be anchored elsewhere and CI runs the checks itself.

Every line names its format (``v``); lines without it have format 1, which differs in nothing else.
"""

from __future__ import annotations

import builtins
import gc
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args

import msgspec

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.foundation.size_limits import LEDGER_LINE, too_large_text
from donewhen.foundation.typed_content import content_as
from donewhen.jobs.ledger.entry_content import EntryContent, decode_content
from donewhen.jobs.ledger.versions import NewerVersionError

EventKind = Literal[
    "agreed",
    "started",
    "ran",
    "evaluated",
    "decided",
    "completed",
    "refused",
    "invalidated",
    "overridden",
    "unverified",
    "lesson",
    "mirrored",
]
ApproverClass = Literal["person", "key", "ci", "agent"]
KINDS: frozenset[str] = frozenset(get_args(EventKind))
CHAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
FORMAT = 2
"""The format of new entries."""
_FIELDS = frozenset(("seq", "prev", "type", "at", "by", "data", "hash"))
_ACTOR_FIELDS = frozenset(("name", "kind"))
_APPROVERS: frozenset[str] = frozenset(get_args(ApproverClass))
_DECIDING_FIELDS: dict[str, type] = {"status": str, "iteration": int}
_TORN = "the last line is incomplete; the next event moves it to a .torn file"
NEWER = "it was written by a newer version of donewhen"
_FIRST_FORMAT = "the chain was written by a version of donewhen before chains had names (format 0)"
_MANY = 1 << 20
"""From this size on, a chain has so many entries that the garbage collector would slow down reading it."""
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder(order="sorted")
_T = TypeVar("_T", bound=EntryContent)


class Actor(NamedTuple):
    """Who did it. Without proof of being something else, an actor counts as an agent."""

    name: str
    kind: ApproverClass = "agent"


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of a chain. ``data`` is the content as written, ``content`` the same as a typed value."""

    seq: int
    prev: str
    type: EventKind
    at: str
    by: Actor
    data: Mapping[str, Any]
    hash: str
    format: int = FORMAT
    content: EntryContent = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", decode_content(self.type, self.data))

    @property
    def who(self) -> str:
        """The name to show."""
        return self.content.named or self.by.name

    def line(self) -> bytes:
        """The entry as it is written in the file."""
        return canonical_json({**unhashed_fields(self), "hash": self.hash}) + b"\n"

    def read_as(self, kind: builtins.type[_T]) -> _T:
        """The content, for a caller who knows its kind."""
        return content_as(self.content, kind, "Entry", self.seq)

    def as_dict(self) -> dict[str, Any]:
        """The entry as plain values, for JSON output."""
        return {**unhashed_fields(self), "hash": self.hash}


class Break(NamedTuple):
    """A line at which a chain fails verification."""

    chain: str
    line: int
    problem: str

    @property
    def torn(self) -> bool:
        """Whether a writer was interrupted in the last line; complete entries are not affected."""
        return self.problem == _TORN

    @property
    def other_version(self) -> bool:
        """Whether another version of donewhen wrote the line in a format that this version can't use."""
        return self.problem.startswith((NEWER, _FIRST_FORMAT))

    @property
    def next_step(self) -> str:
        """What to do about it."""
        if self.problem.startswith(NEWER):
            return "Update donewhen, then audit again. Don't edit the file."
        if self.problem == _FIRST_FORMAT:
            return "Keep the file: move .donewhen/ledger out of the project, then have a person agree again."
        return "Restore the file from version control."


class Chain(NamedTuple):
    """The readable entries of a chain, and the lines that fail verification."""

    entries: tuple[Entry, ...]
    breaks: tuple[Break, ...]
    heads: tuple[str, ...] = ()
    """Of a chain with a file for each entry: the entries that no other follows; more than one after a merge."""

    @property
    def whole(self) -> bool:
        """Whether every complete line passes verification; an incomplete last line doesn't count."""
        return all(failure.torn for failure in self.breaks)

    @property
    def head(self) -> str | None:
        """The hash of the last entry; several after a merge of branches that both went on."""
        if self.heads:
            return " ".join(self.heads)
        return self.entries[-1].hash if self.entries else None

    def latest(self, *kinds: EventKind) -> Entry | None:
        """The newest entry of these kinds."""
        return next((entry for entry in reversed(self.entries) if entry.type in kinds), None)


def recorded_status(entries: Sequence[Entry]) -> str | None:
    """The status that the newest entry with one has written; None if no entry has."""
    writes = (entry.content.writes.get("status") for entry in reversed(entries))
    return next((str(values[1]) for values in writes if values is not None), None)


def has_entry(entries: Sequence[Entry], seq: int, value: str) -> bool:
    """Whether there is an entry with this number and hash. After a merge it may stand further back."""
    if seq < 1:
        return False
    if seq <= len(entries) and entries[seq - 1].hash == value:
        return True
    return any(entry.hash == value and entry.seq == seq for entry in entries[seq:])


def verify_chain(chain: str, content: bytes) -> Chain:
    """Check that every line of a chain is complete, in sequence, linked to the line before, and matches its hash."""
    return verify_lines(chain, content, Chain((), ()), 0)


def verify_lines(chain: str, content: bytes, earlier: Chain, count: int) -> Chain:
    """Verify the lines that follow the first ``count`` lines of a chain, which were verified ``earlier``."""
    if len(content) < _MANY:
        return _verified(chain, content, earlier, count)
    with _without_collector():
        return _verified(chain, content, earlier, count)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the cyclic garbage collector: entries have no cycles, and it would go through all of them repeatedly."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_freeze_count() == 0:
                # Moves the new objects to the oldest generation, so that they are not gone through now either.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _verified(chain: str, content: bytes, earlier: Chain, count: int) -> Chain:
    entries: list[Entry] = [*earlier.entries]
    breaks: list[Break] = [*earlier.breaks]
    lines = content.split(b"\n")
    previous = entries[-1] if entries else None
    for number, line in enumerate(lines[:-1], count + 1):
        entry = parse_entry(line)
        if isinstance(entry, str):
            breaks.append(Break(chain, number, entry))
            continue
        if entry.seq != number:
            breaks.append(Break(chain, number, f"expected sequence number {number}, found {entry.seq}"))
        if number == 1 and entry.prev is None:
            breaks.append(Break(chain, number, _FIRST_FORMAT))
        elif entry.prev != (previous.hash if previous else first_link(chain)):
            breaks.append(Break(chain, number, "its hash link does not match the line before it"))
        entries.append(entry)
        previous = entry
    if lines[-1]:
        breaks.append(Break(chain, count + len(lines), _TORN))
    return Chain(tuple(entries), tuple(breaks))


def first_link(chain: str) -> str:
    """The link of a first entry: a hash of the chain's name, so that one chain can't be passed off as another."""
    return digest(f"donewhen chain {chain}".encode())


def parse_entry(line: bytes) -> Entry | str:
    """Parse a line; return the entry, or what is wrong with it."""
    if len(line) > LEDGER_LINE.bytes:
        return f"the line has {too_large_text(len(line), LEDGER_LINE)}"
    try:
        row, fast = _decode_row(line)
    except (ValueError, RecursionError):
        return "the line is not JSON"
    if not isinstance(row, dict):
        return "the line does not have the fields of an entry"
    version = row.get("v", 1)
    if type(version) is int and version > FORMAT:
        return f"{NEWER} (format {version}, this version reads up to {FORMAT})"
    if row.keys() - {"v"} != _FIELDS:
        return "the line does not have the fields of an entry"
    try:
        by = Actor(str(row["by"]["name"]), row["by"]["kind"])
    except (KeyError, TypeError):
        return "the line does not name an actor"
    if (
        type(row["seq"]) is not int
        or type(version) is not int
        or version < (2 if "v" in row else 1)
        or not isinstance(row["data"], dict)
        or not isinstance(row["at"], str)
        or not isinstance(row["type"], str)
        or row["type"] not in KINDS
        or str(by.kind) not in _APPROVERS
    ):
        return "the line has a value of the wrong type, or an unknown event or actor kind"
    if not _is_as_written(line, row, fast=fast):
        return "the entry was changed after it was written"
    try:
        kind = cast(EventKind, row["type"])
        entry = Entry(row["seq"], row["prev"], kind, row["at"], by, row["data"], row["hash"], version)
        wrong = _wrong_field(entry.content)
        return entry if wrong is None else f"the content of the {kind!r} event is invalid: {wrong} has the wrong type"
    except NewerVersionError as error:
        return f"{NEWER} ({error})"
    except msgspec.ValidationError as error:
        return f"the content of the {row['type']!r} event is invalid: {error}"


def _wrong_field(content: EntryContent) -> str | None:
    """The field of a plan with a value that no version has written, of those that decide about a job."""
    for name, kind in _DECIDING_FIELDS.items():
        values = [content.adopted[name]] if name in content.adopted else []
        values += content.writes.get(name, ())
        if any(value is not None and type(value) is not kind for value in values):
            return name
    return None


def _decode_row(line: bytes) -> tuple[Any, bool]:
    """The value of a line, and whether the fast encoder writes it back as it is, which shows that it is canonical."""
    # The fast decoder is right about whatever its encoder writes back; the slow one decides about the rest, such as
    # numbers with many digits.
    try:
        row = _DECODER.decode(line)
        if _ENCODER.encode(row) == line:
            return row, True
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    return json.loads(line), False


def _is_as_written(line: bytes, row: dict[str, Any], *, fast: bool) -> bool:
    """Whether a line is canonical JSON and has the hash of its other fields."""
    if row["by"].keys() != _ACTOR_FIELDS or not isinstance(row["by"]["name"], str):
        return False
    if fast:
        return bool(row["hash"] == digest(_without_hash(line, row)))
    content = {name: value for name, value in row.items() if name != "hash"}
    try:
        return bool(canonical_json(row) == line and row["hash"] == digest(canonical_json(content)))
    except (ValueError, RecursionError):
        # Python's parser accepts numbers and characters that are not valid JSON.
        return False


def _without_hash(line: bytes, row: dict[str, Any]) -> bytes:
    """The canonical JSON of the other fields of a canonical line."""
    # Cut out of the line, which is faster than encoding again. Keys are sorted, so the hash is followed by prev, seq,
    # type and v. None of these can contain the pattern: its quotation marks would be escaped in a string.
    if isinstance(row["hash"], str) and isinstance(row["prev"], str):
        pattern = f',"hash":"{row["hash"]}"'.encode()
        start = line.rfind(pattern + b',"prev":')
        if start > 0:
            return line[:start] + line[start + len(pattern) :]
    return _ENCODER.encode({name: value for name, value in row.items() if name != "hash"})


def unhashed_fields(entry: Entry) -> dict[str, Any]:
    """The fields of an entry that its hash covers."""
    version = {} if entry.format == 1 else {"v": entry.format}
    return {
        **version,
        "seq": entry.seq,
        "prev": entry.prev,
        "type": entry.type,
        "at": entry.at,
        "by": {"name": entry.by.name, "kind": entry.by.kind},
        "data": dict(entry.data),
    }
