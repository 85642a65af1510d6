"""Client for servers with OpenAI's chat-completions API: OpenAI, vLLM, SGLang, Ollama, llama.cpp."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from donewhen.foundation.errors import MissingExtraError
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import redact_secrets
from donewhen.models.chat import ChatAnswer, ChatRequest, WordChoice
from donewhen.models.logprobs import logprob_margin
from donewhen.models.remote.pacing import Patience, RetryLater
from donewhen.models.remote.remote_chat import RemoteChat
from donewhen.models.remote.server_errors import raise_for_refusal, token_count
from donewhen.models.remote.streams import read_stream
from donewhen.models.roles import FinishReason, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

_FINISHED: dict[str, FinishReason] = {"length": "length", "content_filter": "refused"}
_LOGPROBS = {"logprobs": True, "top_logprobs": 20}


class OpenAIChat(RemoteChat["AsyncOpenAI"]):
    """A model behind the chat-completions API."""

    kind = "openai"
    key_variable = "OPENAI_API_KEY"
    address_variable = "OPENAI_BASE_URL"
    schema_option = "response_format"

    def __init__(self, model: str, base_url: str | None = None, patience: Patience | None = None) -> None:
        try:
            import openai
        except ImportError:
            raise MissingExtraError("An openai: model", "openai") from None
        self._openai = openai
        super().__init__(model, base_url, patience)

    def _new_client(self) -> AsyncOpenAI:
        return self._openai.AsyncOpenAI(api_key=self._key, base_url=self._base_url, max_retries=0)

    async def _call_server(self, client: AsyncOpenAI, request: ChatRequest, streamed: bool) -> ChatAnswer:
        options = self._options(request, streamed)
        messages: Any = [{"role": message.role, "content": message.content} for message in request.messages]
        body: dict[str, Any] = {"model": self._model, "messages": messages, **options}
        response: Any
        pending: Any
        if streamed:
            pending = client.chat.completions.create(**body)
        else:
            # The same request without ``create``, which transforms all messages and takes as long as everything else.
            pending = client.post("/chat/completions", body=body, cast_to=self._openai.types.chat.ChatCompletion)
        try:
            if streamed:
                response = await read_stream(pending, request, self._server, self.pace.patience.timeout)
            else:
                response = await pending
        except self._openai.APIStatusError as error:
            # The error code is not part of the message.
            detail = f"{error} {error.code or error.type or ''}".strip()
            raise_for_refusal(error.status_code, detail, error.response.headers, self._server, list(options))
        except self._openai.APIConnectionError as error:
            detail = redact_secrets(f"{self._server} can't be reached: {error.__cause__ or error}")
            raise RetryLater(one_line(detail, 200)) from error
        except (self._openai.OpenAIError, ValueError) as error:
            raise RetryLater(
                one_line(redact_secrets(f"{self._server} sent an invalid response: {error}"), 200)
            ) from error
        try:
            answer = _join_chunks(response) if streamed else _read_completion(response)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            # The client accepts any JSON as a response.
            raise RetryLater(f"{self._server} sent a response without an answer") from error
        if streamed and answer.finish is None:
            raise RetryLater(f"{self._server} ended the stream early")
        usage = _usage(answer.used)
        reason = "refused" if answer.refused else _FINISHED.get(str(answer.finish), "stop")
        margin = None if request.choice is None else _margin(answer.tokens, request.choice)
        return ChatAnswer(answer.text, usage, reason, margin, self.cost_of(usage))

    def _options(self, request: ChatRequest, streamed: bool) -> dict[str, Any]:
        """Return the options that a server may not support."""
        # Use the newer name of the limit if the older one was rejected.
        limit = "max_tokens" if "max_tokens" not in self._unsupported else "max_completion_tokens"
        options: dict[str, Any] = {
            limit: request.max_tokens,
            "temperature": request.temperature,
            "seed": request.sample,
        }
        if request.schema is not None:
            schema = {"name": "answer", "schema": dict(request.schema), "strict": False}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.choice is not None and not self._unsupported & _LOGPROBS.keys():
            options |= _LOGPROBS
        if streamed:
            options |= {"stream": True, "stream_options": {"include_usage": True}}
        return self._supported(options)


class _Answer(NamedTuple):
    """The content of a response or of a stream."""

    text: str
    refused: bool
    finish: str | None
    used: object
    tokens: object


def _read_completion(completion: ChatCompletion) -> _Answer:
    choice = completion.choices[0]
    text = _text(choice.message.content)
    tokens = getattr(getattr(choice, "logprobs", None), "content", None)
    return _Answer(text, bool(getattr(choice.message, "refusal", None)), choice.finish_reason, completion.usage, tokens)


def _join_chunks(chunks: Iterable[ChatCompletionChunk]) -> _Answer:
    text, refused, used = "", False, None
    finish: str | None = None
    for chunk in chunks:
        used = getattr(chunk, "usage", None) or used
        for choice in chunk.choices[:1]:
            text += _text(choice.delta.content)
            refused = refused or bool(getattr(choice.delta, "refusal", None))
            finish = choice.finish_reason or finish
    return _Answer(text, refused, finish, used, None)


def _text(content: object) -> str:
    if not isinstance(content, str | None):
        raise TypeError(type(content))
    return content or ""


def _usage(used: object) -> Usage:
    details = getattr(used, "prompt_tokens_details", None)
    return Usage(
        token_count(getattr(used, "prompt_tokens", 0)),
        token_count(getattr(used, "completion_tokens", 0)),
        token_count(getattr(details, "cached_tokens", 0)),
    )


def _margin(tokens: Any, choice: WordChoice) -> float | None:
    """Return the margin between the options at the token where one of them was generated."""
    before, wanted = "", _compact(choice.after)
    try:
        for token in tokens or ():
            if before.endswith(wanted) and token.token.strip():
                margin = logprob_margin([(top.token, top.logprob) for top in token.top_logprobs], choice.options)
                return margin if margin is not None and math.isfinite(margin) else None
            before += _compact(token.token)
    except (AttributeError, TypeError, ValueError, OverflowError):
        # The answer is valid without a margin.
        return None
    return None


def _compact(text: str) -> str:
    """Return the text without white space and with ASCII colons."""
    return "".join(text.split()).replace("：", ":")
