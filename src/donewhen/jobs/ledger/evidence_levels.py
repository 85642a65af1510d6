"""How strong evidence can be, in one word, and how strong it has to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

EvidenceLevel = Literal["asserted", "weak", "fair", "strong"]
LEVELS: tuple[EvidenceLevel, ...] = ("asserted", "weak", "fair", "strong")
"""From the weakest to the strongest."""
LEVEL_WORDS: Mapping[EvidenceLevel, str] = {
    "asserted": "only asserted",
    "weak": "weak",
    "fair": "fair",
    "strong": "strong",
}
"""How the levels are shown."""

NeededLevel: TypeAlias = Literal["fair", "strong"]
NEEDED: tuple[NeededLevel, ...] = ("fair", "strong")
"""The levels that a contract can ask for. Less is what every passed check has."""
NEEDED_BY_STAKES: Mapping[str, NeededLevel] = {"high": "fair", "critical": "strong"}
"""What every criterion of a job needs by the stakes of the job. It is sealed with each agreement, so that contracts
that were agreed to before keep what they say."""


def level_rank(level: str | None) -> int:
    """The place of a level among all; no level, or an unknown one, is below each."""
    return LEVELS.index(level) if level in LEVELS else -1


def higher_level(first: NeededLevel | None, second: NeededLevel | None) -> NeededLevel | None:
    """The higher of two levels that are asked for; None asks for nothing."""
    return first if level_rank(first) >= level_rank(second) else second
