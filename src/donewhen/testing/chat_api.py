"""A scripted chat server on loopback with the APIs of OpenAI and Anthropic.

Clients use its base URL; any key is accepted, unless the server gets one::

    with ChatServer([throttled(retry_after=0), Reply("Verdict: pass\nReason: it is there")]) as server:
        model = open_model(f"openai:any@{server.base_url}")  # or f"anthropic:any@{server.root_url}"
        asyncio.run(model.roll(request))
    assert len(server.calls) == 2

Streams are supported; the reply sets the number of chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from donewhen.runtime import TokenUsage
from donewhen.testing._loopback import (
    HttpAnswer,
    LoopbackServer,
    RecordedRequest,
    data_chunks,
    event_chunks,
    halves,
    json_chunks,
    pieces_of,
)
from donewhen.testing._messages_answer import events, message

__all__ = ["ChatCall", "ChatServer", "Dialect", "Midway", "Reply", "hanging", "out_of_money", "throttled", "unknown"]

Dialect = Literal["openai", "anthropic", "other"]
Finish = Literal["stop", "length", "refused"]
Midway = Literal["error", "garbage", "silence", "end"]
"""What happens in the middle of a stream: an overload error event; an invalid event; silence; or an early end without
the end marker."""

_PATHS: Mapping[str, Dialect] = {"/v1/chat/completions": "openai", "/v1/messages": "anthropic"}
_FINISHED = {
    "openai": {"stop": "stop", "length": "length", "refused": "content_filter"},
    "anthropic": {"stop": "end_turn", "length": "max_tokens", "refused": "refusal"},
}
_OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded", "code": None}}
_GARBAGE = {"openai": b'data: {"half": \n\n', "anthropic": b'event: content_block_delta\ndata: {"half": \n\n'}
_FOREVER = 3600.0
_GONE = HttpAnswer((), status=0)


@dataclass(frozen=True)
class Reply:
    """One answer of the model, or an error of the server.

    A ``status`` other than 200 is an error with the message ``text``. ``delay`` is in seconds, before the first byte.
    ``body`` is sent unchanged. ``broken_off`` closes the connection in the middle of the answer, ``gone`` before the
    first byte. A stream has the text in ``pieces`` chunks with a ``pause`` in seconds between events; 0 pieces is a
    server that never streams. ``tokens`` are the tokens of the text, each with the top log-probabilities at its
    position, for requests with logprobs.
    """

    text: str = ""
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(input_tokens=10, output_tokens=5))
    finish: Finish = "stop"
    delay: float = 0.0
    status: int = 200
    code: str | None = None
    retry_after: float | None = None
    body: bytes | None = None
    broken_off: bool = False
    gone: bool = False
    pieces: int = 1
    pause: float = 0.0
    midway: Midway | None = None
    tokens: Sequence[tuple[str, Mapping[str, float]]] = ()


def throttled(status: int = 429, retry_after: float | None = None) -> Reply:
    """The server is overloaded (429, 503, 529)."""
    return Reply("Slow down.", status=status, retry_after=retry_after)


def unknown(option: str) -> Reply:
    """The server does not support an option."""
    return Reply(f"Unsupported parameter: '{option}' is not supported with this model.", status=400)


def out_of_money() -> Reply:
    """The quota is exhausted; has the same status as a rate limit."""
    return Reply(
        "You exceeded your current quota, please check your plan and billing details.",
        status=429,
        code="insufficient_quota",
    )


def hanging() -> Reply:
    """No answer while the server runs."""
    return Reply(delay=_FOREVER)


@dataclass(frozen=True)
class ChatCall(RecordedRequest):
    """One request, in either API."""

    @property
    def dialect(self) -> Dialect:
        return _PATHS.get(self.path, "other") if self.method == "POST" else "other"

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def system(self) -> str:
        """The system prompt."""
        if self.dialect == "anthropic":
            return _text_of(self.body.get("system", ""))
        return self._text_by("system")

    @property
    def user(self) -> str:
        """The user's text."""
        return self._text_by("user")

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema of the answer, if the request has one."""
        if self.dialect == "anthropic":
            schema = (self.body.get("output_config") or {}).get("format", {}).get("schema")
        else:
            schema = (self.body.get("response_format") or {}).get("json_schema", {}).get("schema")
        return schema if isinstance(schema, dict) else None

    def _text_by(self, role: str) -> str:
        return "\n".join(
            _text_of(entry.get("content", "")) for entry in self.body.get("messages", ()) if entry["role"] == role
        )


class ChatServer(LoopbackServer[ChatCall, Reply]):
    """Answers ``POST /v1/chat/completions`` and ``POST /v1/messages`` from a script, streamed or whole.

    With a ``key``, requests with another key are rejected without using the script; the key can be changed later.
    """

    _record = ChatCall

    def __init__(
        self,
        script: Callable[[ChatCall], Reply] | Sequence[Reply | Callable[[ChatCall], Reply]],
        *,
        limit: int = 200,
        key: str | None = None,
    ) -> None:
        super().__init__(script, limit=limit)
        self.key = key

    @property
    def base_url(self) -> str:
        """For OpenAI clients; Anthropic clients use ``root_url``."""
        return f"{self.root_url}/v1"

    @property
    def calls(self) -> tuple[ChatCall, ...]:
        """The model calls, in order of arrival."""
        return tuple(request for request in self.requests if request.dialect != "other")

    def stop(self) -> None:
        """Stop listening; open requests get no answer."""
        self._http.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def _exchange(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> HttpAnswer:
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if self.key not in (None, given):
            # Like real servers, with the key in the message.
            return self._refuse(401, f"Incorrect API key provided: {given}.")
        answer = super()._exchange(method, path, headers, raw)
        if answer is _GONE:
            raise ConnectionAbortedError("by the script")
        return answer

    def _answer(self, request: ChatCall) -> HttpAnswer:
        if request.dialect == "other":
            return self._refuse(404, f"This scripted server has no {request.method} {request.path}.")
        reply = self._reply(request)
        if reply.gone:
            return _GONE
        streams = reply.status == 200 and reply.pieces > 0 and request.body.get("stream") is True
        in_events = streams and reply.body is None
        return HttpAnswer(
            self._streamed(request, reply) if in_events else [self._whole(request, reply)],
            "text/event-stream" if streams else "application/json",
            status=reply.status,
            delay=reply.delay,
            retry_after=reply.retry_after,
            broken_off=reply.broken_off,
            pause=reply.pause,
            hangs=in_events and reply.midway == "silence",
        )

    def _whole(self, request: ChatCall, reply: Reply) -> bytes:
        if reply.body is not None:
            return reply.body
        if reply.status != 200:
            (document,) = json_chunks(_error(reply.status, reply.text, reply.code))
        elif request.dialect == "openai":
            completion = _completion(next(self._ids), request.model, reply)
            if request.body.get("logprobs"):
                completion["choices"][0]["logprobs"] = _logprobs(reply)
            (document,) = json_chunks(completion)
        else:
            (document,) = json_chunks(_message(next(self._ids), request.model, reply))
        return document

    def _streamed(self, request: ChatCall, reply: Reply) -> Sequence[bytes]:
        chunks: Sequence[bytes]
        if request.dialect == "openai":
            options = request.body.get("stream_options") or {}
            whole = _completion(next(self._ids), request.model, reply)
            parts = data_chunks(_parts(whole, reply.pieces, with_usage=bool(options.get("include_usage"))))
            chunks, overloaded = [*parts, b"data: [DONE]\n\n"], data_chunks([_OVERLOADED])
        else:
            chunks = event_chunks(events(_message(next(self._ids), request.model, reply), reply.pieces))
            overloaded = event_chunks([_OVERLOADED])
        before, after = halves(chunks)
        match reply.midway:
            case "error":
                return [*before, *overloaded]
            case "garbage":
                return [*before, _GARBAGE[request.dialect], *after]
            case "end":
                return before
            case _:
                return chunks

    def _refuse(self, status: int, message: str) -> HttpAnswer:
        return HttpAnswer(json_chunks(_error(status, message)), status=status)


def _error(status: int, message: str, code: str | None = None) -> dict[str, Any]:
    """Return an error body that clients of both APIs can read."""
    kind = code or ("api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"message": message or kind, "type": kind, "param": None, "code": code}}


def _completion(number: int, model: str, reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": _FINISHED["openai"][reply.finish],
                "message": {"role": "assistant", "content": reply.text},
            }
        ],
        "usage": {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        },
    }


def _logprobs(reply: Reply) -> dict[str, Any]:
    tokens = [
        {
            "token": token,
            "logprob": top.get(token, 0.0),
            "bytes": None,
            "top_logprobs": [{"token": option, "logprob": logprob, "bytes": None} for option, logprob in top.items()],
        }
        for token, top in reply.tokens
    ]
    return {"content": tokens, "refusal": None}


def _parts(whole: Mapping[str, Any], pieces: int, *, with_usage: bool) -> Iterator[dict[str, Any]]:
    """Yield a completion as stream chunks: role, text, finish reason, and usage if requested."""
    shared = {**whole, "object": "chat.completion.chunk"}
    del shared["usage"]
    (choice,) = whole["choices"]
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces_of(choice["message"]["content"], pieces)]
    for delta in deltas:
        yield {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    if with_usage:
        yield {**shared, "choices": [], "usage": whole["usage"]}


def _message(number: int, model: str, reply: Reply) -> dict[str, Any]:
    content = [{"type": "text", "text": reply.text}]
    return message(number, model, content, _FINISHED["anthropic"][reply.finish], reply.usage)


def _text_of(content: object) -> str:
    """Return the text of a message, which is a string or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content)
