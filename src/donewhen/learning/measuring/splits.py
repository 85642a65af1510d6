"""Split tickets into train, validation and test: by cluster, stratified by label, deterministic for a seed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.foundation.canonical import digest_of
from donewhen.judging.mission_settings import Split

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")


class SplitMember(NamedTuple):
    """The fields of a ticket that splitting needs."""

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
        """Digest of the keys of each part, independent of their order."""
        return {part: digest_of(sorted(getattr(self, part))) for part in PARTS}


def split_tickets(members: Iterable[SplitMember], shares: Split, seed: int) -> Splits:
    """Split the tickets. Clusters and groups are never divided, so both labels of a group stay together."""
    clusters = _joined_clusters(list(members))
    shuffled = [clusters[name] for name in sorted(clusters)]
    random.Random(seed).shuffle(shuffled)
    # Large clusters first, while the later ones can still balance the parts.
    shuffled.sort(key=len, reverse=True)
    wanted = {part: getattr(shares, part) for part in PARTS if getattr(shares, part) > 0}
    totals: dict[Binary, int] = {"pass": 0, "fail": 0}
    for cluster in shuffled:
        for member in cluster:
            totals[member.label] += 1
    have: dict[Part, dict[Binary, int]] = {part: {"pass": 0, "fail": 0} for part in wanted}
    chosen: dict[Part, list[str]] = {part: [] for part in PARTS}
    for cluster in shuffled:
        part = max(wanted, key=lambda name: (_room(cluster, wanted[name], have[name], totals), -PARTS.index(name)))
        for member in cluster:
            have[part][member.label] += 1
            chosen[part].append(member.key)
    return Splits(tuple(chosen["train"]), tuple(chosen["validation"]), tuple(chosen["test"]))


def _room(cluster: list[SplitMember], share: float, have: Mapping[Binary, int], totals: Mapping[Binary, int]) -> float:
    """How far a part is below its share of the labels in a cluster."""
    return sum(
        (share * totals[member.label] - have[member.label]) / (share * totals[member.label]) for member in cluster
    )


def _joined_clusters(members: list[SplitMember]) -> dict[str, list[SplitMember]]:
    """The members by cluster, with clusters that share a group joined (union-find)."""
    parents: dict[str, str] = {}

    def root(name: str) -> str:
        while parents.setdefault(name, name) != name:
            parents[name] = parents[parents[name]]
            name = parents[name]
        return name

    for member in members:
        first, second = sorted((root(f"c {member.cluster}"), root(f"g {member.group}")))
        parents[second] = first
    clusters: dict[str, list[SplitMember]] = defaultdict(list)
    for member in sorted(members):
        clusters[root(f"c {member.cluster}")].append(member)
    return clusters
