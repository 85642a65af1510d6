"""What only people can settle: labels that look wrong, and labels that disagree about what the rule is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from donewhen.learning.splits import Member

MIN_EPOCHS = 2


def suspected(mistakes: Mapping[str, AbstractSet[int]], epochs: int, unlike: AbstractSet[str]) -> tuple[str, ...]:
    """Tickets that every vote spoke against in every epoch since, and whose text is like those of the other label."""
    wanted = min(MIN_EPOCHS, epochs)
    return tuple(sorted(key for key, seen in mistakes.items() if len(seen) >= wanted and key in unlike))


def policy_questions(members: Sequence[Member], opposed: Sequence[tuple[str, ...]]) -> dict[str, str]:
    """Tickets about which the labels disagree, each with why."""
    labels: dict[str, set[str]] = {}
    for one in members:
        labels.setdefault(one.group, set()).add(one.label)
    found = {one.key: "the same work was labelled both ways" for one in members if len(labels[one.group]) > 1}
    for keys in opposed:
        for key in keys:
            found.setdefault(key, "two hypotheses say opposite verdicts of the same condition")
    return dict(sorted(found.items()))
