"""A model made of functions: for programs that judge or learn, where the model must say what the test wants."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from donewhen.models.roles import Completion, ReflectionRequest, RolloutRequest, Usage

Said: TypeAlias = "str | Completion | dict[str, Any]"
Answer: TypeAlias = "Said | Awaitable[Said]"


class ScriptedJudge:
    """Answers by functions of what it is asked, and remembers what that was.

    A function returns the text of the answer, a value that becomes JSON, or a whole ``Completion``; it may raise.
    """

    def __init__(
        self,
        roll: Callable[[RolloutRequest], Answer],
        decide: Callable[[ReflectionRequest], Answer] | None = None,
        propose: Callable[[ReflectionRequest], Answer] | None = None,
        *,
        name: str = "scripted/1",
        free: bool = False,
    ) -> None:
        self._roll = roll
        self._decide = decide or _nothing_to_set_aside
        self._propose = propose or _nothing_to_propose
        self.name = name
        self.free = free
        self.rollouts: list[RolloutRequest] = []
        self.decisions: list[ReflectionRequest] = []
        self.proposals: list[ReflectionRequest] = []

    @property
    def calls(self) -> int:
        """How often it was asked anything."""
        return len(self.rollouts) + len(self.decisions) + len(self.proposals)

    async def roll(self, request: RolloutRequest) -> Completion:
        self.rollouts.append(request)
        return await _completed(self._roll(request))

    async def decide(self, request: ReflectionRequest) -> Completion:
        self.decisions.append(request)
        return await _completed(self._decide(request))

    async def propose(self, request: ReflectionRequest) -> Completion:
        self.proposals.append(request)
        return await _completed(self._propose(request))


async def _completed(answer: Answer) -> Completion:
    said = await answer if isinstance(answer, Awaitable) else answer
    if isinstance(said, Completion):
        return said
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return Completion(text, Usage(10, max(1, len(text) // 4)))


def _nothing_to_set_aside(_: ReflectionRequest) -> Answer:
    return {"no_evidence_group_ids": [], "decision_analysis": ""}


def _nothing_to_propose(_: ReflectionRequest) -> Answer:
    return {"has_evidence": False, "evidence_analysis": "", "operations": [], "hypotheses": []}
