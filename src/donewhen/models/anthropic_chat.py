"""Claude, by the official SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from donewhen.foundation.errors import MissingExtraError
from donewhen.foundation.text import one_line
from donewhen.models.chat import ChatAnswer, ChatRequest
from donewhen.models.pacing import Patience, TryAgain
from donewhen.models.remote import count, refuse
from donewhen.models.remote_chat import RemoteChat
from donewhen.models.roles import FinishReason, Usage

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message

_FINISHED: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class AnthropicChat(RemoteChat["AsyncAnthropic"]):
    """A model of that family."""

    kind = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"
    address_variable = "ANTHROPIC_BASE_URL"
    schema_option = "output_config"

    def __init__(self, model: str, base_url: str | None = None, patience: Patience | None = None) -> None:
        try:
            import anthropic
        except ImportError:
            raise MissingExtraError("A model behind anthropic:", "anthropic") from None
        self._anthropic = anthropic
        super().__init__(model, base_url, patience)

    def _new_client(self) -> AsyncAnthropic:
        return self._anthropic.AsyncAnthropic(api_key=self._key, base_url=self._base_url, max_retries=0)

    async def _asked(self, client: AsyncAnthropic, request: ChatRequest) -> ChatAnswer:
        options = self._options(request)
        # The client has no name for it any more; servers that still know it take it.
        body = {name: options.pop(name) for name in ("temperature",) if name in options}
        # What all tickets share is marked, so that the server keeps it.
        system: Any = [
            {"type": "text", "text": one.content, "cache_control": {"type": "ephemeral"}}
            for one in request.messages
            if one.role == "system"
        ]
        messages: Any = [{"role": one.role, "content": one.content} for one in request.messages if one.role != "system"]
        try:
            found: Message = await client.messages.create(
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
        try:
            return self._answer(found)
        except (AttributeError, KeyError, TypeError) as error:
            # The client takes any JSON for an answer.
            raise TryAgain(f"{self._server} answered without an answer") from error

    def _options(self, request: ChatRequest) -> dict[str, Any]:
        """Everything that a server may not know."""
        options: dict[str, Any] = {"temperature": min(1.0, request.temperature)}
        if request.schema is not None:
            options["output_config"] = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
        return self._known(options)

    def _answer(self, found: Message) -> ChatAnswer:
        text = "".join(one.text for one in found.content if one.type == "text")
        used = found.usage
        cached = count(getattr(used, "cache_read_input_tokens", 0))
        kept = count(getattr(used, "cache_creation_input_tokens", 0))
        prompt = count(getattr(used, "input_tokens", 0)) + cached + kept
        usage = Usage(prompt, count(getattr(used, "output_tokens", 0)), cached)
        reason = _FINISHED.get(str(found.stop_reason), "stop")
        return ChatAnswer(text, usage, reason, None, self._cost(usage))
