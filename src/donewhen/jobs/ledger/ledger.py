"""The append-only event log: one hash chain for each job and one for the project.

Every line contains the hash of the line before it, so a change to the past is detected. A writer who rewrites the whole
chain is not detected, which is why heads can be anchored elsewhere and CI runs the checks itself.

Every line names its format (``v``); lines without it have format 1, which differs in nothing else.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args

import msgspec

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import TooLargeError, fsync_folder, read_limited
from donewhen.foundation.locks import locked
from donewhen.foundation.size_limits import LEDGER_CHAIN, LEDGER_LINE, too_large_text
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

_KINDS: frozenset[str] = frozenset(get_args(EventKind))
CHAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
FORMAT = 2
"""The format of new entries."""
_FIELDS = frozenset(("seq", "prev", "type", "at", "by", "data", "hash"))
_ACTOR_FIELDS = frozenset(("name", "kind"))
_APPROVERS: frozenset[str] = frozenset(get_args(ApproverClass))
_CHUNK = 8192
_READ = 1 << 24
_MAX_KEPT = 32
_MAX_KEPT_BYTES = 200 * 1024 * 1024
_TORN = "the last line is incomplete; the next event moves it to a .torn file"
_NEWER = "it was written by a newer version of donewhen"
_FIRST_FORMAT = "the chain was written by a version of donewhen before chains had names (format 0)"

_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder(order="sorted")
_T = TypeVar("_T", bound=EntryContent)


class LedgerError(DonewhenError):
    """The ledger can't be read or written."""

    code = "ledger"


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

    def line(self) -> bytes:
        """The entry as it is written in the file."""
        return canonical_json({**_content(self), "hash": self.hash}) + b"\n"

    def read_as(self, kind: builtins.type[_T]) -> _T:
        """The content, for a caller who knows its kind."""
        return content_as(self.content, kind, "Entry", self.seq)

    def as_dict(self) -> dict[str, Any]:
        """The entry as plain values, for JSON output."""
        return {**_content(self), "hash": self.hash}


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
        return self.problem.startswith((_NEWER, _FIRST_FORMAT))

    @property
    def next_step(self) -> str:
        """What to do about it."""
        if self.problem.startswith(_NEWER):
            return "Update donewhen, then audit again. Don't edit the file."
        if self.problem == _FIRST_FORMAT:
            return "Keep the file: move .donewhen/ledger out of the project, then have a person agree again."
        return "Restore the file from version control."


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


class OpenChains:
    """The files of chains that are kept open, so that an operation which uses one several times opens it once."""

    def __init__(self) -> None:
        self._descriptors: dict[Path, int] = {}

    def open(self, path: Path, flags: int = 0) -> int:
        """The descriptor of a file, for reading and writing."""
        known = self._descriptors.get(path)
        if known is not None and _is_same_file(known, path):
            return known
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
        self._close(path)
        self._descriptors[path] = descriptor
        return descriptor

    def read(self, path: Path) -> bytes:
        """The content of a file."""
        descriptor = self.open(path)
        if (size := os.fstat(descriptor).st_size) > LEDGER_CHAIN.bytes:
            raise TooLargeError(path, size, LEDGER_CHAIN)
        parts: list[bytes] = []
        position = 0
        while part := os.pread(descriptor, _READ, position):
            parts.append(part)
            position += len(part)
        return b"".join(parts)

    def close(self) -> None:
        for path in [*self._descriptors]:
            self._close(path)

    def _close(self, path: Path) -> None:
        descriptor = self._descriptors.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Whether a path still leads to the open file; git replaces files, for example."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))  # noqa: PTH116
    except OSError:
        return False


