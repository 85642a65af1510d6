"""The credit of a rule: compare verdicts with and without it, and select rules to remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from donewhen.judging.guidance import Guidance
from donewhen.judging.mission_settings import Rules
from donewhen.learning.measuring.trial import LabelledVerdict


class RuleCredit(NamedTuple):
    """Tickets that are judged right only with the rule, and tickets that are judged wrong only with it."""

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
    """The rules that should be removed, the worst first."""
    bad = [
        (credit.confidence, key)
        for key, credit in measured.items()
        if key in guidance.experiences
        and credit.confidence < rules.cleanup_below
        and len(credit.misses) >= rules.cleanup_misses
    ]
    return tuple(key for _, key in sorted(bad))
