"""A scripted OpenAI Responses API on loopback, for tests with real clients.

Clients use its base URL; any key is accepted::

    with ResponsesServer([shell("echo hello"), Reply("Done.")]) as server:
        run_the_client(base_url=server.base_url)
    assert "hello" in server.calls()[1].tool_results[0].text
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from donewhen.adapters.scripted import ToolCall
from donewhen.runtime import TokenUsage
from donewhen.testing._loopback import HttpAnswer, LoopbackServer, RecordedRequest, event_chunks, json_chunks

__all__ = ["CallKind", "Reply", "ResponsesRequest", "ResponsesServer", "ToolOutcome", "shell"]

CallKind = Literal["main", "subagent", "other"]
"""Origin of a call: the main conversation; a sub-agent of Codex; or no model call."""


@dataclass(frozen=True)
class Reply:
    """One answer of the model, or an error of the API. Without tools it is an attempt to stop.

    A ``status`` other than 200 is an error with the message ``text``; clients retry 429 and 5xx, after ``retry_after``
    seconds if given. ``delay`` is in seconds, before the first byte. ``broken_off`` closes the connection in the middle
    of the answer. A tool in a namespace is called ``namespace.tool``.
    """

    text: str = ""
    tools: tuple[ToolCall, ...] = ()
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(input_tokens=10, output_tokens=5))
    delay: float = 0.0
    status: int = 200
    retry_after: float | None = None
    broken_off: bool = False


def shell(command: str) -> Reply:
    """The model runs a command line with the shell tool of Codex."""
    return Reply(tools=(ToolCall("exec_command", {"cmd": command}),))


@dataclass(frozen=True)
class ToolOutcome:
    """The result of a tool call, as reported by the client."""

    name: str
    text: str


@dataclass(frozen=True)
class ResponsesRequest(RecordedRequest):
    """One request, with access to what is new in its conversation."""

    @property
    def kind(self) -> CallKind:
        if (self.method, self.path) != ("POST", "/v1/responses"):
            return "other"
        return "subagent" if self.headers.get("x-openai-subagent") == "collab_spawn" else "main"

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that the model is offered; those in a namespace are called ``namespace.tool``."""
        return tuple(_tool_names(self.body.get("tools") or ()))

    @property
    def last_user_texts(self) -> tuple[str, ...]:
        """The user texts since the model's last message, without tool results."""
        return tuple(_text_of(item["content"]) for item in self._new_items() if item.get("role") == "user")

    @property
    def tool_results(self) -> tuple[ToolOutcome, ...]:
        """The tool results since the model's last message."""
        names = {item["call_id"]: item.get("name", "") for item in self._items() if "arguments" in item}
        return tuple(
            ToolOutcome(names.get(item["call_id"], ""), _text_of(item["output"]))
            for item in self._new_items()
            if "output" in item
        )

    def _items(self) -> list[Mapping[str, Any]]:
        items = self.body.get("input") or []
        return [{"role": "user", "content": items}] if isinstance(items, str) else items

    def _new_items(self) -> list[Mapping[str, Any]]:
        items = self._items()
        spoken = [index for index, item in enumerate(items) if item.get("role") == "assistant" or "arguments" in item]
        return items[spoken[-1] + 1 if spoken else 0 :]


class ResponsesServer(LoopbackServer[ResponsesRequest, Reply]):
    """Answers ``POST /v1/responses`` from a script, streamed if the client asks for it."""

    _record = ResponsesRequest

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"

    def calls(self, *kinds: CallKind) -> tuple[ResponsesRequest, ...]:
        """Return the requests of these kinds (default: the main conversation)."""
        return tuple(request for request in self.requests if request.kind in (kinds or ("main",)))

    def _answer(self, request: ResponsesRequest) -> HttpAnswer:
        if request.kind == "other":
            return self._refuse(404, f"This scripted server has no {request.method} {request.path}.")
        reply = self._reply(request)
        if reply.status != 200:
            error = json_chunks(_error(reply.status, reply.text))
            return HttpAnswer(error, status=reply.status, delay=reply.delay, retry_after=reply.retry_after)
        response = _response(next(self._ids), request.model, reply)
        if not request.body.get("stream"):
            return HttpAnswer(json_chunks(response), delay=reply.delay, broken_off=reply.broken_off)
        events = ({**event, "sequence_number": number} for number, event in enumerate(_events(response)))
        return HttpAnswer(event_chunks(events), "text/event-stream", delay=reply.delay, broken_off=reply.broken_off)

    def _refuse(self, status: int, message: str) -> HttpAnswer:
        return HttpAnswer(json_chunks(_error(status, message)), status=status)


def _error(status: int, message: str) -> dict[str, Any]:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message or kind, "type": kind, "param": None, "code": None}}


def _response(number: int, model: str, reply: Reply) -> dict[str, Any]:
    """Return the reply as a response object; ``number`` makes its ids unique."""
    usage = reply.usage
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": model,
        "output": list(_output(number, reply)),
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _output(number: int, reply: Reply) -> Iterator[dict[str, Any]]:
    if reply.text:
        yield {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
        }
    for index, call in enumerate(reply.tools):
        namespace, _, name = call.name.rpartition(".")
        yield {
            "id": f"fc_{number}_{index}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{number}_{index}",
            "name": name,
            "arguments": json.dumps(dict(call.arguments)),
            **({"namespace": namespace} if namespace else {}),
        }


def _events(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the response as stream events: created, then each item (added, deltas, done), then completed."""
    opened = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": opened}
    yield {"type": "response.in_progress", "response": opened}
    for index, item in enumerate(response["output"]):
        is_call = item["type"] == "function_call"
        empty = {**item, "status": "in_progress", **({"arguments": ""} if is_call else {"content": []})}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        place = {"item_id": item["id"], "output_index": index}
        yield from _arguments(item, place) if is_call else _text(item, {**place, "content_index": 0})
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}


def _arguments(call: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    name, arguments = call["name"], call["arguments"]
    yield {"type": "response.function_call_arguments.delta", **place, "delta": arguments}
    yield {"type": "response.function_call_arguments.done", **place, "name": name, "arguments": arguments}


def _text(message: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    (part,) = message["content"]
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    yield {"type": "response.output_text.delta", **place, "delta": part["text"], "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _tool_names(tools: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for tool in tools:
        if tool["type"] == "namespace":
            yield from (f"{tool['name']}.{inner['name']}" for inner in tool["tools"])
        else:
            yield tool.get("name") or tool["type"]


def _text_of(content: object) -> str:
    """Return the text of a message or of a tool's output, which is a string or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content)
