"""Who learns, who tries, who is never shown: tickets divided by cluster, both labels alike, the same for a seed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.judging.mission_settings import Split
from donewhen.models.roles import Binary

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")


class SplitMember(NamedTuple):
    """As much of a ticket as dividing needs."""

    key: str
    group: str
    cluster: str
    label: Binary


class Splits(NamedTuple):
    """Ticket keys by part, each in a fixed order."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]

    @property
    def hashes(self) -> dict[str, str]:
        """What was in each part, whatever the order."""
        return {part: digest_of(sorted(getattr(self, part))) for part in PARTS}


def split_tickets(members: Iterable[SplitMember], shares: Split, seed: int) -> Splits:
    """Divide tickets. A cluster is never divided, and neither is a group: its two labels stay together."""
    together = _together(list(members))
    shuffled = [together[name] for name in sorted(together)]
    random.Random(seed).shuffle(shuffled)
    # The large ones first, while there is still room to make up for them.
    shuffled.sort(key=len, reverse=True)
    wanted = {part: getattr(shares, part) for part in PARTS if getattr(shares, part) > 0}
    totals: dict[Binary, int] = {"pass": 0, "fail": 0}
    for cluster in shuffled:
        for one in cluster:
            totals[one.label] += 1
    have: dict[Part, dict[Binary, int]] = {part: {"pass": 0, "fail": 0} for part in wanted}
    chosen: dict[Part, list[str]] = {part: [] for part in PARTS}
    for cluster in shuffled:
        part = max(wanted, key=lambda one: (_room(cluster, wanted[one], have[one], totals), -PARTS.index(one)))
        for one in cluster:
            have[part][one.label] += 1
            chosen[part].append(one.key)
    return Splits(tuple(chosen["train"]), tuple(chosen["validation"]), tuple(chosen["test"]))


def _room(cluster: list[SplitMember], share: float, have: Mapping[Binary, int], totals: Mapping[Binary, int]) -> float:
    """How far a part is from its share of the labels that a cluster brings."""
    return sum((share * totals[one.label] - have[one.label]) / (share * totals[one.label]) for one in cluster)


def _together(members: list[SplitMember]) -> dict[str, list[SplitMember]]:
    """Clusters, joined where they share a group."""
    leads: dict[str, str] = {}

    def lead(name: str) -> str:
        while leads.setdefault(name, name) != name:
            leads[name] = leads[leads[name]]
            name = leads[name]
        return name

    for member in members:
        first, second = sorted((lead(f"c {member.cluster}"), lead(f"g {member.group}")))
        leads[second] = first
    found: dict[str, list[SplitMember]] = defaultdict(list)
    for member in sorted(members):
        found[lead(f"c {member.cluster}")].append(member)
    return found
