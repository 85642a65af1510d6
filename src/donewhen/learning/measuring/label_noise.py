"""What only people can settle: labels that look wrong, and labels that disagree about what the rule is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from donewhen.learning.measuring.splits import SplitMember

MIN_EPOCHS = 2
MIN_SHARE = 0.25
"""Of the tickets that speak of a condition, so many must speak for the rarer verdict: fewer are mistakes, no policy."""


def suspected_label_noise(
    mistakes: Mapping[str, AbstractSet[int]], epochs: int, unlike: AbstractSet[str]
) -> tuple[str, ...]:
    """Tickets that every vote spoke against in every epoch since, and whose text is like those of the other label.

    One epoch is not enough, unless the run was to have only ``epochs`` = 1: at first, a judge is wrong about many.
    """
    wanted = min(MIN_EPOCHS, epochs)
    return tuple(sorted(key for key, seen in mistakes.items() if len(seen) >= wanted and key in unlike))


def policy_questions(
    members: Sequence[SplitMember], opposed: Sequence[tuple[Sequence[str], Sequence[str]]]
) -> dict[str, str]:
    """Tickets about which the labels disagree, each with why. ``opposed`` are the tickets for either verdict."""
    labels: dict[str, set[str]] = {}
    for member in members:
        labels.setdefault(member.group, set()).add(member.label)
    found = {member.key: "the same work was labelled both ways" for member in members if len(labels[member.group]) > 1}
    for some, others in opposed:
        if min(len(some), len(others)) < MIN_SHARE * (len(some) + len(others)):
            continue
        for key in (*some, *others):
            found.setdefault(key, "two hypotheses say opposite verdicts of the same condition")
    return dict(sorted(found.items()))
