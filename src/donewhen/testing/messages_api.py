"""A scripted Anthropic Messages API on loopback, for tests with real clients.

Clients use ``ANTHROPIC_BASE_URL``; any ``ANTHROPIC_API_KEY`` is accepted::

    with MessagesServer([Reply(tools=(ToolCall("Bash", {"command": "ls"}),)), Reply("Done.")]) as server:
        run_the_client(base_url=server.base_url)
    assert server.calls()[1].tool_results[0].name == "Bash"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from donewhen.adapters.scripted import ToolCall
from donewhen.runtime import TokenUsage
from donewhen.testing._loopback import HttpAnswer, LoopbackServer, event_chunks, json_chunks
from donewhen.testing._messages_answer import error, events, message
from donewhen.testing._messages_request import CallKind, MessagesRequest, ToolOutcome

__all__ = ["CallKind", "MessagesRequest", "MessagesServer", "Reply", "ToolOutcome"]


@dataclass(frozen=True)
class Reply:
    """One answer of the model, or an error of the API. Without tools it is an attempt to stop.

    ``stop_reason`` defaults to ``tool_use`` with tools and ``end_turn`` without. A ``status`` other than 200 is an
    error with the message ``text``; clients retry 401, 429 and 5xx, possibly after ``retry_after`` seconds. ``delay``
    is in seconds, before the first byte. ``broken_off`` closes the connection in the middle of the answer.
    """

    text: str = ""
    tools: tuple[ToolCall, ...] = ()
    stop_reason: str | None = None
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(input_tokens=10, output_tokens=5))
    delay: float = 0.0
    status: int = 200
    retry_after: float | None = None
    broken_off: bool = False


class MessagesServer(LoopbackServer[MessagesRequest, Reply]):
    """Answers ``POST /v1/messages`` from a script, streamed if the client asks for it.

    The script answers the conversation and its sub-agents; ``auxiliary`` answers the client's other model calls. All
    other endpoints return an empty object.
    """

    _record = MessagesRequest

    def __init__(
        self,
        script: Callable[[MessagesRequest], Reply] | Sequence[Reply | Callable[[MessagesRequest], Reply]],
        *,
        auxiliary: Callable[[MessagesRequest], Reply] = lambda _: Reply("Scripted."),
        limit: int = 200,
    ) -> None:
        super().__init__(script, limit=limit)
        self._auxiliary = auxiliary

    @property
    def base_url(self) -> str:
        """The base URL for clients, which add ``/v1`` themselves."""
        return self.root_url

    def calls(self, *kinds: CallKind) -> tuple[MessagesRequest, ...]:
        """Return the requests of these kinds (default: the main conversation)."""
        return tuple(request for request in self.requests if request.kind in (kinds or ("main",)))

    def _answer(self, request: MessagesRequest) -> HttpAnswer:
        match request.kind:
            case "main" | "subagent":
                return self._render(request, self._reply(request))
            case "auxiliary":
                return self._render(request, self._auxiliary(request))
            case _:
                counts = request.path == "/v1/messages/count_tokens"
                return HttpAnswer(json_chunks({"input_tokens": len(json.dumps(request.body)) // 4} if counts else {}))

    def _refuse(self, status: int, message: str) -> HttpAnswer:
        return HttpAnswer(json_chunks(error(status, message)), status=status)

    def _render(self, request: MessagesRequest, reply: Reply) -> HttpAnswer:
        if reply.status != 200:
            return HttpAnswer(
                json_chunks(error(reply.status, reply.text)),
                status=reply.status,
                delay=reply.delay,
                retry_after=reply.retry_after,
            )
        number = next(self._ids)
        stop_reason = reply.stop_reason or ("tool_use" if reply.tools else "end_turn")
        answer = message(number, request.model, list(_content(number, reply)), stop_reason, reply.usage)
        if not request.body.get("stream"):
            return HttpAnswer(json_chunks(answer), delay=reply.delay, broken_off=reply.broken_off)
        return HttpAnswer(
            event_chunks(events(answer)), "text/event-stream", delay=reply.delay, broken_off=reply.broken_off
        )


def _content(number: int, reply: Reply) -> Iterator[dict[str, Any]]:
    if reply.text or not reply.tools:
        yield {"type": "text", "text": reply.text}
    for index, call in enumerate(reply.tools, start=1):
        yield {
            "type": "tool_use",
            "id": f"toolu_{number}_{index}",
            "name": call.name,
            "input": dict(call.arguments),
        }
