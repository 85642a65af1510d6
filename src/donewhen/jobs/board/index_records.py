"""What the overview keeps of plans and chains in the index. A record of another shape is read again from its file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from donewhen.jobs.board.job_state import KnownState
from donewhen.jobs.ledger.entry_content import Files
from donewhen.jobs.ledger.terms_content import JobTerms, Terms


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
    unknown_format: str
    misspelled: tuple[tuple[str, str], ...]
    """Fields that are probably misspelled, each with the one that was meant."""


class IndexedSeal(msgspec.Struct, frozen=True):
    """The agreed terms of a job."""

    terms: Terms
    hash: str


class IndexedFiles(msgspec.Struct, frozen=True):
    """The files that a completed job was built on, and those that it made."""

    upstream: Files
    declared: Files
    outputs: Files
    at: str
    failed_again: bool


class IndexedChain(msgspec.Struct, frozen=True):
    """A chain, reduced to what the overview needs."""

    events: int = 0
    breaks: tuple[IndexedProblem, ...] = ()
    seal: IndexedSeal | None = None
    expected: dict[str, Any] = {}
    """The values of the projected fields according to the chain."""
    last: dict[str, tuple[Any, Any]] = {}
    cancelled: bool = False
    completed: IndexedFiles | None = None
    known: KnownState = KnownState()


decode_plan: Callable[[str], IndexedPlan | UnreadablePlan] = msgspec.json.Decoder(IndexedPlan | UnreadablePlan).decode
decode_chain: Callable[[str], IndexedChain] = msgspec.json.Decoder(IndexedChain).decode
