"""What does a rule do? Leave it out and see: that is its credit, and rules that don't pay go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from donewhen.judging.guidance import Guidance
from donewhen.judging.mission_settings import Rules
from donewhen.learning.measuring.trial import LabelledVerdict


class RuleCredit(NamedTuple):
    """Tickets that are right only with a rule, and tickets that are wrong only with it."""

    hits: tuple[str, ...]
    misses: tuple[str, ...]

    @property
    def confidence(self) -> float:
        return (len(self.hits) + 1) / (len(self.hits) + len(self.misses) + 2)


def rule_credit(with_rule: Mapping[str, LabelledVerdict], without: Mapping[str, LabelledVerdict]) -> RuleCredit:
    """Compare the same tickets with and without a rule."""
    keys = sorted(with_rule)
    return RuleCredit(
        tuple(key for key in keys if not with_rule[key].wrong and without[key].wrong),
        tuple(key for key in keys if with_rule[key].wrong and not without[key].wrong),
    )


def rules_not_paying(guidance: Guidance, measured: Mapping[str, RuleCredit], rules: Rules) -> tuple[str, ...]:
    """The rules that should go, the worst first."""
    found = [
        (one.confidence, key)
        for key, one in measured.items()
        if key in guidance.experiences
        and one.confidence < rules.cleanup_below
        and len(one.misses) >= rules.cleanup_misses
    ]
    return tuple(key for _, key in sorted(found))
