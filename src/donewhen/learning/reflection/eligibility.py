"""Select gradient candidates: tickets that were judged wrong or without full agreement."""

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
    """The gradient candidates. A ticket without a verdict is not one; it is counted as a failure."""
    candidates = (GradientCandidate(verdict.ticket_key, eligibility_signals(verdict)) for verdict in verdicts)
    return tuple(candidate for candidate in candidates if candidate.signals)


def eligibility_signals(verdict: Verdict) -> tuple[Signal, ...]:
    """The signals that make a ticket eligible; empty if it is not."""
    if verdict.verdict is None:
        return ()
    signals = verdict.signals
    active: dict[Signal, bool] = {
        "label_mismatch": signals.label_match is False,
        "contradiction": signals.contradiction,
        "low_agreement": signals.low_agreement,
        "conflict_flag": signals.conflict_flag,
        # A review that is due to unread rules alone says nothing about the ticket: there is nothing to learn from.
        "needs_manual_review": signals.needs_manual_review and (verdict.uncertain or not verdict.unread_rules),
    }
    return tuple(name for name, value in active.items() if value)
