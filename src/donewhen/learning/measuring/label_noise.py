"""Find tickets that need a human decision: labels that look wrong, and labels that contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from donewhen.learning.measuring.splits import SplitMember

MIN_EPOCHS = 2
MIN_SHARE = 0.25
"""Minimum share of the rarer verdict among tickets with one condition; fewer are mistakes, not a policy question."""


def suspected_label_noise(
    mistakes: Mapping[str, AbstractSet[int]], epochs: int, unlike: AbstractSet[str]
) -> tuple[str, ...]:
    """Tickets that every vote has contradicted in several epochs, and whose text resembles the other label's texts.

    A single epoch is enough only if ``epochs`` is 1, because an untrained judge makes many mistakes.
    """
    required = min(MIN_EPOCHS, epochs)
    return tuple(sorted(key for key, seen in mistakes.items() if len(seen) >= required and key in unlike))


def policy_questions(
    members: Sequence[SplitMember], opposed: Sequence[tuple[Sequence[str], Sequence[str]]]
) -> dict[str, str]:
    """Tickets whose labels contradict others, with the reason. ``opposed``: pairs of tickets for each verdict."""
    labels: dict[str, set[str]] = {}
    for member in members:
        labels.setdefault(member.group, set()).add(member.label)
    reasons = {
        member.key: "the same work was labelled both ways" for member in members if len(labels[member.group]) > 1
    }
    for first, second in opposed:
        if min(len(first), len(second)) < MIN_SHARE * (len(first) + len(second)):
            continue
        for key in (*first, *second):
            reasons.setdefault(key, "two hypotheses give opposite verdicts for the same condition")
    return dict(sorted(reasons.items()))
