"""The levels of isolation: what each keeps apart, from the strongest to the weakest."""

from __future__ import annotations

from typing import Literal

Network = Literal["own", "host"]
Level = Literal["namespaces", "landlock", "copy"]
LEVELS: tuple[Level, ...] = ("namespaces", "landlock", "copy")
"""From the strongest to the weakest."""


def is_weaker(level: str, other: str) -> bool:
    """Whether a level keeps less apart than another one. An unknown level is weaker than any other."""
    return _rank(level) > _rank(other)


def network_at(level: str, wanted: Network) -> Network:
    """The network that a command really has at a level.

    A network of its own needs namespaces. Landlock can forbid ports, but not addresses: it can't forbid other machines
    without forbidding the loopback that tests of servers need. So commands have the machine's network at the other
    levels, and their records say so.
    """
    return wanted if level == "namespaces" else "host"


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)
