"""The judge: it does what the rules say, and nothing else.

Every rule that applies is a sign for its verdict, with a weight that its sentence tells. Signs are added up; the sign
of the sum is the verdict, and where it is zero the default speaks. Scaffold rules are added up first: if they have
something to say, the others are not asked.

Temperature: from 0.5 upwards weak signs are left out. So a ticket whose verdict hangs on weak signs alone gets
different verdicts at low and at high temperature, and no other ticket does. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from donewhen.models.contrast.features import Features
from donewhen.models.contrast.rules import DefaultRule, Rule, applies, signed_weight
from donewhen.models.contrast.sentences import read_rule, sentences_of
from donewhen.models.roles import Binary

HOT = 0.5
"""The temperature from which weak signs are left out."""

FALLBACK: Binary = "fail"
"""The default where no rule states one: what is not shown to be done is not done."""


class RuleVerdict(NamedTuple):
    """A verdict, the rules that made it, and how far it was from the other one."""

    verdict: Binary
    margin: float
    applied: tuple[str, ...]
    """The keys of the rules that were added up; none where the default spoke."""
    default: bool


class ReadRules(NamedTuple):
    """Rules, read once."""

    scaffold: tuple[tuple[str, Rule, int], ...]
    guidance: tuple[tuple[str, Rule, int], ...]
    default: Binary
    unread: tuple[str, ...]


def judge_by_rules(rules: Mapping[str, str], features: Features, temperature: float = 0.0) -> RuleVerdict:
    """The verdict of the rules on a text."""
    read = read_rules(tuple(rules.items()))
    least = 2 if temperature >= HOT else 1
    for some in (read.scaffold, read.guidance):
        total, applied = 0, []
        for key, rule, weight in some:
            if abs(weight) >= least and applies(rule, features):
                total += weight
                applied.append(key)
        if total:
            return RuleVerdict("pass" if total > 0 else "fail", float(abs(total)), tuple(applied), default=False)
    return RuleVerdict(read.default, 0.0, (), default=True)


def unreadable_rules(rules: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of rules that hold a sentence the judge can't read. It ignores those."""
    return read_rules(tuple(rules.items())).unread


@lru_cache(maxsize=4096)
def read_rules(rules: tuple[tuple[str, str], ...]) -> ReadRules:
    """The rules, split by what binds first. The first default counts, the scaffold's before the others'."""
    scaffold: list[tuple[str, Rule, int]] = []
    guidance: list[tuple[str, Rule, int]] = []
    defaults: list[Binary] = []
    prose: list[str] = []
    for key, text in sorted(rules, key=lambda one: not one[0].startswith("S")):
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
