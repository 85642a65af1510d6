"""Contrast: a judge that follows written rules and a reflector that finds them, with nothing to download and no key.

It reads rules of the language in ``sentences``, and ignores what it can't read. It understands nothing: it counts and
compares. What it reaches is what rules about the wording of tickets can reach, and a model has to beat that.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from donewhen.models.contrast.features import Features
from donewhen.models.contrast.judge import judge_by_rules, unreadable_rules
from donewhen.models.contrast.proposer import Proposer
from donewhen.models.contrast.rules import DefaultRule
from donewhen.models.contrast.sentences import write_rule
from donewhen.models.contrast.wording import rule_sentences
from donewhen.models.roles import Binary, Case, Completion, ReflectionRequest, RolloutRequest

__all__ = ["Contrast", "default_rule", "unreadable_rules"]

_REMEMBERED = 16_000_000
"""Characters of tickets whose features are kept."""
_TOLD = 3
"""Rules that a reason cites at most."""


class Contrast:
    """The model without a model."""

    name = "contrast/1"
    free = True

    def __init__(self) -> None:
        self._features: OrderedDict[tuple[tuple[str, str], ...], Features] = OrderedDict()
        self._held = 0
        self._proposer = Proposer(self.features)

    async def roll(self, request: RolloutRequest) -> Completion:
        """What the rules say of the ticket."""
        told = judge_by_rules(request.rules, self.features(request.evidence), request.decode.temperature)
        words = rule_sentences(request.language)
        reasons = [f"{key}: {' '.join(request.rules[key].split())}" for key in told.applied[:_TOLD]]
        if not reasons:
            reasons.append(words.no_rule)
        ignored = unreadable_rules(request.rules)
        if ignored:
            reasons.append(words.unread.format(keys=", ".join(ignored)))
        form = request.form
        verdict = form.pass_ if told.verdict == "pass" else form.fail
        return Completion(f"{form.verdict}: {verdict}\n{form.reason}: {' '.join(reasons)}", margin=told.margin)

    def decides(self, request: RolloutRequest) -> bool:
        """Whether rules that can be read say something of the ticket, and no rule that binds more is left unread."""
        told = judge_by_rules(request.rules, self.features(request.evidence), request.decode.temperature)
        binding = any(key.startswith("S") for key in unreadable_rules(request.rules))
        return not told.default and not (binding and any(not key.startswith("S") for key in told.applied))

    def study(self, cases: Sequence[Case]) -> None:
        """See all training cases of an epoch."""
        self._proposer.study(cases)

    async def decide(self, request: ReflectionRequest) -> Completion:
        """Which cases show nothing that goes with their label."""
        return Completion(self._proposer.decide(request))

    async def propose(self, request: ReflectionRequest) -> Completion:
        """Rules that would judge the cases better."""
        return Completion(self._proposer.propose(request))

    def features(self, evidence: Mapping[str, str]) -> Features:
        """What can be asked of a ticket, worked out once; the oldest are forgotten when there are too many."""
        key = tuple(evidence.items())
        known = self._features.get(key)
        if known is None:
            known = self._features[key] = Features(evidence)
            self._held += _size(key)
            while self._held > _REMEMBERED and len(self._features) > 1:
                self._held -= _size(self._features.popitem(last=False)[0])
        return known


def default_rule(verdict: Binary, language: str) -> str:
    """The sentence that says which verdict holds where no rule applies."""
    return write_rule(DefaultRule(verdict), language)


def _size(evidence: tuple[tuple[str, str], ...]) -> int:
    return sum(len(text) for _, text in evidence)
