"""Adapts a chat model to the two roles: prompts become messages, answers become completions.

Clients of servers and of local weights implement ``Chat``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from donewhen.models.logprobs import draw_option
from donewhen.models.roles import Completion, Decode, FinishReason, Prompt, ReflectionRequest, RolloutRequest, Usage

Role = Literal["system", "user", "assistant"]
Ability = Literal["schema", "choice"]
"""``schema``: answers can be constrained to a JSON Schema. ``choice``: the model can continue a given beginning, and
return the probabilities of two next words without generating text."""

ROLLOUT_TOKENS = 400
REFLECTION_TOKENS = 4000
REASON_TOKENS = 80


class WordChoice(NamedTuple):
    """A position in an answer where one of two words is expected."""

    after: str
    """The text before it on its line."""
    options: tuple[str, str]


class ChatMessage(NamedTuple):
    """One turn."""

    role: Role
    content: str


class ChatRequest(NamedTuple):
    """A question to a chat model."""

    messages: tuple[ChatMessage, ...]
    temperature: float
    sample: int
    """Number of the sample at this temperature; used as the seed if the model has seeds."""
    max_tokens: int
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the answer, for models with the ``schema`` ability."""
    choice: WordChoice | None = None
    """Return the margin between two options if possible. A model with the ``choice`` ability returns only that."""
    begun: str = ""
    """The beginning of the answer, for models that can continue it; only the rest is returned."""


class ChatAnswer(NamedTuple):
    """A chat model's answer."""

    text: str
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    margin: float | None = None
    """Log-probability of the first option minus that of the second."""
    cost: float = 0.0


class Chat(Protocol):
    """A chat model, local or remote. Raises ModelError if it has no answer."""

    @property
    def name(self) -> str:
        """The exact model and server."""
        ...

    @property
    def abilities(self) -> frozenset[Ability]: ...

    @property
    def priced(self) -> bool:
        """Whether the price of an answer is known."""
        ...

    async def complete(self, request: ChatRequest) -> ChatAnswer: ...

    async def aclose(self) -> None:
        """Release connections; the model can still be used afterwards."""
        ...


class ChatModel:
    """Both roles, implemented with a chat model."""

    free = False

    def __init__(self, chat: Chat) -> None:
        self.chat = chat

    @property
    def name(self) -> str:
        return self.chat.name

    @property
    def priced(self) -> bool:
        return self.chat.priced

    async def aclose(self) -> None:
        await self.chat.aclose()

    async def roll(self, request: RolloutRequest) -> Completion:
        """Judge one ticket. The text shared by all tickets is the first message, so that prefix caches work."""
        form = request.form
        question = ChatRequest(
            _messages(request.prompt),
            request.decode.temperature,
            request.decode.sample,
            ROLLOUT_TOKENS,
            choice=WordChoice(f"{form.verdict}:", (form.pass_, form.fail)),
        )
        if "choice" in self.chat.abilities:
            return await self._roll_by_margin(question, request)
        completion = _completion(await self.chat.complete(question))
        if completion.margin is None:
            return completion
        match = re.match(rf"\s*{re.escape(form.verdict)}\s*[:：]\s*(.*)", completion.text, re.IGNORECASE)
        fails = match is not None and match[1].casefold().startswith(form.fail.casefold())
        return completion._replace(margin=-completion.margin if fails else completion.margin)

    async def _roll_by_margin(self, question: ChatRequest, request: RolloutRequest) -> Completion:
        """Take the verdict from the probabilities of the two options; generate a reason only if it will be read."""
        answer = await self.chat.complete(question)
        if answer.margin is None:
            return _completion(answer)
        form, decode = request.form, request.decode
        passes = draw_option(answer.margin, decode.temperature, decode.sample, request.prompt.own)
        margin = answer.margin if passes else -answer.margin
        verdict = f"{form.verdict}: {form.pass_ if passes else form.fail}\n{form.reason}:"
        if not request.reason:
            odds = f"ln p({form.pass_})/p({form.fail}) = {answer.margin:+.2f}"
            return Completion(f"{verdict} {odds}", answer.usage, "stop", margin, answer.cost)
        explanation = await self.chat.complete(
            question._replace(choice=None, begun=verdict, temperature=0.0, max_tokens=REASON_TOKENS)
        )
        # Keep one line; a truncated reason does not invalidate the verdict.
        reason = explanation.text.strip().partition("\n")[0].strip() or "-"
        usage = Usage(*(sum(counts) for counts in zip(answer.usage, explanation.usage, strict=True)))
        return Completion(f"{verdict} {reason}", usage, "stop", margin, answer.cost + explanation.cost)

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._reflect(request)

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._reflect(request)

    async def _reflect(self, request: ReflectionRequest) -> Completion:
        # A repeated question should get a different answer.
        decode = Decode(0.0 if request.attempt == 0 else 0.5, request.attempt)
        schema = request.schema if "schema" in self.chat.abilities else None
        question = ChatRequest(_messages(request.prompt), decode.temperature, decode.sample, REFLECTION_TOKENS, schema)
        return _completion(await self.chat.complete(question))


def _messages(prompt: Prompt) -> tuple[ChatMessage, ...]:
    return ChatMessage("system", prompt.shared), ChatMessage("user", prompt.own)


def _completion(answer: ChatAnswer) -> Completion:
    return Completion(answer.text, answer.usage, answer.finish_reason, answer.margin, answer.cost)
