"""Agreement between people who have labelled the same tickets, pair by pair."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.judging.labels import current_labels, read_label_log
from donewhen.judging.mission import Mission
from donewhen.learning.measuring.metrics import Estimate, cohens_kappa, count_confusion, wilson


class PeoplePair(NamedTuple):
    """Two people and their agreement on the tickets that both have labelled."""

    first: str
    second: str
    tickets: int
    same: int
    agreement: Estimate | None
    kappa: Estimate | None
    """Agreement beyond chance; None if one of them gave only one label, so that it is undefined."""
    differing: tuple[str, ...]
    """The tickets on which they differ."""


class PeopleAgreement(NamedTuple):
    """How many tickets people have labelled, and how far they agree."""

    labelled: int
    by_person: dict[str, int]
    pairs: tuple[PeoplePair, ...]


def people_agreement(mission: Mission) -> PeopleAgreement:
    """Return the agreement of people about a mission's tickets, by each person's latest label."""
    status = current_labels(read_label_log(mission.folder))
    by_person: dict[str, dict[str, Binary]] = {}
    for group, labels in status.items():
        for by, label in labels.items():
            by_person.setdefault(by, {})[group] = label.label
    pairs = tuple(
        pair
        for name, other_name in combinations(sorted(by_person), 2)
        if (pair := _pair(name, by_person[name], other_name, by_person[other_name])).tickets
    )
    return PeopleAgreement(len(status), {by: len(labels) for by, labels in sorted(by_person.items())}, pairs)


def _pair(name: str, first: dict[str, Binary], other_name: str, second: dict[str, Binary]) -> PeoplePair:
    common = sorted(first.keys() & second.keys())
    differing = tuple(group for group in common if first[group] != second[group])
    same = len(common) - len(differing)
    confusion = count_confusion((first[group], second[group]) for group in common)
    varied = all(len({labels[group] for group in common}) == 2 for labels in (first, second))
    kappa = cohens_kappa(confusion) if varied else None
    return PeoplePair(name, other_name, len(common), same, wilson(same, len(common)), kappa, differing)
