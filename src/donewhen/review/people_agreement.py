"""How far people agree with each other: for each two who have labelled the same tickets."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from donewhen.judging.labels import current_labels, read_label_log
from donewhen.judging.mission import Mission
from donewhen.learning.measuring.metrics import Estimate, cohens_kappa, count_confusion, wilson
from donewhen.models.roles import Binary


class PeoplePair(NamedTuple):
    """Two people, and the tickets that both have labelled."""

    one: str
    other: str
    tickets: int
    same: int
    agreement: Estimate | None
    kappa: Estimate | None
    """Agreement beyond chance; None where one of them gave one label only, so that it can't be told."""
    differing: tuple[str, ...]
    """The tickets on which they differ."""


class PeopleAgreement(NamedTuple):
    """What people have labelled, and how far they agree."""

    labelled: int
    by_person: dict[str, int]
    pairs: tuple[PeoplePair, ...]


def people_agreement(mission: Mission) -> PeopleAgreement:
    """The agreement of people about the tickets of a mission, by the last word of each."""
    status = current_labels(read_label_log(mission.folder))
    by_person: dict[str, dict[str, Binary]] = {}
    for group, labels in status.items():
        for by, label in labels.items():
            by_person.setdefault(by, {})[group] = label.label
    pairs = tuple(
        pair
        for one, other in combinations(sorted(by_person), 2)
        if (pair := _pair(one, by_person[one], other, by_person[other])).tickets
    )
    return PeopleAgreement(len(status), {by: len(labels) for by, labels in sorted(by_person.items())}, pairs)


def _pair(one: str, first: dict[str, Binary], other: str, second: dict[str, Binary]) -> PeoplePair:
    common = sorted(first.keys() & second.keys())
    differing = tuple(group for group in common if first[group] != second[group])
    same = len(common) - len(differing)
    found = count_confusion((first[group], second[group]) for group in common)
    varied = all(len({labels[group] for group in common}) == 2 for labels in (first, second))
    kappa = cohens_kappa(found) if varied else None
    return PeoplePair(one, other, len(common), same, wilson(same, len(common)), kappa, differing)
