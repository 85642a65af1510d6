"""Any server that speaks the chat-completions dialect of OpenAI: theirs, vLLM, SGLang, Ollama, llama.cpp."""

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
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion

_FINISHED: dict[str, FinishReason] = {"length": "length", "content_filter": "refused"}


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

    async def _asked(self, client: AsyncOpenAI, request: ChatRequest) -> ChatAnswer:
        options = self._options(request)
        messages: Any = [{"role": one.role, "content": one.content} for one in request.messages]
        try:
            found: ChatCompletion = await client.chat.completions.create(
                model=self._model, messages=messages, **options
            )
        except self._openai.APIStatusError as error:
            # What kind of refusal it is stands beside the sentence.
            told = f"{error} {error.code or error.type or ''}".strip()
            refuse(error.status_code, told, error.response.headers, self._server, list(options))
        except self._openai.APIConnectionError as error:
            raise TryAgain(one_line(f"{self._server} can't be reached: {error.__cause__ or error}", 200)) from error
        except (self._openai.OpenAIError, ValueError) as error:
            raise TryAgain(one_line(f"{self._server} answered with something else: {error}", 200)) from error
        try:
            return self._answer(found)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            # The client takes any JSON for an answer.
            raise TryAgain(f"{self._server} answered without an answer") from error

    def _options(self, request: ChatRequest) -> dict[str, Any]:
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
        return self._known(options)

    def _answer(self, found: ChatCompletion) -> ChatAnswer:
        choice = found.choices[0]
        told, refusal = choice.message.content, getattr(choice.message, "refusal", None)
        if not isinstance(told, str | None):
            raise TypeError(type(told))
        used = found.usage
        details = getattr(used, "prompt_tokens_details", None)
        usage = Usage(
            count(getattr(used, "prompt_tokens", 0)),
            count(getattr(used, "completion_tokens", 0)),
            count(getattr(details, "cached_tokens", 0)),
        )
        reason = "refused" if refusal else _FINISHED.get(str(choice.finish_reason), "stop")
        return ChatAnswer(told or "", usage, reason, None, self._cost(usage))
