"""The append-only event log: one hash chain for each job, and one for the project with a file for each entry."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import TooLargeError, fsync_folder, open_regular, read_stream, write_atomically
from donewhen.foundation.locks import locked
from donewhen.foundation.size_limits import LEDGER_CHAIN
from donewhen.jobs.ledger.entries import (
    CHAIN_NAME,
    KINDS,
    NEWER,
    Actor,
    Chain,
    Entry,
    EventKind,
    first_link,
    parse_entry,
    unhashed_fields,
    verify_lines,
)
from donewhen.jobs.ledger.entry_files import entry_file_name, next_link, read_entry_files, with_entry_files

_JOB = "WI-"
"""How the names of the chains begin that have one file."""
_EMPTY = Chain((), ())
_CHUNK = 8192
_READ = 1 << 24
_MAX_KEPT = 32
_MAX_KEPT_BYTES = 200 * 1024 * 1024
_UPDATE = "Update donewhen. Nothing was changed."


class LedgerError(DonewhenError):
    """The ledger can't be read or written."""

    code = "ledger"


def irregular_chain(path: Path) -> LedgerError:
    """The error for a chain that is a link, a folder, a pipe or a device."""
    return LedgerError(
        "The chain is not a regular file, so it was not read.",
        where=str(path),
        next_step="Remove it, and restore the file from version control.",
    )


def open_chain(path: Path | str, flags: int) -> int:
    """The descriptor of a chain's file. Raise OSError at once if that is no regular file."""
    return open_regular(path, flags | os.O_NOFOLLOW)


def _read_chain(path: Path) -> bytes:
    descriptor = open_chain(path, os.O_RDONLY)
    try:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return read_stream(file, LEDGER_CHAIN, path)
    finally:
        os.close(descriptor)


class OpenChains:
    """The files of chains that are kept open, so that an operation which uses one several times opens it once."""

    def __init__(self) -> None:
        self._descriptors: dict[Path, int] = {}

    def open(self, path: Path, flags: int = 0) -> int:
        """The descriptor of a file, for reading and writing."""
        known = self._descriptors.get(path)
        if known is not None and _is_same_file(known, path):
            return known
        descriptor = open_chain(path, os.O_RDWR | flags)
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
        if kind not in KINDS:
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

    def append_file(self, chain: str, kind: EventKind, data: Mapping[str, Any], by: Actor, after: Chain) -> Entry:
        """Write an event to a file of its own, as in the chains that every branch goes on with.

        ``after`` is the chain, read by the caller, who holds the lock of all its writers.
        """
        if kind not in KINDS:
            raise LedgerError(f"Unknown ledger event: {kind!r}.")
        folder = self.folder_of(chain)
        newer = next((failure for failure in after.breaks if failure.problem.startswith(NEWER)), None)
        if newer is not None:
            # What a new entry has to follow would be unknown.
            raise LedgerError(
                f"An entry of the chain can't be read: {newer.problem}.", where=str(folder), next_step=_UPDATE
            )
        with locked(self.locks / f"ledger-{chain}.lock"):
            seq, link = next_link(chain, after)
            entry = _made_entry(seq, link, kind, self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"), by, data)
            is_new = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / entry_file_name(entry.seq, entry.hash), _verified_line(entry))
            if is_new:
                fsync_folder(folder.parent)
        return entry

    def read(self, chain: str) -> Chain:
        """Read and verify a chain."""
        lines = self._read_lines(chain)
        # The chain of a job is one file: two continuations of it are no merge.
        if not has_entry_files(chain):
            return lines
        return _MERGED.read(self.folder_of(chain), chain, lines)

    def _read_lines(self, chain: str) -> Chain:
        path = self.path_of(chain)
        try:
            content = _read_chain(path) if self._files is None else self._files.read(path)
        except FileNotFoundError:
            return _EMPTY
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
        try:
            with os.scandir(self.folder) as entries:
                return tuple(sorted({name for entry in entries if (name := chain_of(entry)) is not None}))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def path_of(self, chain: str) -> Path:
        """The file of a chain with a line for each entry."""
        if not CHAIN_NAME.fullmatch(chain):
            raise LedgerError(f"{chain!r} is not a valid chain name.")
        return self.folder / f"{chain}.jsonl"

    def folder_of(self, chain: str) -> Path:
        """The folder of a chain with a file for each entry."""
        return self.path_of(chain).with_name(chain)

    def place_of(self, chain: str) -> Path:
        """The folder of a chain, or its file."""
        folder = self.folder_of(chain)
        return folder if has_entry_files(chain) and folder.is_dir() else self.path_of(chain)

    def file_with(self, chain: str, entry: Entry) -> Path:
        """The file that has an entry."""
        file = self.folder_of(chain) / entry_file_name(entry.seq, entry.hash)
        return file if has_entry_files(chain) and file.is_file() else self.path_of(chain)

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
            newer = entry.startswith(NEWER)
            raise LedgerError(
                f"The last entry of the chain can't be read: {entry}."
                if newer
                else f"The last entry of the chain is broken: {entry}.",
                where=str(path),
                next_step=_UPDATE if newer else "Run donewhen audit; restore the file from version control.",
            )
        return entry


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
        chain = verified if unchanged else verify_lines(name, content[len(known) :], verified, known.count(b"\n"))
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


class _MergedChains:
    """The chains with a file for each entry that this process has verified, with the bytes of the files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[Chain, dict[str, bytes], Chain]] = {}

    def read(self, folder: Path, name: str, lines: Chain) -> Chain:
        files = read_entry_files(folder)
        if not files:
            return lines
        with self._lock:
            known = self._known.get(folder)
        if known is not None and known[0] is lines and known[1] == files:
            return known[2]
        chain = with_entry_files(name, lines, files)
        with self._lock:
            if len(self._known) >= _MAX_KEPT:
                self._known.clear()
            self._known[folder] = (lines, files, chain)
        return chain


_VERIFIED = _VerifiedChains()
_MERGED = _MergedChains()


def has_entry_files(chain: str) -> bool:
    """Whether a chain may have a file for each entry; that of a job is one file, which only its branch writes."""
    return not chain.startswith(_JOB)


def chain_of(entry: os.DirEntry[str]) -> str | None:
    """The name of the chain that a file or folder of the ledger belongs to; None if it is none."""
    name, _, suffix = entry.name.rpartition(".")
    if suffix == "jsonl":
        return name if CHAIN_NAME.fullmatch(name) else None
    is_folder = has_entry_files(entry.name) and entry.is_dir(follow_symlinks=False)
    return entry.name if is_folder and CHAIN_NAME.fullmatch(entry.name) else None


def _new_entry(chain: str, last: Entry | None, kind: EventKind, at: str, by: Actor, data: Mapping[str, Any]) -> Entry:
    seq, prev = (1, first_link(chain)) if last is None else (last.seq + 1, last.hash)
    return _made_entry(seq, prev, kind, at, by, data)


def _made_entry(seq: int, prev: str, kind: EventKind, at: str, by: Actor, data: Mapping[str, Any]) -> Entry:
    try:
        entry = Entry(seq, prev, kind, at, by, data, "")
        return replace(entry, hash=digest(canonical_json(unhashed_fields(entry))))
    except (TypeError, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise LedgerError(f"The event {kind!r} can't be written: {error}.") from error


def _verified_line(entry: Entry) -> bytes:
    """The line of an entry. Raise LedgerError if it could not be read again, which would end the chain."""
    line = entry.line()
    problem = parse_entry(line[:-1])
    if isinstance(problem, str):
        raise LedgerError(f"The event {entry.type!r} can't be written: {problem}.")
    return line


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
