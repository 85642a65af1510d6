"""A chat model behind the two roles: prompts become messages, answers become completions, and nothing else is known.

Whoever speaks to a server or to weights implements ``Chat``: one method, and what it can do. The rest is here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from donewhen.models.logprobs import draw_option
from donewhen.models.roles import Completion, Decode, FinishReason, Prompt, ReflectionRequest, RolloutRequest, Usage

Role = Literal["system", "user", "assistant"]
Ability = Literal["schema", "choice"]
"""``schema``: an answer can be held to a JSON Schema. ``choice``: an answer that is begun can be gone on with, and how
likely each of two words comes next can be told without writing any."""

ROLLOUT_TOKENS = 400
REFLECTION_TOKENS = 4000
REASON_TOKENS = 80


class WordChoice(NamedTuple):
    """A place in an answer where one of two words stands."""

    after: str
    """What stands before it, on its line."""
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
    """Which of several answers at this temperature: the same number is the same draw, where the model has seeds."""
    max_tokens: int
    schema: Mapping[str, Any] | None = None
    """The answer must be a value of this JSON Schema, where the model can be held to one."""
    choice: WordChoice | None = None
    """Tell how far apart the two options are, where the model can. One with that ability tells nothing else."""
    begun: str = ""
    """What the answer begins with, for a model that can go on with it: only what follows is the answer."""


class ChatAnswer(NamedTuple):
    """A chat model's answer."""

    text: str
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    margin: float | None = None
    """The log-probability of the choice's first option less that of its second."""
    cost: float = 0.0


class Chat(Protocol):
    """A chat model, wherever it runs. It raises ModelError where it has no answer."""

    @property
    def name(self) -> str:
        """Which model exactly, and where."""
        ...

    @property
    def abilities(self) -> frozenset[Ability]: ...

    @property
    def priced(self) -> bool:
        """Whether it is known what an answer costs."""
        ...

    async def complete(self, request: ChatRequest) -> ChatAnswer: ...

    async def aclose(self) -> None:
        """Let go of whatever is held; it may be asked again."""
        ...


class ChatModel:
    """Both roles, played by a chat model."""

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
        """The part that all tickets share comes first, as a message of its own: prefix caches live from that."""
        form = request.form
        question = ChatRequest(
            _messages(request.prompt),
            request.decode.temperature,
            request.decode.sample,
            ROLLOUT_TOKENS,
            choice=WordChoice(f"{form.verdict}:", (form.pass_, form.fail)),
        )
        if "choice" in self.chat.abilities:
            return await self._weighed(question, request)
        told = _completion(await self.chat.complete(question))
        if told.margin is None:
            return told
        said = re.match(rf"\s*{re.escape(form.verdict)}\s*[:：]\s*(.*)", told.text, re.IGNORECASE)
        fails = said is not None and said[1].casefold().startswith(form.fail.casefold())
        return told._replace(margin=-told.margin if fails else told.margin)

    async def _weighed(self, question: ChatRequest, request: RolloutRequest) -> Completion:
        """A verdict from how likely each is; a reason is written only where somebody wants to read it."""
        told = await self.chat.complete(question)
        if told.margin is None:
            return _completion(told)
        form, decode = request.form, request.decode
        passes = draw_option(told.margin, decode.temperature, decode.sample, request.prompt.own)
        margin = told.margin if passes else -told.margin
        verdict = f"{form.verdict}: {form.pass_ if passes else form.fail}\n{form.reason}:"
        if not request.reason:
            odds = f"ln p({form.pass_})/p({form.fail}) = {told.margin:+.2f}"
            return Completion(f"{verdict} {odds}", told.usage, "stop", margin, told.cost)
        why = await self.chat.complete(
            question._replace(choice=None, begun=verdict, temperature=0.0, max_tokens=REASON_TOKENS)
        )
        # One line, and a sentence that was cut off is no reason to do without the verdict.
        reason = why.text.strip().partition("\n")[0].strip() or "-"
        usage = Usage(*(one + other for one, other in zip(told.usage, why.usage, strict=True)))
        return Completion(f"{verdict} {reason}", usage, "stop", margin, told.cost + why.cost)

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._reflect(request)

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._reflect(request)

    async def _reflect(self, request: ReflectionRequest) -> Completion:
        # A question that is asked again should not get the same answer again.
        decode = Decode(0.0 if request.attempt == 0 else 0.5, request.attempt)
        schema = request.schema if "schema" in self.chat.abilities else None
        question = ChatRequest(_messages(request.prompt), decode.temperature, decode.sample, REFLECTION_TOKENS, schema)
        return _completion(await self.chat.complete(question))


def _messages(prompt: Prompt) -> tuple[ChatMessage, ...]:
    return ChatMessage("system", prompt.shared), ChatMessage("user", prompt.own)


def _completion(answer: ChatAnswer) -> Completion:
    return Completion(answer.text, answer.usage, answer.finish_reason, answer.margin, answer.cost)
