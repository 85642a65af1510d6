"""The scripted server of chat models, with the real clients of both dialects: in one piece, and in many."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from donewhen.runtime import TokenUsage
from donewhen.testing.chat_api import ChatServer, Midway, Reply, throttled

DIALECTS = ("openai", "anthropic")
TEXT = "Verdict: pass\nReason: 一切都在"


class Said(NamedTuple):
    """What a client has understood."""

    text: str
    finish: str | None
    usage: tuple[int, int, int]
    pieces: int = 1


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    pytest.importorskip(name, reason=f"{name.upper()} IS NOT INSTALLED: pip install 'donewhen[{name}]'")
    return name


def openai_says(server: ChatServer, **more: Any) -> Said:
    import openai

    messages: Any = [{"role": "user", "content": "Well?"}]
    with openai.OpenAI(base_url=server.base_url, api_key="any", max_retries=0, timeout=20.0) as client:
        if not more.get("stream"):
            found = client.chat.completions.create(model="m", messages=messages, **more)
            used, choice = found.usage, found.choices[0]
            cached = used.prompt_tokens_details.cached_tokens
            return Said(
                choice.message.content, choice.finish_reason, (used.prompt_tokens, used.completion_tokens, cached)
            )
        text, finish, usage, pieces = "", None, (0, 0, 0), 0
        for chunk in client.chat.completions.create(model="m", messages=messages, **more):
            assert chunk.object == "chat.completion.chunk"
            for entry in chunk.choices:
                text += entry.delta.content or ""
                pieces += bool(entry.delta.content)
                finish = entry.finish_reason or finish
            if chunk.usage is not None:
                assert chunk.choices == []
                used = chunk.usage
                usage = used.prompt_tokens, used.completion_tokens, used.prompt_tokens_details.cached_tokens
        return Said(text, finish, usage, pieces)


def anthropic_says(server: ChatServer, **more: Any) -> Said:
    import anthropic

    messages: Any = [{"role": "user", "content": "Well?"}]
    with anthropic.Anthropic(base_url=server.root_url, api_key="any", max_retries=0, timeout=20.0) as client:
        if not more.get("stream"):
            found = client.messages.create(model="m", max_tokens=9, messages=messages)
            pieces = 1
        else:
            # The client's own way of putting a stream together.
            with client.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
                pieces = sum(event.type == "text" for event in stream)
                found = stream.get_final_message()
    used = found.usage
    usage = used.input_tokens + used.cache_read_input_tokens, used.output_tokens, used.cache_read_input_tokens
    return Said("".join(block.text for block in found.content), found.stop_reason, usage, pieces)


SAYS: dict[str, Callable[..., Said]] = {"openai": openai_says, "anthropic": anthropic_says}
WITH_USAGE: dict[str, dict[str, Any]] = {"openai": {"stream_options": {"include_usage": True}}, "anthropic": {}}


def streamed(server: ChatServer, dialect: str) -> Said:
    return SAYS[dialect](server, stream=True, **WITH_USAGE[dialect])


@pytest.mark.parametrize("pieces", [1, 2, 7, 1000])
@pytest.mark.parametrize("text", [TEXT, "x", "x" * 5000])
def test_a_stream_says_what_an_answer_in_one_piece_says(dialect: str, text: str, pieces: int) -> None:
    reply = Reply(text, TokenUsage(100, 20, 60), "length", pieces=pieces)
    with ChatServer([reply, reply]) as server:
        whole, in_pieces = SAYS[dialect](server), streamed(server, dialect)
    assert whole == Said(text, whole.finish, (100, 20, 60))
    assert in_pieces._replace(pieces=1) == whole
    assert min(pieces, len(text)) // 2 <= in_pieces.pieces <= min(pieces, len(text))


def test_a_stream_without_text_is_an_empty_answer(dialect: str) -> None:
    with ChatServer([Reply("")]) as server:
        assert streamed(server, dialect).text == ""


@pytest.mark.parametrize("finish", ["stop", "length", "refused"])
def test_why_it_ended_is_the_same_in_a_stream(dialect: str, finish: Any) -> None:
    with ChatServer(lambda _: Reply("x", finish=finish)) as server:
        assert SAYS[dialect](server).finish == streamed(server, dialect).finish is not None


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
def test_usage_comes_only_to_whoever_asks_for_it(dialect: str) -> None:
    with ChatServer([Reply("x")]) as server:
        assert openai_says(server, stream=True).usage == (0, 0, 0)


def test_an_error_is_one_in_one_piece_whatever_was_asked_for(dialect: str) -> None:
    import anthropic
    import openai

    with ChatServer([throttled(retry_after=3)]) as server:
        with pytest.raises((openai.RateLimitError, anthropic.RateLimitError), match="Slow down") as caught:
            streamed(server, dialect)
        assert caught.value.response.headers["retry-after"] == "3"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(TEXT, pieces=9, midway="error"), "Overloaded"),
        (Reply(TEXT, pieces=9, midway="garbage"), "Expecting value"),
        (Reply(TEXT, pieces=9, broken_off=True), "peer closed connection|Connection error"),
    ],
    ids=["error", "garbage", "broken off"],
)
def test_a_client_hears_of_a_stream_that_goes_wrong(dialect: str, reply: Reply, why: str) -> None:
    with ChatServer([reply]) as server, pytest.raises(Exception, match=why):
        streamed(server, dialect)


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
def test_a_stream_may_be_over_before_its_end(dialect: str) -> None:
    with ChatServer([Reply(TEXT, pieces=9, midway="end")]) as server:
        found = streamed(server, dialect)
    assert TEXT.startswith(found.text)
    assert 0 < len(found.text) < len(TEXT)
    assert found.finish is None


def raw(server: ChatServer, dialect: str) -> http.client.HTTPResponse:
    path = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[dialect]
    connection = http.client.HTTPConnection(server.root_url.removeprefix("http://"), timeout=20)
    with contextlib.closing(connection):
        body = {"model": "m", "messages": [], "stream": True, **WITH_USAGE[dialect]}
        connection.request("POST", path, json.dumps(body))
        return connection.getresponse()


MARKS = {"openai": b"data: [DONE]", "anthropic": b'data: {"type": "message_stop"}'}


@pytest.mark.parametrize("midway", [None, "end"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_end_has_a_mark_unless_it_is_left_out(dialect: str, midway: Midway | None) -> None:
    with ChatServer([Reply(TEXT, pieces=3, midway=midway)]) as server, raw(server, dialect) as response:
        assert response.headers["content-type"] == "text/event-stream"
        assert response.read().rstrip().endswith(MARKS[dialect]) == (midway is None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_falls_silent_has_begun_and_ends_with_the_server(dialect: str) -> None:
    with ChatServer([Reply(TEXT, pieces=9, midway="silence")]) as server, raw(server, dialect) as response:
        begun = response.read1()
        assert begun.startswith((b"data: ", b"event: "))
        threading.Timer(0.05, server.stop).start()
        with pytest.raises(http.client.IncompleteRead) as caught:
            response.read()
        assert MARKS[dialect] not in begun + caught.value.partial


@pytest.mark.parametrize("dialect", DIALECTS)
def test_pieces_come_one_after_the_other(dialect: str) -> None:
    began = time.monotonic()
    with ChatServer([Reply("abc", pieces=3, pause=0.02)]) as server, raw(server, dialect) as response:
        events = response.read().strip().split(b"\n\n")
    assert time.monotonic() - began >= 0.02 * (len(events) - 1)
    assert len(events) >= 6


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_body_is_sent_as_it_is_to_whoever_asks_for_a_stream(dialect: str) -> None:
    with ChatServer([Reply(body=b"hello")]) as server, raw(server, dialect) as response:
        assert response.read() == b"hello"


def test_a_server_that_does_not_stream_answers_in_one_piece_whatever_it_is_asked() -> None:
    with ChatServer([Reply(TEXT, pieces=0)]) as server, raw(server, "openai") as response:
        assert response.headers["content-type"] == "application/json"
        assert json.loads(response.read())["choices"][0]["message"]["content"] == TEXT


def test_log_probabilities_come_to_whoever_asks_for_them() -> None:
    openai = pytest.importorskip("openai", reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'")
    reply = Reply("yes", tokens=[("yes", {"yes": -0.1, "no": -2.5})])
    messages: Any = [{"role": "user", "content": "Well?"}]
    with (
        ChatServer([reply, reply]) as server,
        openai.OpenAI(base_url=server.base_url, api_key="any", max_retries=0) as client,
    ):
        without = client.chat.completions.create(model="m", messages=messages)
        asked = client.chat.completions.create(model="m", messages=messages, logprobs=True, top_logprobs=2)
    assert without.choices[0].logprobs is None
    (token,) = asked.choices[0].logprobs.content
    assert (token.token, token.logprob) == ("yes", -0.1)
    assert [(logprob.token, logprob.logprob) for logprob in token.top_logprobs] == [("yes", -0.1), ("no", -2.5)]
