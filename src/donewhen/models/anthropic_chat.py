"""Claude, by the official SDK."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from donewhen.foundation.errors import ConfigError, MissingExtraError
from donewhen.foundation.text import one_line
from donewhen.models.chat import Ability, ChatAnswer, ChatRequest
from donewhen.models.pacing import Pace, Patience, TryAgain
from donewhen.models.prices import price_of
from donewhen.models.remote import LeaveOut, refuse
from donewhen.models.roles import FinishReason, Usage

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message

KEY = "ANTHROPIC_API_KEY"
_FINISHED: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class AnthropicChat:
    """One model. The key comes from the environment, and goes nowhere but to the server."""

    def __init__(self, model: str, base_url: str | None = None, patience: Patience | None = None) -> None:
        try:
            import anthropic
        except ImportError:
            raise MissingExtraError("A model behind anthropic:", "anthropic") from None
        key = os.environ.get(KEY)
        if not key and base_url is None:
            raise ConfigError(f"{KEY} is not set.", next_step="Set it in the environment.")
        self._anthropic = anthropic
        self._model = model
        self._server = base_url or "anthropic"
        self._key = key or "none"
        self._base_url = base_url
        self._client: AsyncAnthropic | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pace = Pace(patience)
        self._price = price_of(model)
        self._left_out: set[str] = set()

    @property
    def name(self) -> str:
        return f"anthropic:{self._model}" + ("" if self._server == "anthropic" else f"@{self._server}")

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset() if "output_config" in self._left_out else frozenset({"schema"})

    @property
    def priced(self) -> bool:
        return self._price is not None

    @property
    def pace(self) -> Pace:
        return self._pace

    def _connected(self) -> AsyncAnthropic:
        """The client of this event loop: connections can't be taken from one to another."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # Without retries of its own: the pace must hear what the server says.
            self._client = self._anthropic.AsyncAnthropic(api_key=self._key, base_url=self._base_url, max_retries=0)
            self._loop = loop
        return self._client

    async def aclose(self) -> None:
        """Let go of the connections."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Ask, as often as it takes; what the server does not know is left out from then on."""
        while True:
            try:
                found = await self._pace.call(lambda: self._ask(request))
            except LeaveOut as refused:
                self._left_out.add(refused.option)
                continue
            return self._answer(found)

    async def _ask(self, request: ChatRequest) -> Message:
        options = self._options(request)
        body = {name: options.pop(name) for name in ("temperature",) if name in options}
        # What all tickets share is marked, so that the server keeps it.
        system: Any = [
            {"type": "text", "text": one.content, "cache_control": {"type": "ephemeral"}}
            for one in request.messages
            if one.role == "system"
        ]
        messages: Any = [{"role": one.role, "content": one.content} for one in request.messages if one.role != "system"]
        try:
            found: Message = await self._connected().messages.create(
                model=self._model,
                max_tokens=request.max_tokens,
                system=system,
                messages=messages,
                extra_body=body,
                **options,
            )
        except self._anthropic.APIStatusError as error:
            refuse(error.status_code, str(error), error.response.headers, self._server, [*options, *body])
        except self._anthropic.APIConnectionError as error:
            raise TryAgain(one_line(f"{self._server} can't be reached: {error.__cause__ or error}", 200)) from error
        except (self._anthropic.AnthropicError, ValueError) as error:
            raise TryAgain(one_line(f"{self._server} answered with something else: {error}", 200)) from error
        if not isinstance(getattr(found, "content", None), list):
            raise TryAgain(f"{self._server} answered without an answer")
        return found

    def _options(self, request: ChatRequest) -> dict[str, Any]:
        """Everything that a server may not know, without what this one has refused."""
        options: dict[str, Any] = {"temperature": min(1.0, request.temperature)}
        if request.schema is not None:
            options["output_config"] = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
        return {name: value for name, value in options.items() if name not in self._left_out}

    def _answer(self, found: Message) -> ChatAnswer:
        text = "".join(one.text for one in found.content if one.type == "text")
        used = found.usage
        cached = used.cache_read_input_tokens or 0
        prompt = used.input_tokens + cached + (used.cache_creation_input_tokens or 0)
        usage = Usage(prompt, used.output_tokens, cached)
        cost = self._price.of(usage) if self._price is not None else 0.0
        return ChatAnswer(text, usage, _FINISHED.get(found.stop_reason or "", "stop"), None, cost)
