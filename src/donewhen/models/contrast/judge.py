"""The rule-based judge.

Every rule that applies adds its weight for its verdict. The sign of the sum is the verdict; if the sum is zero, the
default applies. Scaffold rules are added up first: if their sum is not zero, the guidance is not used.

Temperature: from 0.5 upwards weak rules are ignored. So tickets that only weak rules decide get different verdicts at
low and at high temperature, and no other ticket does. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.features import Features
from donewhen.models.contrast.rules import DefaultRule, Rule, applies, signed_weight
from donewhen.models.contrast.sentences import read_rule, sentences_of

HOT = 0.5
"""The temperature from which weak rules are ignored."""

FALLBACK: Binary = "fail"
"""The default if no rule states one: work without evidence is not done."""


class RuleVerdict(NamedTuple):
    """A verdict, its margin, and the rules that decided it."""

    verdict: Binary
    margin: float
    applied: tuple[str, ...]
    """Keys of the rules that were added up; empty for the default."""
    default: bool


class ReadRules(NamedTuple):
    """Parsed rules."""

    scaffold: tuple[tuple[str, Rule, int], ...]
    guidance: tuple[tuple[str, Rule, int], ...]
    default: Binary
    unread: tuple[str, ...]


def judge_by_rules(rules: Mapping[str, str], features: Features, temperature: float = 0.0) -> RuleVerdict:
    """Return the verdict of the rules on a text."""
    read = read_rules(tuple(rules.items()))
    least = 2 if temperature >= HOT else 1
    for group in (read.scaffold, read.guidance):
        total, applied = 0, []
        for key, rule, weight in group:
            if abs(weight) >= least and applies(rule, features):
                total += weight
                applied.append(key)
        if total:
            return RuleVerdict("pass" if total > 0 else "fail", float(abs(total)), tuple(applied), default=False)
    return RuleVerdict(read.default, 0.0, (), default=True)


def unreadable_rules(rules: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of rules with a sentence that the judge can't parse and therefore ignores."""
    return read_rules(tuple(rules.items())).unread


@lru_cache(maxsize=4096)
def read_rules(rules: tuple[tuple[str, str], ...]) -> ReadRules:
    """Parse rules into scaffold and guidance. The first default counts, scaffold before guidance."""
    scaffold: list[tuple[str, Rule, int]] = []
    guidance: list[tuple[str, Rule, int]] = []
    defaults: list[Binary] = []
    prose: list[str] = []
    for key, text in sorted(rules, key=lambda item: not item[0].startswith("S")):
        for sentence in sentences_of(text):
            rule = _read(sentence)
            if isinstance(rule, DefaultRule):
                defaults.append(rule.verdict)
            elif rule is None:
                prose.append(key)
            else:
                (scaffold if key.startswith("S") else guidance).append((key, rule, signed_weight(rule)))
    default = defaults[0] if defaults else FALLBACK
    return ReadRules(tuple(scaffold), tuple(guidance), default, tuple(dict.fromkeys(prose)))


_read = lru_cache(maxsize=1 << 14)(read_rule)
