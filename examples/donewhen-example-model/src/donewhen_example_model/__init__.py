"""A model that judges by one word: ``model = "oneword:should"`` in a mission's settings."""

from __future__ import annotations

from donewhen.models import Completion, ReflectionRequest, RolloutRequest


class OneWord:
    """Fails tickets whose evidence has the word."""

    free = True

    def __init__(self, word: str) -> None:
        self._word = word or "should"
        self.name = f"oneword/1 {self._word}"

    async def roll(self, request: RolloutRequest) -> Completion:
        found = any(self._word in text for text in request.evidence.values())
        verdict, reason = ("fail", f"it says {self._word!r}") if found else ("pass", f"no {self._word!r} in it")
        return Completion(f"Verdict: {verdict}\nReason: {reason}")

    async def decide(self, request: ReflectionRequest) -> Completion:
        return Completion('{"no_evidence_group_ids": [], "decision_analysis": "one word is all that it knows"}')

    async def propose(self, request: ReflectionRequest) -> Completion:
        return Completion('{"has_evidence": false, "evidence_analysis": "it does not learn", "operations": []}')


def open_model(rest: str) -> OneWord:
    """Open the model; ``rest`` is what follows ``oneword:``."""
    return OneWord(rest)
