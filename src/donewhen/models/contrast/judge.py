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
from donewhen.models.contrast.sentences import fails_only, read_rule, sentences_of
from donewhen.models.roles import UnreadRule

HOT = 0.5
"""The temperature from which weak rules are ignored."""

FALLBACK: Binary = "fail"
"""The default if no rule states one: work without evidence is not done."""


_FIRST = "G0"
"""The default rule. If it can't be read, the fallback applies, which may be wrong in both directions."""


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
    unread: tuple[UnreadRule, ...]


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
    return tuple(rule.key for rule in read_rules(tuple(rules.items())).unread)


def only_defaults(rules: Mapping[str, str]) -> bool:
    """Whether all rules are readable and say nothing but the default, in any wording."""
    read = read_rules(tuple(rules.items()))
    return not (read.scaffold or read.guidance or read.unread)


def passes_by_default_alone(rules: Mapping[str, str], features: Features) -> bool:
    """Whether a text passes only because no rule speaks against it, although there is at most one that could."""
    read = read_rules(tuple(rules.items()))
    if len(read.scaffold) + len(read.guidance) > 1 or read.unread:
        return False
    judged = judge_by_rules(rules, features)
    return judged.default and judged.verdict == "pass"


@lru_cache(maxsize=4096)
def read_rules(rules: tuple[tuple[str, str], ...]) -> ReadRules:
    """Parse rules into scaffold and guidance. The first default counts, scaffold before guidance.

    A later default of the same group that contradicts the first is not followed, so it counts as unread.
    """
    scaffold: list[tuple[str, Rule, int]] = []
    guidance: list[tuple[str, Rule, int]] = []
    defaults: dict[str, Binary] = {}
    prose: dict[str, list[str]] = {}
    for key, text in sorted(rules, key=lambda item: not item[0].startswith("S")):
        for sentence in sentences_of(text):
            rule = _read(sentence)
            if isinstance(rule, DefaultRule):
                if defaults.setdefault(key[:1], rule.verdict) != rule.verdict:
                    prose.setdefault(key, []).append(sentence)
            elif rule is None:
                prose.setdefault(key, []).append(sentence)
            else:
                (scaffold if key.startswith("S") else guidance).append((key, rule, signed_weight(rule)))
    default = next(iter(defaults.values()), FALLBACK)
    unread = tuple(UnreadRule(key, key != _FIRST and all(map(fails_only, said))) for key, said in prose.items())
    return ReadRules(tuple(scaffold), tuple(guidance), default, unread)


_read = lru_cache(maxsize=1 << 14)(read_rule)
