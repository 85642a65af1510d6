"""The append-only event log: one hash chain for each job and one for the project.

Every line contains the hash of the line before it, so a change to the past is detected. A writer who rewrites the whole
chain is not detected, which is why heads can be anchored elsewhere and CI runs the checks itself.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import fsync_folder
from donewhen.foundation.locks import locked

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

_KINDS: frozenset[str] = frozenset(get_args(EventKind))
CHAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FIELDS = ("seq", "prev", "type", "at", "by", "data")
_CHUNK = 8192
_TORN = "the last line is incomplete; the next event moves it to a .torn file"


class LedgerError(DonewhenError):
    """The ledger can't be read or written."""

    code = "ledger"


class Actor(NamedTuple):
    """Who did it. Without proof of being something else, an actor counts as an agent."""

    name: str
    kind: ApproverClass = "agent"


class Entry(NamedTuple):
    """One event of a chain."""

    seq: int
    prev: str
    type: EventKind
    at: str
    by: Actor
    data: Mapping[str, Any]
    hash: str

    def line(self) -> bytes:
        """The entry as it is written in the file."""
        return canonical_json({**_content(self), "hash": self.hash}) + b"\n"


class Break(NamedTuple):
    """A line at which a chain fails verification."""

    chain: str
    line: int
    problem: str

    @property
    def torn(self) -> bool:
        """Whether a writer was interrupted in the last line; complete entries are not affected."""
        return self.problem == _TORN


class Chain(NamedTuple):
    """The readable entries of a chain, and the lines that fail verification."""

    entries: tuple[Entry, ...]
    breaks: tuple[Break, ...]

    @property
    def whole(self) -> bool:
        """Whether every complete line passes verification; an incomplete last line doesn't count."""
        return all(failure.torn for failure in self.breaks)

    @property
    def head(self) -> str | None:
        """The hash of the last entry."""
        return self.entries[-1].hash if self.entries else None

    def latest(self, *kinds: EventKind) -> Entry | None:
        """The newest entry of these kinds."""
        return next((entry for entry in reversed(self.entries) if entry.type in kinds), None)


