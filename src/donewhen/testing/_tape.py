"""What a cassette has recorded, in a file: a line that says of which model, then a line for each answer.

Lines stand in an order of their own, so that two who record the same have the same bytes, and a reviewer sees in a diff
which question is answered differently now.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from donewhen.foundation.canonical import refuse_duplicate_keys
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.files import write_atomically
from donewhen.models.roles import Completion, FinishReason, Usage

FORMAT = "donewhen/cassette/v1"
_ANEW = "Delete it, and record it again: Cassette(path, model)"

Role = Literal["rollout", "decision", "ops"]


class CassetteError(DonewhenError):
    """A tape can't be read, or has no answer. Not a ModelError: a run must not take it for a model's failure."""

    code = "cassette"
    exit_code = ExitCode.USAGE


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Whose answers they are."""

    format: str
    model: str
    """The name of the model: the questions are kept under it."""
    free: bool
    priced: bool
    chosen: str | None = None
    """The string that chose the model, where one did."""
    reads_reasons: bool = True


class RecordedCompletion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A completion."""

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
    """A question and what the model said to it: an answer, or why it has none."""

    key: str
    role: Role
    question: str
    """How it begins: for people."""
    answer: RecordedCompletion | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if (self.answer is None) == (self.error is None):
            raise ValueError("there must be an answer or an error, and not both")


class Tape(NamedTuple):
    """All that a file holds."""

    header: Header | None = None
    """None where nothing was recorded yet."""
    entries: Mapping[str, TapeEntry] = {}


S = TypeVar("S", bound=msgspec.Struct)


def read_tape(path: Path, *, torn: bool = False) -> Tape:
    """The tape in a file. Half a line at its end is left out where that is ``torn``, and an error otherwise."""
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
            f"The tape has the format {header.format!r}, and not {FORMAT!r}.", where=f"{path}:1", next_step=_ANEW
        )
    entries: dict[str, TapeEntry] = {}
    for number, line in enumerate(lines[1:], 2):
        entry = _read(line, TapeEntry, f"{path}:{number}")
        if entries.setdefault(entry.key, entry) != entry:
            raise CassetteError(
                "The tape has two answers to one question.", where=f"{path}:{number}", next_step="Delete one of them."
            )
    return Tape(header, entries)


class TapeWriter:
    """The only writer of a tape, until it is closed. ``anew`` may take the tape of another model's place."""

    def __init__(self, path: Path, header: Header, *, anew: bool) -> None:
        self._path = path
        self._header = header
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = _held(path)
        except BlockingIOError as error:
            raise CassetteError(
                "Somebody else is recording on this tape.",
                where=str(path),
                next_step="Record with one process, and one Cassette, at a time; any number may replay.",
            ) from error
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            self.earlier = self._taken_over(anew)
        except OSError as error:
            os.close(self._descriptor)
            raise _unwritable(path, error) from error
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, line: Header | TapeEntry) -> None:
        """Write a line down; when this returns, a process that is killed has not lost it."""
        data = _line(line)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def close(self, entries: Mapping[str, TapeEntry]) -> None:
        """Put what there was and what there is now in order, and let others record."""
        ordered = sorted({**self.earlier, **entries}.values(), key=lambda one: (one.role, one.question, one.key))
        lines = [_line(self._header), *map(_line, ordered)]
        try:
            write_atomically(self._path, b"".join(lines))
        except OSError as error:
            raise _unwritable(self._path, error) from error
        finally:
            # Closing alone would leave the lock with children that were forked in between.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)

    def _taken_over(self, anew: bool) -> Mapping[str, TapeEntry]:
        """What is on the tape now: others may have recorded since it was read. It ends with a whole line then."""
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
            raise of_another_model(self._path, self._header.model, tape.header.model)
        os.ftruncate(self._descriptor, 0)
        self.append(self._header)
        return {}


def of_another_model(path: Path, model: str, recorded: str) -> CassetteError:
    return CassetteError(
        f"The tape has the answers of {recorded}, and not of {model}.",
        where=str(path),
        next_step='Use another file, or record everything again: record="all"',
    )


def _held(path: Path) -> int:
    """The open file, which nobody else writes to. BlockingIOError where somebody does."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever recorded until now may have put another file in its place.
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
    # Half of a surrogate pair is not UTF-8; with a backslash it is still JSON.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _read(line: bytes, kind: type[S], where: str) -> S:
    try:
        return msgspec.convert(json.loads(line.decode("utf-8"), object_pairs_hook=refuse_duplicate_keys), kind)
    except (ValueError, RecursionError) as error:
        name = "the header of a tape" if kind is Header else "an answer"
        raise CassetteError(f"The line is not {name}: {error}.", where=where, next_step=_ANEW) from error


def _is_json(line: bytes) -> bool:
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict)
