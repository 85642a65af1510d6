"""A model made of functions, for tests of programs that judge or learn."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from donewhen.models.roles import Completion, ReflectionRequest, RolloutRequest, Usage

AnswerValue: TypeAlias = "str | Completion | dict[str, Any]"
Answer: TypeAlias = "AnswerValue | Awaitable[AnswerValue]"


class ScriptedJudge:
    """Answers with functions of the request, and records all requests.

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
        """Number of requests so far."""
        return len(self.rollouts) + len(self.decisions) + len(self.proposals)

    async def roll(self, request: RolloutRequest) -> Completion:
        self.rollouts.append(request)
        return await _completion(self._roll(request))

    async def decide(self, request: ReflectionRequest) -> Completion:
        self.decisions.append(request)
        return await _completion(self._decide(request))

    async def propose(self, request: ReflectionRequest) -> Completion:
        self.proposals.append(request)
        return await _completion(self._propose(request))


async def _completion(answer: Answer) -> Completion:
    value = await answer if isinstance(answer, Awaitable) else answer
    if isinstance(value, Completion):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Completion(text, Usage(10, max(1, len(text) // 4)))


def _nothing_to_set_aside(_: ReflectionRequest) -> Answer:
    return {"no_evidence_group_ids": [], "decision_analysis": ""}


def _nothing_to_propose(_: ReflectionRequest) -> Answer:
    return {"has_evidence": False, "evidence_analysis": "", "operations": [], "hypotheses": []}
