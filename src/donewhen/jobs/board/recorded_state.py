"""What the ledger says about the state of a job, without evaluating its gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from donewhen.jobs.board.job_state import KnownState
from donewhen.jobs.ledger.entries import Chain, Entry
from donewhen.jobs.ledger.entry_content import (
    Agreed,
    ChangesAccepted,
    ChangesRefused,
    Completed,
    Decided,
    EnvironmentAccepted,
    Evaluated,
    Invalidated,
    Overridden,
    SignedOff,
    SignsAccepted,
    SignsRefused,
    Started,
)
from donewhen.jobs.ledger.gate_results import GateCode, GateName
from donewhen.jobs.record.history import History

GATES: tuple[GateName, ...] = get_args(GateName)
_KNOWN = frozenset(code.value for code in GateCode)


def broken_code(*chains: Chain) -> str:
    """The code of what is wrong with these chains; empty if nothing is."""
    breaks = [failure for chain in chains for failure in chain.breaks if not failure.torn]
    if not breaks:
        return ""
    return GateCode.OTHER_VERSION if all(failure.other_version for failure in breaks) else GateCode.RECORD_BROKEN


def recorded_state(history: History, entries: Sequence[Entry], *, broken: str) -> KnownState:
    """What a chain says about its job.

    It can't know what has happened to files since the last evaluation: that an output is missing again, that evidence
    became stale, or that a completion is no longer valid because something it depends on was changed. An evaluation
    that found the same as the one before it is not recorded. A job that was not evaluated since it was started has no
    reason, and its next step is the command that evaluates it.
    """
    evaluated = last_evaluation(entries)
    closed = None if evaluated is None else _closed(evaluated, entries)
    return history_state(history, broken=broken)._replace(
        closed=closed,
        next=evaluated.content.next if evaluated is not None and isinstance(evaluated.content, Evaluated) else None,
    )


def history_state(history: History, *, broken: str) -> KnownState:
    """What the history of a job says about its state; nothing about the gates."""
    pause = history.waiting.content if history.waiting is not None else None
    iteration: object = history.iteration  # An adopted plan may have held anything.
    return KnownState(
        str(history.status),
        iteration if isinstance(iteration, int) else 0,
        history.started is not None,
        history.completed is not None,
        False,
        pause.decision if isinstance(pause, Decided) else "",
        history.auto_blocked,
        history.auto_blocked and history.decided_since_block,
        broken,
    )


_DECIDES_ABOUT_WORK = (
    SignedOff,
    ChangesAccepted,
    ChangesRefused,
    EnvironmentAccepted,
    SignsAccepted,
    SignsRefused,
)


def last_evaluation(entries: Sequence[Entry]) -> Entry | None:
    """The last evaluation, unless something has happened since that it can't have seen."""
    for entry in reversed(entries):
        content = entry.content
        if isinstance(content, Evaluated) and not isinstance(content, Completed) and content.gates is not None:
            return entry
        if isinstance(content, Completed | Invalidated | Overridden | Agreed):
            return None
        if isinstance(content, _DECIDES_ABOUT_WORK):
            return None
    return None


def _closed(evaluated: Entry, entries: Sequence[Entry]) -> tuple[str, ...] | None:
    """The reason codes, in the order of the gates; None if they no longer apply or this version doesn't know them."""
    gates = evaluated.read_as(Evaluated).gates or {}
    codes = tuple(code for gate in GATES for code in gates.get(gate, ()))
    restarted = any(isinstance(entry.content, Started) for entry in entries if entry.seq > evaluated.seq)
    outdated = restarted and GateCode.UPSTREAM_CHANGED in codes
    return None if outdated or not _KNOWN.issuperset(codes) or not gates.keys() <= {*GATES} else codes
