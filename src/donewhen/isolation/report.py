"""What a person wants to know about isolation on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from donewhen.isolation.levels import LEVELS, Level
from donewhen.isolation.usable import usable_levels

_WHAT: dict[Level, str] = {
    "namespaces": "namespaces: checks see their room, tools and packages, and end with all processes that they start",
    "landlock": "landlock: checks can open nothing but their room, tools and packages, but have this machine's network",
    "copy": "copy: checks get a folder of their own, and can read and change everything else",
}


@dataclass(frozen=True)
class IsolationReport:
    """The strongest level that works, and why stronger ones don't."""

    level: Level
    detail: str
    next_step: str | None


def isolation_report() -> IsolationReport:
    """Try every level."""
    problems = usable_levels()
    level = next(level for level in LEVELS if not problems[level])
    stronger = LEVELS[: LEVELS.index(level)]
    reasons = [f"to use {other}, which is stronger: {problems[other]}" for other in stronger]
    return IsolationReport(level, _WHAT[level], "; ".join(reasons) or None)