class Ledger:
    """The chains in one folder. Appending takes constant time; many processes may append."""

    def __init__(
        self, folder: Path, locks: Path, *, clock: Clock = SYSTEM_CLOCK, files: OpenChains | None = None
    ) -> None:
        """``files`` are kept open by the caller, who holds the lock of each chain while it uses them."""
        self.folder = folder
        self.locks = locks
        self.clock = clock
        self._files = files

    def append(self, chain: str, kind: EventKind, data: Mapping[str, Any], by: Actor) -> Entry:
        """Append an event and flush it to disk. An incomplete last line is moved to a ``.torn`` file first."""
        if kind not in _KINDS:
            raise LedgerError(f"Unknown ledger event: {kind!r}.")
        path = self.path_of(chain)
        files = self._files or OpenChains()
        with locked(self.locks / f"ledger-{chain}.lock"):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                descriptor = files.open(path, os.O_CREAT)
                last = self._recover_last_entry(descriptor, path)
                entry = _new_entry(chain, last, kind, self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"), by, data)
                _write_at_end(descriptor, _verified_line(entry))
            finally:
                if files is not self._files:
                    files.close()
            if last is None:
                fsync_folder(path.parent)
        return entry

    def read(self, chain: str) -> Chain:
        """Read and verify a chain."""
        path = self.path_of(chain)
        try:
            content = read_limited(path, LEDGER_CHAIN) if self._files is None else self._files.read(path)
        except FileNotFoundError:
            return Chain((), ())
        return _VERIFIED.verify(path, chain, content)

    def read_settled(self, chain: str) -> Chain:
        """Read a chain; one that fails verification is read again while no writer is at work."""
        found = self.read(chain)
        if not found.breaks:
            return found
        with suppress(OSError), locked(self.locks / f"ledger-{chain}.lock"):
            return self.read(chain)
        return found

    def head(self, chain: str) -> str | None:
        """The hash of the last entry."""
        return self.read(chain).head

    def chains(self) -> tuple[str, ...]:
        """The names of all chains."""
        return tuple(sorted(path.stem for path in self.folder.glob("*.jsonl") if CHAIN_NAME.fullmatch(path.stem)))

    def path_of(self, chain: str) -> Path:
        """The file of a chain."""
        if not CHAIN_NAME.fullmatch(chain):
            raise LedgerError(f"{chain!r} is not a valid chain name.")
        return self.folder / f"{chain}.jsonl"

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
            newer = entry.startswith(_NEWER)
            raise LedgerError(
                f"The last entry of the chain can't be read: {entry}."
                if newer
                else f"The last entry of the chain is broken: {entry}.",
                where=str(path),
                next_step="Update donewhen. Nothing was changed."
                if newer
                else "Run donewhen audit; restore the file from version control.",
            )
        return entry


def verify_chain(chain: str, content: bytes) -> Chain:
    """Check that every line of a chain is complete, in sequence, linked to the line before, and matches its hash."""
    return _verify_lines(chain, content, Chain((), ()), 0)


def _verify_lines(chain: str, content: bytes, earlier: Chain, count: int) -> Chain:
    """Verify the lines that follow the first ``count`` lines of a chain, which were verified ``earlier``."""
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


class _VerifiedChains:
    """The chains that this process has verified, with their bytes, so that only new lines are verified again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Path, tuple[bytes, Chain]] = OrderedDict()

    def verify(self, path: Path, name: str, content: bytes) -> Chain:
        nothing = (b"", Chain((), ()))
        with self._lock:
            known, verified = self._known.get(path, nothing)
        # The bytes are compared, not times or sizes: what was changed in any way is verified again from the start.
        if not content.startswith(known):
            known, verified = nothing
        unchanged = len(known) == len(content)
        chain = verified if unchanged else _verify_lines(name, content[len(known) :], verified, known.count(b"\n"))
        if content.endswith(b"\n"):
            self._keep(path, content, chain)
        return chain

    def _keep(self, path: Path, content: bytes, chain: Chain) -> None:
        with self._lock:
            self._known[path] = (content, chain)
            self._known.move_to_end(path)
            while len(self._known) > _MAX_KEPT or (
                len(self._known) > 1 and sum(len(known) for known, _ in self._known.values()) > _MAX_KEPT_BYTES
            ):
                self._known.popitem(last=False)


_VERIFIED = _VerifiedChains()


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
        return f"{_NEWER} (format {version}, this version reads up to {FORMAT})"
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
        or not isinstance(row["type"], str)
        or row["type"] not in _KINDS
        or str(by.kind) not in _APPROVERS
    ):
        return "the line has a value of the wrong type, or an unknown event or actor kind"
    if not _is_as_written(line, row, fast=fast):
        return "the entry was changed after it was written"
    try:
        kind = cast(EventKind, row["type"])
        return Entry(row["seq"], row["prev"], kind, row["at"], by, row["data"], row["hash"], version)
    except NewerVersionError as error:
        return f"{_NEWER} ({error})"
    except msgspec.ValidationError as error:
        return f"the content of the {row['type']!r} event is invalid: {error}"


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


def _new_entry(chain: str, last: Entry | None, kind: EventKind, at: str, by: Actor, data: Mapping[str, Any]) -> Entry:
    seq, prev = (1, first_link(chain)) if last is None else (last.seq + 1, last.hash)
    try:
        entry = Entry(seq, prev, kind, at, by, data, "")
        return replace(entry, hash=digest(canonical_json(_content(entry))))
    except (TypeError, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise LedgerError(f"The event {kind!r} can't be written: {error}.") from error


def _verified_line(entry: Entry) -> bytes:
    """The line of an entry. Raise LedgerError if it could not be read again, which would end the chain."""
    line = entry.line()
    problem = parse_entry(line[:-1])
    if isinstance(problem, str):
        raise LedgerError(f"The event {entry.type!r} can't be written: {problem}.")
    return line


def _content(entry: Entry) -> dict[str, Any]:
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


def _last_line(descriptor: int) -> tuple[bytes | None, bytes]:
    """The last complete line (None if there is none), and the bytes after it."""
    position = os.fstat(descriptor).st_size
    buffer = b""
    while position > 0 and buffer.count(b"\n") < 2:
        # As much again as there is already: in equal pieces, a long line would take quadratic time.
        step = min(max(_CHUNK, len(buffer)), position)
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
