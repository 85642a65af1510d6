"""The file of a cassette: a header line for the model, then one line per answer.

Lines are sorted, so that equal recordings have equal bytes and a diff shows which answers changed.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.files import write_atomically
from donewhen.foundation.json_parsing import parse_json
from donewhen.models.roles import Completion, FinishReason, Usage

FORMAT = "donewhen/cassette/v1"
_RECORD_AGAIN = "Delete it and record it again: Cassette(path, model)"

Role = Literal["rollout", "decision", "ops"]


class CassetteError(DonewhenError):
    """A tape can't be read, or has no answer. Not a ModelError, because it is not a failure of the model."""

    code = "cassette"
    exit_code = ExitCode.USAGE


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The recorded model."""

    format: str
    model: str
    """The model's name, which is part of the question keys."""
    free: bool
    priced: bool
    chosen: str | None = None
    """The string that named the model, if there was one."""
    reads_reasons: bool = True


class RecordedCompletion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A completion, as stored on a tape."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    finish_reason: FinishReason
    margin: float | None
    cost: float

    @classmethod
    def of(cls, completion: Completion) -> RecordedCompletion:
        return cls(completion.text, *completion.usage, completion.finish_reason, completion.margin, completion.cost)

    def completion(self) -> Completion:
        usage = Usage(self.prompt_tokens, self.completion_tokens, self.cached_tokens)
        return Completion(self.text, usage, self.finish_reason, self.margin, self.cost)


class TapeEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question with the model's answer or error."""

    key: str
    role: Role
    question: str
    """The beginning of the question, for people."""
    answer: RecordedCompletion | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if (self.answer is None) == (self.error is None):
            raise ValueError("there must be an answer or an error, and not both")


class Tape(NamedTuple):
    """The content of a file."""

    header: Header | None = None
    """None if nothing was recorded yet."""
    entries: Mapping[str, TapeEntry] = {}


S = TypeVar("S", bound=msgspec.Struct)


def read_tape(path: Path, *, torn: bool = False) -> Tape:
    """Read a tape. With ``torn``, an incomplete last line is ignored; otherwise it is an error."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return Tape()
    except OSError as error:
        raise CassetteError(f"The tape can't be read: {error.strerror}.", where=str(path)) from error
    last = lines.pop()
    if last and not (torn and not _is_json(last)):
        lines.append(last)
    if not lines:
        return Tape()
    header = _read(lines[0], Header, f"{path}:1")
    if header.format != FORMAT:
        raise CassetteError(
            f"The tape has the format {header.format!r}, expected {FORMAT!r}.",
            where=f"{path}:1",
            next_step=_RECORD_AGAIN,
        )
    entries: dict[str, TapeEntry] = {}
    for number, line in enumerate(lines[1:], 2):
        entry = _read(line, TapeEntry, f"{path}:{number}")
        if entries.setdefault(entry.key, entry) != entry:
            raise CassetteError(
                "The tape has two answers to the same question.",
                where=f"{path}:{number}",
                next_step="Delete one of them.",
            )
    return Tape(header, entries)


class TapeWriter:
    """The exclusive writer of a tape. ``anew`` allows overwriting the tape of another model."""

    def __init__(self, path: Path, header: Header, *, anew: bool) -> None:
        self._path = path
        self._header = header
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = _open_locked(path)
        except BlockingIOError as error:
            raise CassetteError(
                "Another process or Cassette is recording on this tape.",
                where=str(path),
                next_step="Record with one process and one Cassette at a time; any number may replay.",
            ) from error
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            self.earlier = self._load_earlier(anew)
        except OSError as error:
            os.close(self._descriptor)
            raise _unwritable(path, error) from error
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, line: Header | TapeEntry) -> None:
        """Append a line. After this returns, the line survives a kill of the process."""
        data = _line(line)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def close(self, entries: Mapping[str, TapeEntry]) -> None:
        """Write all entries in order, and release the lock."""
        ordered = sorted(
            {**self.earlier, **entries}.values(), key=lambda entry: (entry.role, entry.question, entry.key)
        )
        lines = [_line(self._header), *map(_line, ordered)]
        try:
            write_atomically(self._path, b"".join(lines))
        except OSError as error:
            raise _unwritable(self._path, error) from error
        finally:
            # Unlock explicitly: forked children may still hold the descriptor.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)

    def _load_earlier(self, anew: bool) -> Mapping[str, TapeEntry]:
        """Return the entries on the tape now, which others may have extended; repair an incomplete last line."""
        tape = read_tape(self._path, torn=True)
        data = self._path.read_bytes()
        last = data[data.rfind(b"\n") + 1 :]
        if tape.header is not None and tape.header.model == self._header.model:
            if last and _is_json(last):
                os.write(self._descriptor, b"\n")
            elif last:
                os.ftruncate(self._descriptor, len(data) - len(last))
            return tape.entries
        if tape.header is not None and not anew:
            raise wrong_model_error(self._path, self._header.model, tape.header.model)
        os.ftruncate(self._descriptor, 0)
        self.append(self._header)
        return {}


def wrong_model_error(path: Path, model: str, recorded: str) -> CassetteError:
    return CassetteError(
        f"The tape belongs to the model {recorded}, not {model}.",
        where=str(path),
        next_step='Use another file, or record everything again: record="all"',
    )


def _open_locked(path: Path) -> int:
    """Open and lock the file; raise BlockingIOError if another writer holds the lock."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous writer may have replaced the file.
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> CassetteError:
    return CassetteError(f"The tape can't be written: {error.strerror}.", where=str(path))


def _line(content: Header | TapeEntry) -> bytes:
    text = json.dumps(msgspec.to_builtins(content), sort_keys=True, ensure_ascii=False)
    # A lone surrogate is not valid UTF-8; escaped with a backslash it is still JSON.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _read(line: bytes, kind: type[S], where: str) -> S:
    try:
        return msgspec.convert(parse_json(line.decode("utf-8"), allow_nan=True), kind)
    except (ValueError, RecursionError) as error:
        name = "a valid tape header" if kind is Header else "a valid answer"
        raise CassetteError(f"The line is not {name}: {error}.", where=where, next_step=_RECORD_AGAIN) from error


def _is_json(line: bytes) -> bool:
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict)
