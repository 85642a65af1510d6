"""What the overview keeps of plans and chains in the index. A record of another shape is read again from its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from donewhen.jobs.board.file_index import FileIndex
from donewhen.jobs.ledger.entry_content import Files
from donewhen.jobs.ledger.terms_content import JobTerms, Terms

T = TypeVar("T")


class IndexedProblem(msgspec.Struct, frozen=True, array_like=True):
    """A problem with a file."""

    code: str
    message: str
    where: str


class UnreadablePlan(msgspec.Struct, frozen=True, tag="unreadable"):
    """A plan that can't be read."""

    id: str
    problem: IndexedProblem


class IndexedPlan(msgspec.Struct, frozen=True, tag="plan"):
    """A plan, reduced to what the overview needs."""

    id: str
    title: str
    status: str
    stakes: str
    depends_on: tuple[str, ...]
    iteration: int
    max_iterations: int
    estimate_hours: float
    terms: JobTerms
    hash: str
    projected: dict[str, Any]
    """The fields that donewhen writes, as they are in the plan."""
    agreed: bool
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]


class IndexedSeal(msgspec.Struct, frozen=True):
    """The agreed terms of a job."""

    terms: Terms
    hash: str


class IndexedInputs(msgspec.Struct, frozen=True):
    """The files that a completed job was built on."""

    upstream: Files
    declared: Files


class IndexedChain(msgspec.Struct, frozen=True):
    """A chain, reduced to what the overview needs."""

    events: int = 0
    breaks: tuple[IndexedProblem, ...] = ()
    seal: IndexedSeal | None = None
    expected: dict[str, Any] = {}
    """The values of the projected fields according to the chain."""
    last: dict[str, tuple[Any, Any]] = {}
    cancelled: bool = False
    completed: IndexedInputs | None = None


def read_through(index: FileIndex, kind: str, path: Path, read: Callable[[bytes], T], record: Any) -> T:
    """Read a file through the index as a ``record`` (a type). Raise OSError if the file can't be read."""
    found: list[T] = []

    def fits(data: object) -> bool:
        try:
            found.append(msgspec.convert(data, record))
        except msgspec.ValidationError:
            return False
        return True

    def read_new(content: bytes) -> Any:
        found.append(read(content))
        return msgspec.to_builtins(found[-1])

    index.get_or_read(kind, path, read_new, fits)
    return found[-1]
