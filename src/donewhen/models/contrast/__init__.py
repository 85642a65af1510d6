"""Contrast: a rule-based judge, and a reflector that finds rules. Needs no download and no key.

It reads rules in the language of ``sentences`` and ignores others. It only counts and compares, so its result is the
baseline that rules about wording can reach, and that a model has to beat.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.features import Features
from donewhen.models.contrast.judge import (
    HOT,
    judge_by_rules,
    only_defaults,
    passes_by_default_alone,
    read_rules,
    unreadable_rules,
)
from donewhen.models.contrast.proposer import Proposer
from donewhen.models.contrast.rules import DefaultRule
from donewhen.models.contrast.sentences import write_rule
from donewhen.models.contrast.wording import rule_sentences
from donewhen.models.roles import Case, Completion, Decode, ReflectionRequest, RolloutRequest, UnreadRule

__all__ = ["Contrast", "default_rule", "only_defaults", "unreadable_rules"]

_REMEMBERED = 16_000_000
"""Size of the feature cache, in characters of tickets."""
_CITED = 3
"""Maximum number of rules that a reason cites."""


class Contrast:
    """A model without weights: rules and counting."""

    name = "contrast/1"
    free = True
    counts_lines = True

    def __init__(self) -> None:
        self._features: OrderedDict[tuple[tuple[str, str], ...], Features] = OrderedDict()
        self._held = 0
        self._proposer = Proposer(self.features)

    async def roll(self, request: RolloutRequest) -> Completion:
        """Judge the ticket by the rules."""
        judged = judge_by_rules(request.rules, self.features(request.evidence), request.decode.temperature)
        words = rule_sentences(request.language)
        reasons = [f"{key}: {' '.join(request.rules[key].split())}" for key in judged.applied[:_CITED]]
        if not reasons:
            reasons.append(words.no_rule)
        ignored = unreadable_rules(request.rules)
        if ignored:
            reasons.append(words.unread.format(keys=", ".join(ignored)))
        form = request.form
        verdict = form.pass_ if judged.verdict == "pass" else form.fail
        return Completion(f"{form.verdict}: {verdict}\n{form.reason}: {' '.join(reasons)}", margin=judged.margin)

    def same_as(self, decode: Decode) -> Decode:
        """Return the decode that stands for all with the same answers: nothing is random, and only heat matters."""
        return Decode(HOT if decode.temperature >= HOT else 0.0)

    def decides(self, request: RolloutRequest) -> bool:
        """Whether readable rules decide the ticket, and no rule that can't be read might change the verdict."""
        judged = judge_by_rules(request.rules, self.features(request.evidence), request.decode.temperature)
        return not judged.default and not self.rules_in_doubt(request, judged.verdict)

    def passes_by_default_alone(self, rules: Mapping[str, str], evidence: Mapping[str, str]) -> bool:
        """Whether the evidence passes only because at most one rule could speak against it, and does not."""
        return passes_by_default_alone(rules, self.features(evidence))

    def unread_rules(self, rules: Mapping[str, str]) -> tuple[UnreadRule, ...]:
        """Return the rules with a sentence that this model can't parse."""
        return read_rules(tuple(rules.items())).unread

    def rules_in_doubt(self, request: RolloutRequest, verdict: Binary) -> tuple[str, ...]:
        """Return the keys of the unread rules that might change the verdict on a ticket.

        Guidance can't change a verdict that the scaffold decides.
        """
        unread = [rule for rule in self.unread_rules(request.rules) if rule.may_change(verdict)]
        if any(not rule.scaffold for rule in unread):
            judged = judge_by_rules(request.rules, self.features(request.evidence), request.decode.temperature)
            if any(key.startswith("S") for key in judged.applied):
                unread = [rule for rule in unread if rule.scaffold]
        return tuple(rule.key for rule in unread)

    def study(self, cases: Sequence[Case]) -> None:
        """Receive all training cases of an epoch."""
        self._proposer.study(cases)

    async def decide(self, request: ReflectionRequest) -> Completion:
        """Return the cases without evidence for their label."""
        return Completion(self._proposer.decide(request))

    async def propose(self, request: ReflectionRequest) -> Completion:
        """Propose rules that would judge the cases better."""
        return Completion(self._proposer.propose(request))

    def features(self, evidence: Mapping[str, str]) -> Features:
        """Return the features of a ticket, from a cache of limited size."""
        key = tuple(evidence.items())
        known = self._features.get(key)
        if known is None:
            known = self._features[key] = Features(evidence)
            self._held += _size(key)
            while self._held > _REMEMBERED and len(self._features) > 1:
                self._held -= _size(self._features.popitem(last=False)[0])
        return known


def default_rule(verdict: Binary, language: str) -> str:
    """Return the sentence for the verdict if no rule applies."""
    return write_rule(DefaultRule(verdict), language)


def _size(evidence: tuple[tuple[str, str], ...]) -> int:
    return sum(len(text) for _, text in evidence)
