"""Client for Claude models, using the official SDK."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from donewhen.foundation.errors import MissingExtraError
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import redact_secrets
from donewhen.models.chat import ChatAnswer, ChatRequest
from donewhen.models.remote.pacing import Patience, RetryLater
from donewhen.models.remote.remote_chat import RemoteChat
from donewhen.models.remote.server_errors import raise_for_refusal, token_count
from donewhen.models.remote.streams import read_stream
from donewhen.models.roles import FinishReason, Usage

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message, RawMessageStreamEvent

_FINISHED: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class AnthropicChat(RemoteChat["AsyncAnthropic"]):
    """A Claude model."""

    kind = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"
    address_variable = "ANTHROPIC_BASE_URL"
    schema_option = "output_config"

    def __init__(self, model: str, base_url: str | None = None, patience: Patience | None = None) -> None:
        try:
            import anthropic
        except ImportError:
            raise MissingExtraError("An anthropic: model", "anthropic") from None
        self._anthropic = anthropic
        super().__init__(model, base_url, patience)

    def _new_client(self) -> AsyncAnthropic:
        return self._anthropic.AsyncAnthropic(api_key=self._key, base_url=self._base_url, max_retries=0)

    async def _call_server(self, client: AsyncAnthropic, request: ChatRequest, streamed: bool) -> ChatAnswer:
        options = self._options(request, streamed)
        # The client has no parameter for it any more; servers that support it still accept it.
        body = {name: options.pop(name) for name in ("temperature",) if name in options}
        # Mark the shared part for prompt caching.
        system: Any = [
            {"type": "text", "text": message.content, "cache_control": {"type": "ephemeral"}}
            for message in request.messages
            if message.role == "system"
        ]
        messages: Any = [
            {"role": message.role, "content": message.content}
            for message in request.messages
            if message.role != "system"
        ]
        response: Any
        pending: Any = client.messages.create(
            model=self._model,
            max_tokens=request.max_tokens,
            system=system,
            messages=messages,
            extra_body=body,
            **options,
        )
        try:
            if streamed:
                response = await read_stream(pending, request, self._server, self.pace.patience.timeout)
            else:
                response = await pending
        except self._anthropic.APIStatusError as error:
            raise_for_refusal(error.status_code, str(error), error.response.headers, self._server, [*options, *body])
        except self._anthropic.APIConnectionError as error:
            reason = redact_secrets(f"{self._server} can't be reached: {error.__cause__ or error}")
            raise RetryLater(one_line(reason, 200)) from error
        except (self._anthropic.AnthropicError, ValueError) as error:
            raise RetryLater(
                one_line(redact_secrets(f"{self._server} sent an invalid response: {error}"), 200)
            ) from error
        try:
            answer = _join_events(response) if streamed else _read_message(response)
        except (AttributeError, KeyError, TypeError) as error:
            # The client accepts any JSON as a response.
            raise RetryLater(f"{self._server} sent a response without an answer") from error
        if not answer.ended:
            raise RetryLater(f"{self._server} ended the stream early")
        finish = _FINISHED.get(str(answer.stop_reason), "stop")
        return ChatAnswer(answer.text, answer.usage, finish, None, self.cost_of(answer.usage))

    def _options(self, request: ChatRequest, streamed: bool) -> dict[str, Any]:
        """Return the options that a server may not support."""
        options: dict[str, Any] = {"temperature": min(1.0, request.temperature)}
        if request.schema is not None:
            options["output_config"] = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
        if streamed:
            options["stream"] = True
        return self._supported(options)


class _Answer(NamedTuple):
    """The content of a response or of a stream."""

    text: str
    stop_reason: object
    usage: Usage
    ended: bool = True


def _read_message(message: Message) -> _Answer:
    text = "".join(block.text for block in message.content if block.type == "text")
    return _Answer(text, message.stop_reason, _usage(message.usage, message.usage))


def _join_events(events: Iterable[RawMessageStreamEvent]) -> _Answer:
    text, ended = "", False
    stop_reason, first, last = None, None, None
    for event in events:
        match event.type:
            case "message_start":
                first = event.message.usage
            case "content_block_delta" if event.delta.type == "text_delta":
                text += event.delta.text
            case "message_delta":
                stop_reason, last = event.delta.stop_reason or stop_reason, event.usage
            case "message_stop":
                ended = True
    return _Answer(text, stop_reason, _usage(first, last), ended)


def _usage(prompt: object, completion: object) -> Usage:
    """Return the usage. A stream reports input tokens at its start and output tokens at its end."""
    cached = token_count(getattr(prompt, "cache_read_input_tokens", 0))
    written = token_count(getattr(prompt, "cache_creation_input_tokens", 0))
    used = token_count(getattr(prompt, "input_tokens", 0)) + cached + written
    return Usage(used, token_count(getattr(completion, "output_tokens", 0)), cached)
