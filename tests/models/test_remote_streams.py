"""Long answers come in pieces: put together as they are, given up only where nothing comes, and never half."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import pytest

from donewhen.models.chat import ChatAnswer, ChatMessage, ChatModel, ChatRequest
from donewhen.models.remote.pacing import Pace, Patience, RetryLater
from donewhen.models.remote.server_errors import UnsupportedOption
from donewhen.models.remote.streams import read_stream
from donewhen.models.roles import Completion, Decode, ModelError, Prompt, ReflectionRequest, RolloutRequest, Usage
from donewhen.runtime import TokenUsage
from donewhen.testing.chat_api import ChatServer, Reply, hanging, throttled, unknown
from sentences import assert_sentences

KEY = "sk-for-loopback-only-000000"
TEXT = json.dumps({"operations": [f"rule {number}" for number in range(40)], "因为": "一切都在"}, ensure_ascii=False)
GOOD = Reply(TEXT, pieces=20)
QUICK = Patience(tries=3, timeout=20.0, first_pause=0.001, longest_pause=0.002)
PRICED = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-4-5"}


class Served(NamedTuple):
    """A model and the server behind it."""

    model: ChatModel
    server: ChatServer

    @property
    def pace(self) -> Pace:
        return self.model.chat.pace  # type: ignore[attr-defined, no-any-return]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [dict(call.body) for call in self.server.calls]


Open = Callable[..., Served]


@pytest.fixture(params=["openai", "anthropic"])
def dialect(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    pytest.importorskip(name, reason=f"{name.upper()} IS NOT INSTALLED: pip install 'donewhen[{name}]'")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.delenv("DONEWHEN_PRICES", raising=False)
    return name


@pytest.fixture
def serve(dialect: str) -> Iterator[Open]:
    servers: list[ChatServer] = []

    def start(*script: Any, name: str = "any", patience: Patience = QUICK) -> Served:
        from donewhen.models.remote.anthropic_chat import AnthropicChat
        from donewhen.models.remote.openai_chat import OpenAIChat

        server = ChatServer(script[0] if len(script) == 1 and callable(script[0]) else script)
        server.__enter__()
        servers.append(server)
        if dialect == "openai":
            return Served(ChatModel(OpenAIChat(name, server.base_url, patience)), server)
        return Served(ChatModel(AnthropicChat(name, server.root_url, patience)), server)

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def reflection(attempt: int = 0) -> ReflectionRequest:
    return ReflectionRequest(Prompt("the rules", "cases"), {}, (), "en", {"type": "object"}, 2, attempt)


def played(served: Served, coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def whole() -> Any:
        try:
            return await coroutine
        finally:
            await served.model.aclose()

    return asyncio.run(whole())


def propose(served: Served) -> Completion:
    found: Completion = played(served, served.model.propose(reflection()))
    return found


# What is asked, and what comes of it


@pytest.mark.parametrize("pieces", [1, 3, 500])
def test_a_long_answer_is_put_together_from_its_pieces(serve: Open, pieces: int) -> None:
    served = serve(Reply(TEXT, pieces=pieces))
    assert propose(served).text == TEXT
    assert [body["stream"] for body in served.bodies] == [True]


def test_a_verdict_comes_in_one_piece(serve: Open) -> None:
    served = serve(Reply("Verdict: pass\nReason: it is there"))
    request = RolloutRequest(Prompt("rules", "ticket"), {}, {}, Decode(), "en")
    assert played(served, served.model.roll(request)).text.startswith("Verdict: pass")
    assert "stream" not in served.bodies[0]
    assert "stream_options" not in served.bodies[0]


def test_what_it_cost_is_told_with_what_was_cached(serve: Open, dialect: str) -> None:
    found = propose(serve(Reply(TEXT, TokenUsage(1000, 200, 600), pieces=9), name=PRICED[dialect]))
    assert found.usage == Usage(1000, 200, 600)
    prices = {"openai": (0.15, 0.075, 0.60), "anthropic": (1.00, 0.10, 5.00)}[dialect]
    assert found.cost == pytest.approx((400 * prices[0] + 600 * prices[1] + 200 * prices[2]) / 1_000_000)


@pytest.mark.parametrize("finish", ["stop", "length", "refused"])
def test_why_it_ended_is_told_in_the_same_words_for_all(serve: Open, finish: Any) -> None:
    found = propose(serve(Reply("half an ans", finish=finish, pieces=4)))
    assert (found.text, found.finish_reason) == ("half an ans", finish)


def test_an_answer_without_text_is_an_empty_one(serve: Open) -> None:
    assert propose(serve(Reply(""))).text == ""


# Broken

BROKEN = {
    "gone": Reply(gone=True),
    "broken off": Reply(TEXT, pieces=20, broken_off=True),
    "an error in the middle": Reply(TEXT, pieces=20, midway="error"),
    "garbage in the middle": Reply(TEXT, pieces=20, midway="garbage"),
    "no end": Reply(TEXT, pieces=20, midway="end"),
    "nothing": Reply(body=b""),
    "no events": Reply(body=b"<html>welcome to the hotel</html>"),
    "an event of nothing": Reply(body=b"event: message_stop\ndata: null\n\ndata: [DONE]\n\n"),
    "an event of a list": Reply(body=b"event: message_stop\ndata: []\n\ndata: [DONE]\n\n"),
    "an event of an object": Reply(body=b"event: message_start\ndata: {}\n\ndata: [DONE]\n\n"),
    "no text": Reply(body=b"\xff\xfe\x00\n\nevent: message_stop\ndata: \xff\n\n"),
    "internal": Reply("internal", status=500),
}


@pytest.mark.parametrize("way", BROKEN)
def test_what_is_no_answer_is_asked_again_and_nothing_half_is_taken_for_one(serve: Open, way: str) -> None:
    served = serve(BROKEN[way], GOOD)
    assert propose(served).text == TEXT
    assert len(served.server.calls) == 2
    with pytest.raises(ModelError) as caught:
        propose(serve(*[BROKEN[way]] * 3))
    assert_sentences(caught.value)


def test_where_it_broke_off_is_named(serve: Open) -> None:
    served = serve(*[Reply(TEXT, pieces=20, broken_off=True)] * 3)
    with pytest.raises(ModelError) as caught:
        propose(served)
    assert_sentences(caught.value)
    assert served.server.root_url in str(caught.value)


def test_a_server_that_is_overloaded_in_the_middle_is_asked_more_slowly(serve: Open) -> None:
    served = serve(Reply(TEXT, pieces=20, midway="error"), GOOD)
    before = served.pace.allowed
    assert propose(served).text == TEXT
    assert served.pace.allowed < before
    assert served.pace.retries == 1


def test_a_server_with_too_much_to_do_is_asked_again(serve: Open) -> None:
    served = serve(throttled(retry_after=0.001), throttled(529), GOOD)
    assert propose(served).text == TEXT
    assert served.pace.retries == 2


@pytest.mark.parametrize("silent", [hanging(), Reply(TEXT, pieces=20, midway="silence")], ids=["at once", "midway"])
def test_a_server_that_falls_silent_is_given_up(serve: Open, silent: Reply) -> None:
    served = serve(silent, silent, patience=replace(QUICK, tries=2, timeout=0.3))
    with pytest.raises(ModelError) as caught:
        propose(served)
    assert "0.3 seconds" in str(caught.value)
    assert_sentences(caught.value)
    assert (len(served.server.calls), served.pace.in_flight) == (2, 0)


def test_a_server_that_dies_in_the_middle_of_an_answer_is_missed(serve: Open) -> None:
    served = serve(lambda _: Reply(TEXT, pieces=20, midway="silence"))

    async def dies() -> list[BaseException | Completion]:
        calls = [asyncio.ensure_future(served.model.propose(reflection(number))) for number in range(8)]
        while len(served.server.calls) < 8:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(served.server.stop)
        return list(await asyncio.gather(*calls, return_exceptions=True))

    assert [type(answer) for answer in played(served, dies())] == [ModelError] * 8
    assert served.pace.in_flight == 0


def test_ctrl_c_gives_up_what_is_under_way(serve: Open) -> None:
    served = serve(lambda _: Reply(TEXT, pieces=20, midway="silence"))

    async def interrupted() -> tuple[list[bool], int]:
        calls = [asyncio.ensure_future(served.model.propose(reflection(number))) for number in range(8)]
        while len(served.server.calls) < 8:
            await asyncio.sleep(0.001)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return [entry.cancelled() for entry in calls], len(asyncio.all_tasks())

    assert played(served, interrupted()) == ([True] * 8, 1)
    assert served.pace.in_flight == 0


# Refused


@pytest.mark.parametrize(
    "refusal",
    [
        unknown("stream"),
        Reply("Streaming is not available here.", status=400),
        Reply("Your organization must be verified to stream this model.", status=400, code="unsupported_value"),
    ],
    ids=lambda reply: reply.text[:20],
)
def test_a_server_that_refuses_to_stream_is_asked_for_one_piece_from_then_on(serve: Open, refusal: Reply) -> None:
    served = serve(refusal, GOOD, GOOD)

    async def twice() -> list[str]:
        return [(await served.model.propose(reflection(number))).text for number in range(2)]

    assert played(served, twice()) == [TEXT, TEXT]
    assert ["stream" in body or "stream_options" in body for body in served.bodies] == [True, False, False]
    assert served.pace.retries == 0


def test_a_server_that_does_not_hear_of_streams_is_asked_for_one_piece_from_then_on(serve: Open) -> None:
    served = serve(Reply(TEXT, pieces=0), Reply(TEXT), Reply(TEXT))

    async def twice() -> list[str]:
        return [(await served.model.propose(reflection(number))).text for number in range(2)]

    assert played(served, twice()) == [TEXT, TEXT]
    assert ["stream" in body for body in served.bodies] == [True, False, False]


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
def test_a_server_that_tells_no_usage_in_a_stream_streams_without(serve: Open) -> None:
    served = serve(unknown("stream_options"), GOOD)
    found = propose(served)
    assert (found.text, found.usage) == (TEXT, Usage())
    assert ["stream_options" in body for body in served.bodies] == [True, False]
    assert ["stream" in body for body in served.bodies] == [True, True]


# Pieces that are none


def chunk(**more: Any) -> dict[str, Any]:
    return {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", **more}


def said(content: object, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return chunk(choices=[{"index": 0, "delta": {"content": content, **more}, "finish_reason": finish}])


def events(*documents: dict[str, Any]) -> Reply:
    return Reply(
        body=b"".join(f"data: {json.dumps(document)}\n\n".encode() for document in documents) + b"data: [DONE]\n\n"
    )


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
@pytest.mark.parametrize(
    "piece",
    [
        chunk(),
        chunk(choices=None),
        chunk(choices=7),
        chunk(choices=[None]),
        chunk(choices=[{}]),
        chunk(choices=[{"delta": None, "finish_reason": None}]),
        said(5),
        said(["yes"]),
    ],
    ids=str,
)
def test_a_piece_that_is_none_spoils_the_answer(serve: Open, piece: dict[str, Any]) -> None:
    served = serve(events(said("a"), piece, said("b", "stop")), GOOD)
    assert propose(served).text == TEXT


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
def test_other_things_in_a_stream_do_not_matter(serve: Open) -> None:
    pieces = [chunk(choices=[]), said(None, role="assistant"), said("a"), said(None), said("b", "stop"), said("")]
    found = propose(serve(events(*pieces, chunk(choices=[], usage="many"))))
    assert found == Completion("ab", Usage())


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
def test_a_refusal_in_pieces_is_one(serve: Open) -> None:
    found = propose(
        serve(events(said(None, refusal="I would"), said(None, refusal=" rather not."), said(None, "stop")))
    )
    assert (found.text, found.finish_reason) == ("", "refused")


# Time, which stands still here unless it is told to go on


class Pieces:
    """A stream by hand: each piece says how many seconds it takes; None never comes."""

    def __init__(self, now: list[float], *takes: float | None, content_type: str = "text/event-stream") -> None:
        self.response = SimpleNamespace(headers={"content-type": content_type})
        self.closed = False
        self.given = 0
        self._now = now
        self._takes = takes

    async def opened(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed = True

    async def __aiter__(self) -> AsyncIterator[str]:
        for take in self._takes:
            if take is None:
                self._now[0] += 1000.0
                await asyncio.Event().wait()
                raise AssertionError("unreachable")
            self._now[0] += take
            # The event loop looks at its clock.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.given += 1
            yield "x"


REQUEST = ChatRequest((ChatMessage("user", "?"),), 0.0, 0, 4000)


def in_time(asked: Callable[[list[float]], Coroutine[Any, Any, Any]]) -> Any:
    """In an event loop whose clock is a number."""
    now = [0.0]
    loop = asyncio.new_event_loop()
    loop.time = lambda: now[0]  # type: ignore[method-assign]
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(asked(now))


def test_a_slow_server_is_waited_for_as_long_as_pieces_come() -> None:
    async def asked(now: list[float]) -> list[str]:
        return await read_stream(Pieces(now, *[90.0] * 50).opened(), REQUEST, "server", 120.0)

    assert in_time(asked) == ["x"] * 50


@pytest.mark.parametrize("takes", [(None,), (90.0, None), (90.0, 90.0, 121.0, 1.0)])
def test_a_server_from_which_nothing_comes_is_not(takes: tuple[float | None, ...]) -> None:
    async def asked(now: list[float]) -> bool:
        stream = Pieces(now, *takes)
        with pytest.raises(TimeoutError):
            await read_stream(stream.opened(), REQUEST, "server", 120.0)
        return stream.closed

    assert in_time(asked)


def test_a_stream_without_end_is_given_up() -> None:
    async def asked(now: list[float]) -> int:
        stream = Pieces(now, *[0.0] * 1000)
        with pytest.raises(RetryLater) as caught:
            await read_stream(stream.opened(), REQUEST._replace(max_tokens=5), "server", 120.0)
        assert_sentences(caught.value)
        assert stream.closed
        return stream.given

    assert in_time(asked) == 4 * 5 + 1


def test_what_is_no_stream_is_not_read_as_one() -> None:
    async def asked(now: list[float]) -> None:
        with pytest.raises(UnsupportedOption, match="stream"):
            await read_stream(Pieces(now, content_type="application/json; x").opened(), REQUEST, "server", 120.0)

    in_time(asked)


def test_the_pace_does_not_count_the_seconds_of_a_stream(serve: Open) -> None:
    served = serve(patience=Patience(tries=1))
    chat: Any = served.model.chat

    async def asked(now: list[float]) -> str:
        async def slowly(_client: object, request: ChatRequest, streamed: bool) -> ChatAnswer:
            assert streamed
            return ChatAnswer("".join(await read_stream(Pieces(now, *[90.0] * 5).opened(), request, "server", 120.0)))

        chat._call_server = slowly
        found: str = (await served.model.propose(reflection())).text
        await served.model.aclose()
        return found

    assert in_time(asked) == "xxxxx"
