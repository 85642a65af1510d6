"""Any server that speaks the chat-completions dialect of OpenAI: theirs, vLLM, SGLang, Ollama, llama.cpp."""

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
    """A model behind that dialect."""

    kind = "openai"
    key_variable = "OPENAI_API_KEY"
    address_variable = "OPENAI_BASE_URL"
    schema_option = "response_format"

    def __init__(self, model: str, base_url: str | None = None, patience: Patience | None = None) -> None:
        try:
            import openai
        except ImportError:
            raise MissingExtraError("A model behind openai:", "openai") from None
        self._openai = openai
        super().__init__(model, base_url, patience)

    def _new_client(self) -> AsyncOpenAI:
        return self._openai.AsyncOpenAI(api_key=self._key, base_url=self._base_url, max_retries=0)

    async def _asked(self, client: AsyncOpenAI, request: ChatRequest, streamed: bool) -> ChatAnswer:
        options = self._options(request, streamed)
        messages: Any = [{"role": message.role, "content": message.content} for message in request.messages]
        body: dict[str, Any] = {"model": self._model, "messages": messages, **options}
        found: Any
        asking: Any
        if streamed:
            asking = client.chat.completions.create(**body)
        else:
            # The same request by a shorter way: ``create`` goes through all messages for what it may have to translate,
            # which takes it as long as all the rest.
            asking = client.post("/chat/completions", body=body, cast_to=self._openai.types.chat.ChatCompletion)
        try:
            if streamed:
                found = await read_stream(asking, request, self._server, self.pace.patience.timeout)
            else:
                found = await asking
        except self._openai.APIStatusError as error:
            # What kind of refusal it is stands beside the sentence.
            told = f"{error} {error.code or error.type or ''}".strip()
            raise_for_refusal(error.status_code, told, error.response.headers, self._server, list(options))
        except self._openai.APIConnectionError as error:
            told = redact_secrets(f"{self._server} can't be reached: {error.__cause__ or error}")
            raise RetryLater(one_line(told, 200)) from error
        except (self._openai.OpenAIError, ValueError) as error:
            raise RetryLater(
                one_line(redact_secrets(f"{self._server} answered with something else: {error}"), 200)
            ) from error
        try:
            said = _joined(found) if streamed else _said(found)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            # The client takes any JSON for an answer.
            raise RetryLater(f"{self._server} answered without an answer") from error
        if streamed and said.finish is None:
            raise RetryLater(f"{self._server} broke off before the end")
        usage = _usage(said.used)
        reason = "refused" if said.refused else _FINISHED.get(str(said.finish), "stop")
        margin = None if request.choice is None else _margin(said.tokens, request.choice)
        return ChatAnswer(said.text, usage, reason, margin, self.cost_of(usage))

    def _options(self, request: ChatRequest, streamed: bool) -> dict[str, Any]:
        """Everything that a server may not know."""
        # The newer name of the limit, where the older one was refused.
        limit = "max_tokens" if "max_tokens" not in self._left_out else "max_completion_tokens"
        options: dict[str, Any] = {
            limit: request.max_tokens,
            "temperature": request.temperature,
            "seed": request.sample,
        }
        if request.schema is not None:
            schema = {"name": "answer", "schema": dict(request.schema), "strict": False}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.choice is not None and not self._left_out & _LOGPROBS.keys():
            options |= _LOGPROBS
        if streamed:
            options |= {"stream": True, "stream_options": {"include_usage": True}}
        return self._known(options)


class _Said(NamedTuple):
    """What an answer says, in one piece or in many."""

    text: str
    refused: bool
    finish: str | None
    used: object
    tokens: object


def _said(found: ChatCompletion) -> _Said:
    choice = found.choices[0]
    text = _text(choice.message.content)
    tokens = getattr(getattr(choice, "logprobs", None), "content", None)
    return _Said(text, bool(getattr(choice.message, "refusal", None)), choice.finish_reason, found.usage, tokens)


def _joined(found: Iterable[ChatCompletionChunk]) -> _Said:
    text, refused, used = "", False, None
    finish: str | None = None
    for piece in found:
        used = getattr(piece, "usage", None) or used
        for choice in piece.choices[:1]:
            text += _text(choice.delta.content)
            refused = refused or bool(getattr(choice.delta, "refusal", None))
            finish = choice.finish_reason or finish
    return _Said(text, refused, finish, used, None)


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
    """How far the options were apart where one of them was written."""
    before, wanted = "", _bare(choice.after)
    try:
        for token in tokens or ():
            if before.endswith(wanted) and token.token.strip():
                margin = logprob_margin([(top.token, top.logprob) for top in token.top_logprobs], choice.options)
                return margin if margin is not None and math.isfinite(margin) else None
            before += _bare(token.token)
    except (AttributeError, TypeError, ValueError, OverflowError):
        # An answer is one without it.
        return None
    return None


def _bare(text: str) -> str:
    """Without spaces, and with the colon that most people write."""
    return "".join(text.split()).replace("：", ":")
