"""Any server that speaks the chat-completions dialect of OpenAI: theirs, vLLM, SGLang, Ollama, llama.cpp."""

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
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion

KEY = "OPENAI_API_KEY"
_FINISHED: dict[str, FinishReason] = {"stop": "stop", "length": "length", "content_filter": "refused"}
_NEWER = "max_completion_tokens"


class OpenAIChat:
    """One model on one server. The key comes from the environment, and goes nowhere but to that server."""

    def __init__(self, model: str, base_url: str | None = None, patience: Patience | None = None) -> None:
        try:
            import openai
        except ImportError:
            raise MissingExtraError("A model behind openai:", "openai") from None
        key = os.environ.get(KEY)
        if not key and base_url is None:
            raise ConfigError(f"{KEY} is not set.", next_step="Set it, or name another server: openai:MODEL@URL")
        self._openai = openai
        self._model = model
        self._server = base_url or "openai"
        self._key = key or "none"
        self._base_url = base_url
        self._client: AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pace = Pace(patience)
        self._price = price_of(model)
        self._left_out: set[str] = set()

    @property
    def name(self) -> str:
        return f"openai:{self._model}@{self._server}"

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset() if "response_format" in self._left_out else frozenset({"schema"})

    @property
    def priced(self) -> bool:
        return self._price is not None

    @property
    def pace(self) -> Pace:
        return self._pace

    def _connected(self) -> AsyncOpenAI:
        """The client of this event loop: connections can't be taken from one to another."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # Without retries of its own: the pace must hear what the server says.
            self._client = self._openai.AsyncOpenAI(api_key=self._key, base_url=self._base_url, max_retries=0)
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

    async def _ask(self, request: ChatRequest) -> ChatCompletion:
        options = self._options(request)
        messages: Any = [{"role": one.role, "content": one.content} for one in request.messages]
        try:
            found: ChatCompletion = await self._connected().chat.completions.create(
                model=self._model, messages=messages, **options
            )
        except self._openai.APIStatusError as error:
            refuse(error.status_code, str(error), error.response.headers, self._server, list(options))
        except self._openai.APIConnectionError as error:
            raise TryAgain(one_line(f"{self._server} can't be reached: {error.__cause__ or error}", 200)) from error
        except (self._openai.OpenAIError, ValueError) as error:
            raise TryAgain(one_line(f"{self._server} answered with something else: {error}", 200)) from error
        if not getattr(found, "choices", None) or found.choices[0].message is None:
            raise TryAgain(f"{self._server} answered without an answer")
        return found

    def _options(self, request: ChatRequest) -> dict[str, Any]:
        """Everything that a server may not know, without what this one has refused."""
        limit = "max_tokens" if "max_tokens" not in self._left_out else _NEWER
        options: dict[str, Any] = {
            limit: request.max_tokens,
            "temperature": request.temperature,
            "seed": request.sample,
        }
        if request.schema is not None:
            schema = {"name": "answer", "schema": dict(request.schema), "strict": False}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {name: value for name, value in options.items() if name not in self._left_out}

    def _answer(self, found: ChatCompletion) -> ChatAnswer:
        choice = found.choices[0]
        usage = Usage()
        if found.usage is not None:
            details = found.usage.prompt_tokens_details
            cached = details.cached_tokens if details is not None else 0
            usage = Usage(found.usage.prompt_tokens, found.usage.completion_tokens, cached or 0)
        reason = _FINISHED.get(choice.finish_reason, "stop")
        cost = self._price.of(usage) if self._price is not None else 0.0
        return ChatAnswer(choice.message.content or "", usage, reason, None, cost)