class Ledger:
    """The chains in one folder. Appending takes constant time; many processes may append."""

    def __init__(self, folder: Path, locks: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._folder = folder
        self._locks = locks
        self._clock = clock

    def append(self, chain: str, kind: EventKind, data: Mapping[str, Any], by: Actor) -> Entry:
        """Append an event and flush it to disk. An incomplete last line is moved to a ``.torn`` file first."""
        if kind not in _KINDS:
            raise LedgerError(f"Unknown ledger event: {kind!r}.")
        path = self._path(chain)
        with locked(self._locks / f"ledger-{chain}.lock"):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                last = self._recover_last_entry(descriptor, path)
                entry = _new_entry(chain, last, kind, self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"), by, data)
                _write_at_end(descriptor, _verified_line(entry))
            finally:
                os.close(descriptor)
            if last is None:
                fsync_folder(path.parent)
        return entry

    def read(self, chain: str) -> Chain:
        """Read and verify a chain."""
        try:
            content = self._path(chain).read_bytes()
        except FileNotFoundError:
            return Chain((), ())
        return verify_chain(chain, content)

    def head(self, chain: str) -> str | None:
        """The hash of the last entry."""
        return self.read(chain).head

    def chains(self) -> tuple[str, ...]:
        """The names of all chains."""
        return tuple(sorted(path.stem for path in self._folder.glob("*.jsonl") if CHAIN_NAME.fullmatch(path.stem)))

    def _path(self, chain: str) -> Path:
        if not CHAIN_NAME.fullmatch(chain):
            raise LedgerError(f"{chain!r} is not a valid chain name.")
        return self._folder / f"{chain}.jsonl"

    def _recover_last_entry(self, descriptor: int, path: Path) -> Entry | None:
        """Return the last complete entry; move an incomplete line after it to a ``.torn`` file."""
        line, tail = _last_line(descriptor)
        if tail:
            with path.with_suffix(".torn").open("ab") as torn:
                torn.write(tail + b"\n")
                torn.flush()
                os.fsync(torn.fileno())
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - len(tail))
        if line is None:
            return None
        entry = parse_entry(line)
        if isinstance(entry, str):
            raise LedgerError(
                f"The last entry of the chain is broken: {entry}.",
                where=str(path),
                next_step="Run donewhen audit; restore the file from version control.",
            )
        return entry


def verify_chain(chain: str, content: bytes) -> Chain:
    """Check that every line of a chain is complete, in sequence, linked to the line before, and matches its hash."""
    entries: list[Entry] = []
    breaks: list[Break] = []
    lines = content.split(b"\n")
    if lines[-1]:
        breaks.append(Break(chain, len(lines), _TORN))
    previous: Entry | None = None
    for number, line in enumerate(lines[:-1], 1):
        entry = parse_entry(line)
        if isinstance(entry, str):
            breaks.append(Break(chain, number, entry))
            continue
        if entry.seq != number:
            breaks.append(Break(chain, number, f"expected sequence number {number}, found {entry.seq}"))
        if entry.prev != (previous.hash if previous else first_link(chain)):
            breaks.append(Break(chain, number, "its hash link does not match the line before it"))
        entries.append(entry)
        previous = entry
    return Chain(tuple(entries), tuple(breaks))


def first_link(chain: str) -> str:
    """The link of a first entry: a hash of the chain's name, so that one chain can't be passed off as another."""
    return digest(f"donewhen chain {chain}".encode())


def parse_entry(line: bytes) -> Entry | str:
    """Parse a line; return the entry, or what is wrong with it."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return "the line is not JSON"
    if not isinstance(data, dict) or set(data) != {*_FIELDS, "hash"}:
        return "the line does not have the fields of an entry"
    try:
        by = Actor(str(data["by"]["name"]), data["by"]["kind"])
        entry = Entry(data["seq"], data["prev"], data["type"], data["at"], by, data["data"], data["hash"])
    except (KeyError, TypeError):
        return "the line does not name an actor"
    if (
        type(data["seq"]) is not int
        or not isinstance(data["data"], dict)
        or not isinstance(data["type"], str)
        or data["type"] not in _KINDS
        or by.kind not in get_args(ApproverClass)
    ):
        return "the line has a value of the wrong type, or an unknown event or actor kind"
    try:
        as_written = line + b"\n" == entry.line() and entry.hash == digest(canonical_json(_content(entry)))
    except (ValueError, RecursionError):
        # Python's parser accepts numbers and characters that are not valid JSON.
        as_written = False
    if not as_written:
        return "the entry was changed after it was written"
    return entry


def _new_entry(chain: str, last: Entry | None, kind: EventKind, at: str, by: Actor, data: Mapping[str, Any]) -> Entry:
    seq, prev = (1, first_link(chain)) if last is None else (last.seq + 1, last.hash)
    entry = Entry(seq, prev, kind, at, by, data, "")
    try:
        return entry._replace(hash=digest(canonical_json(_content(entry))))
    except (TypeError, ValueError, RecursionError) as error:
        raise LedgerError(f"The event {kind!r} can't be written: {error}.") from error


def _verified_line(entry: Entry) -> bytes:
    """The line of an entry. Raise LedgerError if it could not be read again, which would end the chain."""
    line = entry.line()
    problem = parse_entry(line[:-1])
    if isinstance(problem, str):
        raise LedgerError(f"The event {entry.type!r} can't be written: {problem}.")
    return line


def _content(entry: Entry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "prev": entry.prev,
        "type": entry.type,
        "at": entry.at,
        "by": {"name": entry.by.name, "kind": entry.by.kind},
        "data": dict(entry.data),
    }


def _last_line(descriptor: int) -> tuple[bytes | None, bytes]:
    """The last complete line (None if there is none), and the bytes after it."""
    position = os.fstat(descriptor).st_size
    buffer = b""
    while position > 0 and buffer.count(b"\n") < 2:
        step = min(_CHUNK, position)
        position -= step
        buffer = os.pread(descriptor, step, position) + buffer
    *complete, tail = buffer.split(b"\n")
    return complete[-1] if complete else None, tail


def _write_at_end(descriptor: int, line: bytes) -> None:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    try:
        written = 0
        while written < len(line):
            written += os.write(descriptor, line[written:])
        os.fsync(descriptor)
    except OSError:
        # For example a full disk: restore the chain as it was.
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise
