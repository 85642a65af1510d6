"""Which tickets can teach something? Those that were judged wrong, or not with one voice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from donewhen.judging.verdict import Verdict

Signal = Literal["label_mismatch", "contradiction", "low_agreement", "conflict_flag", "needs_manual_review"]


class GradientCandidate(NamedTuple):
    """A ticket with a learnable signal."""

    ticket_key: str
    signals: tuple[Signal, ...]


def gradient_candidates(verdicts: Sequence[Verdict]) -> tuple[GradientCandidate, ...]:
    """The gradient candidates. A ticket without any well-formed answer says nothing: it is a failure, on record."""
    found = (GradientCandidate(verdict.ticket_key, eligibility_signals(verdict)) for verdict in verdicts)
    return tuple(one for one in found if one.signals)


def eligibility_signals(verdict: Verdict) -> tuple[Signal, ...]:
    """Why a ticket is eligible; nothing where it is not."""
    if verdict.verdict is None:
        return ()
    signals = verdict.signals
    said: dict[Signal, bool] = {
        "label_mismatch": signals.label_match is False,
        "contradiction": signals.contradiction,
        "low_agreement": signals.low_agreement,
        "conflict_flag": signals.conflict_flag,
        "needs_manual_review": signals.needs_manual_review,
    }
    return tuple(name for name, value in said.items() if value)
