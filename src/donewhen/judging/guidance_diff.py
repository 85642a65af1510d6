"""How the rules differ between two versions of a guidance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from donewhen.judging.guidance import Guidance, sorted_keys


@dataclass(frozen=True)
class RuleChange:
    """The change of one rule."""

    key: str
    kind: Literal["added", "changed", "removed"]
    before: str | None
    after: str | None


def changes_between(before: Guidance | None, after: Guidance) -> Iterator[RuleChange]:
    """Yield the rules that differ, in the order of their keys. If ``before`` is None, every rule is new."""
    old, new = {} if before is None else before.experiences, after.experiences
    for key in sorted_keys({*old, *new}):
        if key not in old:
            yield RuleChange(key, "added", None, new[key])
        elif key not in new:
            yield RuleChange(key, "removed", old[key], None)
        elif old[key] != new[key]:
            yield RuleChange(key, "changed", old[key], new[key])
