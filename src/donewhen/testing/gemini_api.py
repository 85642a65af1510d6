"""A scripted Gemini API on loopback, for tests with real clients.

Clients use ``GOOGLE_GEMINI_BASE_URL``; any ``GEMINI_API_KEY`` is accepted::

    with GeminiServer([shell("echo hello"), Reply("Done.")]) as server:
        run_the_client(base_url=server.base_url)
    assert "hello" in server.calls()[1].tool_results[0].text
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from donewhen.adapters.scripted import ToolCall
from donewhen.runtime import TokenUsage
from donewhen.testing._loopback import HttpAnswer, LoopbackServer, RecordedRequest, data_chunks, json_chunks

__all__ = ["CallKind", "GeminiRequest", "GeminiServer", "Reply", "ToolOutcome", "shell"]

CallKind = Literal["main", "auxiliary", "other"]
"""Origin of a call: a conversation with tools; an auxiliary call of the client, such as choosing a model; no model
call."""

_STREAM = ":streamGenerateContent"
_WHOLE = ":generateContent"
_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}


@dataclass(frozen=True)
class Reply:
    """One answer of the model, or an error of the API. Without tools it is an attempt to stop.

    A ``status`` other than 200 is an error with the message ``text``; clients retry 429 and 5xx. ``delay`` is in
    seconds, before the first byte. ``broken_off`` closes the connection in the middle of the answer.
    """

    text: str = ""
    tools: tuple[ToolCall, ...] = ()
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(input_tokens=10, output_tokens=5))
    delay: float = 0.0
    status: int = 200
    retry_after: float | None = None
    broken_off: bool = False


def shell(command: str) -> Reply:
    """The model runs a command line with the shell tool of Gemini CLI."""
    return Reply(tools=(ToolCall("run_shell_command", {"command": command, "description": "x"}),))


@dataclass(frozen=True)
class ToolOutcome:
    """The result of a tool call, as reported by the client."""

    name: str
    text: str


@dataclass(frozen=True)
class GeminiRequest(RecordedRequest):
    """One request, with access to what is new in its conversation."""

    @property
    def kind(self) -> CallKind:
        if self.method != "POST" or not self.path.endswith((_STREAM, _WHOLE)):
            return "other"
        return "main" if self.tool_names else "auxiliary"

    @property
    def model(self) -> str:
        return self.path.rpartition("/")[2].partition(":")[0]

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that the model is offered."""
        return tuple(
            str(function.get("name"))
            for tool in self.body.get("tools") or ()
            for function in tool.get("functionDeclarations") or ()
        )

    @property
    def last_user_texts(self) -> tuple[str, ...]:
        """The user texts since the model's last message, without tool results."""
        return tuple(str(part["text"]) for part in self._new_parts() if "text" in part)

    @property
    def tool_results(self) -> tuple[ToolOutcome, ...]:
        """The tool results since the model's last message."""
        answers = (part["functionResponse"] for part in self._new_parts() if "functionResponse" in part)
        return tuple(ToolOutcome(str(answer.get("name")), json.dumps(answer.get("response"))) for answer in answers)

    def _new_parts(self) -> list[Mapping[str, Any]]:
        contents = self.body.get("contents") or []
        spoken = [index for index, content in enumerate(contents) if content.get("role") == "model"]
        new = contents[spoken[-1] + 1 if spoken else 0 :]
        return [part for content in new for part in content.get("parts") or ()]


class GeminiServer(LoopbackServer[GeminiRequest, Reply]):
    """Answers ``models/…:generateContent`` and its stream from a script; the script answers only the conversation."""

    _record = GeminiRequest

    @property
    def base_url(self) -> str:
        """The base URL for clients, which add the API's version themselves."""
        return self.root_url

    def calls(self, *kinds: CallKind) -> tuple[GeminiRequest, ...]:
        """Return the requests of these kinds (default: the main conversation)."""
        return tuple(request for request in self.requests if request.kind in (kinds or ("main",)))

    def _answer(self, request: GeminiRequest) -> HttpAnswer:
        if request.kind == "other":
            counts = request.path.endswith(":countTokens")
            return HttpAnswer(json_chunks({"totalTokens": len(json.dumps(request.body)) // 4} if counts else {}))
        reply = self._reply(request) if request.kind == "main" else Reply("{}")
        if reply.status != 200:
            error = json_chunks(_error(reply.status, reply.text))
            return HttpAnswer(error, status=reply.status, delay=reply.delay, retry_after=reply.retry_after)
        answer = _response(next(self._ids), request.model, reply)
        if request.path.endswith(_WHOLE):
            return HttpAnswer(json_chunks(answer), delay=reply.delay, broken_off=reply.broken_off)
        chunks = data_chunks([answer])
        return HttpAnswer(chunks, "text/event-stream", delay=reply.delay, broken_off=reply.broken_off)

    def _refuse(self, status: int, message: str) -> HttpAnswer:
        return HttpAnswer(json_chunks(_error(status, message)), status=status)


def _error(status: int, message: str) -> dict[str, Any]:
    name = _STATUSES.get(status, "RESOURCE_EXHAUSTED" if status == 429 else "INTERNAL")
    return {"error": {"code": status, "message": message or name, "status": name}}


def _response(number: int, model: str, reply: Reply) -> dict[str, Any]:
    """Return the reply as a response; ``number`` makes its id unique."""
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text or not reply.tools else []
    parts += [{"functionCall": {"name": call.name, "args": dict(call.arguments)}} for call in reply.tools]
    usage = reply.usage
    return {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": usage.input_tokens,
            "cachedContentTokenCount": usage.cached_tokens,
            "candidatesTokenCount": usage.output_tokens,
            "totalTokenCount": usage.input_tokens + usage.output_tokens,
        },
        "modelVersion": model,
        "responseId": f"response-{number}",
    }
