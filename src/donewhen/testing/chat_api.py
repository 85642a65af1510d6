"""A server of chat models on loopback that follows a script, in the dialects of OpenAI and of Anthropic.

A client finds it by its base URL; any key will do, unless the server is told which one it wants::

    with ChatServer([throttled(retry_after=0), Reply("Verdict: pass\nReason: it is there")]) as server:
        model = open_model(f"openai:any@{server.base_url}")  # or f"anthropic:any@{server.root_url}"
        asyncio.run(model.roll(request))
    assert len(server.calls) == 2

Whoever asks for a stream gets one, in as many pieces as the reply says.
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
"""What becomes of a stream half-way: an event says that the server is overloaded; something comes that is no event;
nothing comes any more; or it is over, without the mark of its end."""

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
    """One answer of the model, or of a server that fails.

    A ``status`` other than 200 is an error whose message is ``text``. ``delay`` is in seconds, before the first byte.
    ``body`` is sent as it is, whatever it is. ``broken_off`` closes the connection in mid-answer, and ``gone`` before
    the first byte. A stream has the text in so many ``pieces``, with a ``pause`` of so many seconds between one event
    and the next; 0 is for a server that does not stream, whatever it is asked. ``tokens`` are those of the text, each
    with the log-probabilities of the likeliest at its place, for whoever asks for them.
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
    """It is too much for the server (429, 503, 529)."""
    return Reply("Slow down.", status=status, retry_after=retry_after)


def unknown(option: str) -> Reply:
    """The server does not know something that it was told."""
    return Reply(f"Unsupported parameter: '{option}' is not supported with this model.", status=400)


def out_of_money() -> Reply:
    """What was paid for is used up, which looks like too many calls."""
    return Reply(
        "You exceeded your current quota, please check your plan and billing details.",
        status=429,
        code="insufficient_quota",
    )


def hanging() -> Reply:
    """No answer for as long as the server is there."""
    return Reply(delay=_FOREVER)


@dataclass(frozen=True)
class ChatCall(RecordedRequest):
    """One request, in whichever dialect."""

    @property
    def dialect(self) -> Dialect:
        return _PATHS.get(self.path, "other") if self.method == "POST" else "other"

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def system(self) -> str:
        """What the model is told before anything else."""
        if self.dialect == "anthropic":
            return _text_of(self.body.get("system", ""))
        return self._said_by("system")

    @property
    def user(self) -> str:
        """What the model is asked."""
        return self._said_by("user")

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """What the answer is held to, if it is."""
        if self.dialect == "anthropic":
            found = (self.body.get("output_config") or {}).get("format", {}).get("schema")
        else:
            found = (self.body.get("response_format") or {}).get("json_schema", {}).get("schema")
        return found if isinstance(found, dict) else None

    def _said_by(self, role: str) -> str:
        return "\n".join(
            _text_of(one.get("content", "")) for one in self.body.get("messages", ()) if one["role"] == role
        )


class ChatServer(LoopbackServer[ChatCall, Reply]):
    """Answers ``POST /v1/chat/completions`` and ``POST /v1/messages`` by a script: as a stream or in one piece.

    With a ``key``, whoever comes with another one is refused, and the script is not asked; it may be changed meanwhile.
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
        """For clients of OpenAI; those of Anthropic want ``root_url``."""
        return f"{self.root_url}/v1"

    @property
    def calls(self) -> tuple[ChatCall, ...]:
        """The questions to a model, in the order of arrival."""
        return tuple(request for request in self.requests if request.dialect != "other")

    def stop(self) -> None:
        """Be gone: nobody listens any more, and what is under way is not answered."""
        self._http.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def _exchange(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> HttpAnswer:
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if self.key not in (None, given):
            # As real servers do, with the key in the message.
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
    """An error that clients of both dialects can read."""
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
            "top_logprobs": [{"token": one, "logprob": logprob, "bytes": None} for one, logprob in top.items()],
        }
        for token, top in reply.tokens
    ]
    return {"content": tokens, "refusal": None}


def _parts(whole: Mapping[str, Any], pieces: int, *, with_usage: bool) -> Iterator[dict[str, Any]]:
    """A completion as that API streams it: who speaks, the text, why it ended, and what it cost where that is asked."""
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
    """The text of a message, which is a string or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content)
