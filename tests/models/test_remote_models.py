"""Models behind a server: both dialects, and a server that throttles, truncates, talks nonsense, hangs and dies."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.models.chat import ChatModel
from donewhen.models.remote.pacing import Pace, Patience
from donewhen.models.roles import Completion, Decode, ModelError, Prompt, ReflectionRequest, RolloutRequest, Usage
from donewhen.runtime import TokenUsage
from donewhen.testing.chat_api import ChatCall, ChatServer, Reply, hanging, out_of_money, throttled, unknown
from sentences import assert_sentences

KEY = "sk-for-loopback-only-000000"
GOOD = Reply("Verdict: pass\nReason: it is there")
QUICK = Patience(tries=3, timeout=20.0, first_pause=0.001, longest_pause=0.002)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
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


def opened(dialect: str, url: str, name: str, patience: Patience) -> ChatModel:
    if dialect == "openai":
        from donewhen.models.remote.openai_chat import OpenAIChat

        return ChatModel(OpenAIChat(name, f"{url}/v1", patience))
    from donewhen.models.remote.anthropic_chat import AnthropicChat

    return ChatModel(AnthropicChat(name, url, patience))


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

    def start(*script: Any, name: str = "any", patience: Patience = QUICK, **more: Any) -> Served:
        given = script[0] if len(script) == 1 and callable(script[0]) else script
        server = ChatServer(given, **more)
        server.__enter__()
        servers.append(server)
        return Served(opened(dialect, server.root_url, name, patience), server)

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def rollout(own: str = "a ticket", temperature: float = 0.4, sample: int = 2) -> RolloutRequest:
    return RolloutRequest(Prompt("the rules", own), {}, {"text": own}, Decode(temperature, sample), "en")


def reflection(attempt: int = 0) -> ReflectionRequest:
    return ReflectionRequest(Prompt("the rules", "cases"), {}, (), "en", SCHEMA, 2, attempt)


def played(served: Served, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """In a loop of its own, with the connections closed at its end."""

    async def whole() -> Any:
        try:
            return await coroutine
        finally:
            await served.model.aclose()

    return asyncio.run(whole())


def roll(served: Served, own: str = "a ticket") -> Completion:
    found: Completion = played(served, served.model.roll(rollout(own)))
    return found


# What is asked, and what comes of it


def test_what_all_tickets_share_comes_first_and_the_ticket_last(serve: Open, dialect: str) -> None:
    served = serve(GOOD)
    assert roll(served, "the ticket").text == GOOD.text
    (call,) = served.server.calls
    assert (call.dialect, call.model, call.system, call.user) == (dialect, "any", "the rules", "the ticket")
    assert call.schema is None
    assert call.body["temperature"] == 0.4
    assert call.body["max_tokens"] > 0
    if dialect == "openai":
        assert call.body["seed"] == 2
        assert [message["role"] for message in call.body["messages"]] == ["system", "user"]
    else:
        # What stays the same is marked for the server's cache, and the ticket is not.
        assert [block["cache_control"] for block in call.body["system"]] == [{"type": "ephemeral"}]
        assert call.body["messages"] == [{"role": "user", "content": "the ticket"}]


def test_reflection_is_held_to_its_schema_and_drawn_anew_where_it_is_asked_again(serve: Open) -> None:
    served = serve(*[Reply("{}")] * 3)

    async def asked() -> None:
        await served.model.decide(reflection())
        await served.model.propose(reflection())
        await served.model.propose(reflection(attempt=1))

    played(served, asked())
    assert [call.schema for call in served.server.calls] == [SCHEMA] * 3
    assert [body["temperature"] for body in served.bodies] == [0.0, 0.0, 0.5]


def test_what_it_cost_is_told_with_what_was_cached(serve: Open, dialect: str) -> None:
    served = serve(Reply("x", TokenUsage(1000, 200, 600)), name=PRICED[dialect])
    found = roll(served)
    assert found.usage == Usage(1000, 200, 600)
    prices = {"openai": (0.15, 0.075, 0.60), "anthropic": (1.00, 0.10, 5.00)}[dialect]
    expected = (400 * prices[0] + 600 * prices[1] + 200 * prices[2]) / 1_000_000
    assert found.cost == pytest.approx(expected)
    assert served.model.priced


def test_a_model_without_a_price_costs_nothing_that_is_known(serve: Open) -> None:
    served = serve(GOOD)
    assert roll(served).cost == 0.0
    assert not served.model.priced


@pytest.mark.parametrize("finish", ["stop", "length", "refused"])
def test_why_it_ended_is_told_in_the_same_words_for_all(serve: Open, finish: Any) -> None:
    assert roll(serve(Reply("half an ans", finish=finish))).finish_reason == finish


def test_an_answer_without_text_is_an_empty_one(serve: Open) -> None:
    assert roll(serve(Reply(""))).text == ""


# Too much


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize("after", [None, 0.0, 0.001])
def test_a_server_with_too_much_to_do_is_asked_again_more_slowly(serve: Open, status: int, after: float | None) -> None:
    served = serve(throttled(status, after), throttled(status, after), GOOD)
    assert roll(served).text == GOOD.text
    assert (len(served.server.calls), served.pace.retries, served.pace.in_flight) == (3, 2, 0)
    # One call was in flight, and one is the least.
    assert served.pace.allowed <= 2.0


def test_all_are_answered_by_a_server_that_takes_few_at_a_time(serve: Open) -> None:
    lock, inside = threading.Lock(), 0

    def few(_: ChatCall) -> Reply:
        nonlocal inside
        with lock:
            if inside >= 4:
                refused.set()
                return throttled(retry_after=0.001)
            inside += 1
        # The first ones are at it until somebody was too many.
        assert refused.wait(60)
        with lock:
            inside -= 1
        return GOOD

    refused = threading.Event()
    served = serve(few, patience=replace(QUICK, tries=60), limit=5000)

    async def many() -> list[Completion]:
        return await asyncio.gather(*(served.model.roll(rollout(f"ticket {number}")) for number in range(40)))

    assert [answer.text for answer in played(served, many())] == [GOOD.text] * 40
    assert served.pace.allowed < 40
    assert served.pace.in_flight == 0


def test_a_server_that_stays_busy_is_given_up_with_what_it_said(serve: Open) -> None:
    served = serve(*[throttled()] * 3)
    with pytest.raises(ModelError) as caught:
        roll(served)
    assert_sentences(caught.value)
    assert len(served.server.calls) == 3


def test_the_client_does_not_try_again_behind_our_back(serve: Open) -> None:
    served = serve(Reply("broken", status=500), patience=replace(QUICK, tries=1))
    with pytest.raises(ModelError) as caught:
        roll(served)
    assert_sentences(caught.value)
    assert len(served.server.calls) == 1


# Broken


@pytest.mark.parametrize(
    "broken",
    [
        Reply(gone=True),
        Reply("an answer", broken_off=True),
        Reply(body=b""),
        Reply(body=b"<html>welcome to the hotel</html>"),
        Reply(body=b'{"half": '),
        Reply(body=b"null"),
        Reply(body=b"[]"),
        Reply(body=b"{}"),
        Reply(body=b'"yes"'),
        Reply(body=b"\xff\xfe\x00"),
        Reply("internal", status=500),
        Reply(status=502, body=b"<html>bad gateway</html>"),
    ],
    ids=lambda reply: repr(
        reply.body or ("gone" if reply.gone else "broken off" if reply.broken_off else reply.status)
    ),
)
def test_what_is_no_answer_is_asked_again(serve: Open, broken: Reply) -> None:
    served = serve(broken, GOOD)
    before = served.pace.allowed
    assert roll(served).text == GOOD.text
    assert len(served.server.calls) == 2
    assert served.pace.allowed >= before
    hopeless = serve(*[broken] * 3)
    with pytest.raises(ModelError) as caught:
        roll(hopeless)
    assert_sentences(caught.value)


def test_a_server_that_hangs_is_given_up(serve: Open) -> None:
    served = serve(*[hanging()] * 2, patience=replace(QUICK, tries=2, timeout=0.1))
    with pytest.raises(ModelError) as caught:
        roll(served)
    assert "0.1 seconds" in str(caught.value)
    assert_sentences(caught.value)
    assert (served.pace.retries, served.pace.in_flight) == (1, 0)


def test_a_server_that_is_late_is_waited_for(serve: Open) -> None:
    assert roll(serve(Reply("late", delay=0.05))).text == "late"


def test_a_server_that_has_died_is_named(serve: Open) -> None:
    served = serve(GOOD)
    assert roll(served).text == GOOD.text
    served.server.stop()
    with pytest.raises(ModelError) as caught:
        roll(served)
    assert_sentences(caught.value)
    assert served.server.root_url in str(caught.value)


def test_whoever_waits_for_a_server_that_dies_hears_of_it(serve: Open) -> None:
    served = serve(lambda _: hanging())

    async def dies() -> list[BaseException | Completion]:
        calls = [asyncio.ensure_future(served.model.roll(rollout(f"ticket {number}"))) for number in range(8)]
        while len(served.server.calls) < 8:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(served.server.stop)
        return list(await asyncio.gather(*calls, return_exceptions=True))

    assert [type(answer) for answer in played(served, dies())] == [ModelError] * 8
    assert served.pace.in_flight == 0


# Refused


def test_what_a_server_does_not_know_is_left_out_from_then_on(serve: Open) -> None:
    served = serve(unknown("temperature"), GOOD, GOOD)

    async def twice() -> list[str]:
        return [(await served.model.roll(rollout())).text, (await served.model.roll(rollout("another"))).text]

    assert played(served, twice()) == [GOOD.text] * 2
    assert ["temperature" in body for body in served.bodies] == [True, False, False]
    assert served.pace.retries == 0


def test_a_server_without_schemas_is_asked_without(serve: Open, dialect: str) -> None:
    option = {"openai": "response_format", "anthropic": "output_config"}[dialect]
    served = serve(unknown(option), Reply("{}"), Reply("{}"))

    async def twice() -> None:
        await served.model.decide(reflection())
        await served.model.propose(reflection())

    assert served.model.chat.abilities == {"schema"}
    played(served, twice())
    assert [option in body for body in served.bodies] == [True, False, False]
    assert served.model.chat.abilities == frozenset()


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
def test_newer_servers_want_another_name_for_the_limit(serve: Open) -> None:
    served = serve(unknown("max_tokens"), unknown("seed"), GOOD)
    assert roll(served).text == GOOD.text
    assert [body.get("max_completion_tokens") for body in served.bodies][1:] == [served.bodies[0]["max_tokens"]] * 2
    assert ["seed" in body for body in served.bodies] == [True, True, False]


def test_one_refusal_for_all_who_asked_at_once_is_enough(serve: Open) -> None:
    def strict(call: ChatCall) -> Reply:
        return unknown("temperature") if "temperature" in call.body else GOOD

    served = serve(strict)

    async def many() -> list[Completion]:
        return await asyncio.gather(*(served.model.roll(rollout(f"ticket {number}")) for number in range(16)))

    assert [answer.text for answer in played(served, many())] == [GOOD.text] * 16
    assert sum("temperature" not in body for body in served.bodies) == 16


def test_a_question_that_is_refused_is_not_put_again(serve: Open) -> None:
    served = serve(Reply("The prompt is too long.", status=400), GOOD)

    async def both() -> str:
        with pytest.raises(ModelError) as caught:
            await served.model.roll(rollout("long"))
        assert_sentences(caught.value)
        return (await served.model.roll(rollout("short"))).text

    assert played(served, both()) == GOOD.text


@pytest.mark.parametrize("refused", [Reply("No.", status=401), Reply("No.", status=403), Reply("No.", status=404)])
def test_what_would_be_refused_every_time_ends_everything(serve: Open, refused: Reply) -> None:
    served = serve(refused)
    with pytest.raises(ConfigError) as caught:
        roll(served)
    assert str(refused.status) in str(caught.value)
    assert_sentences(caught.value)
    assert served.server.root_url in str(caught.value.where)
    assert len(served.server.calls) == 1


def test_no_money_is_not_waited_for(serve: Open) -> None:
    served = serve(out_of_money())
    with pytest.raises(ConfigError) as caught:
        roll(served)
    assert_sentences(caught.value)
    assert len(served.server.calls) == 1


# Keys


def test_the_key_of_the_environment_goes_to_the_server(serve: Open) -> None:
    assert roll(serve(GOOD, key=KEY)).text == GOOD.text


def test_a_wrong_key_is_refused_and_not_repeated(serve: Open) -> None:
    served = serve(key="sk-the-right-one-00000000000")
    with pytest.raises(ConfigError) as caught:
        roll(served)
    assert_sentences(caught.value)
    assert KEY not in f"{caught.value} {caught.value.where} {caught.value.next_step}"


def test_a_key_without_a_shape_is_not_repeated_either(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{dialect.upper()}_API_KEY", "open-sesame")
    with ChatServer([], key="another") as server:
        served = Served(opened(dialect, server.root_url, "any", QUICK), server)
        with pytest.raises(ConfigError) as caught:
            roll(served)
    assert "open-sesame" not in str(caught.value)
    assert "open-sesame" not in served.model.name


def test_no_key_is_needed_where_the_server_wants_none(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with ChatServer([GOOD]) as server:
        assert roll(Served(opened(dialect, server.root_url, "any", QUICK), server)).text == GOOD.text


# Giving up


def test_ctrl_c_gives_up_what_is_under_way(serve: Open) -> None:
    served = serve(lambda _: hanging())

    async def interrupted() -> tuple[list[bool], int]:
        calls = [asyncio.ensure_future(served.model.roll(rollout(f"ticket {number}"))) for number in range(8)]
        while len(served.server.calls) < 8:
            await asyncio.sleep(0.001)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return [entry.cancelled() for entry in calls], len(asyncio.all_tasks())

    assert played(served, interrupted()) == ([True] * 8, 1)
    assert served.pace.in_flight == 0


def test_it_can_be_asked_in_one_loop_after_the_other(serve: Open) -> None:
    served = serve(GOOD, GOOD, GOOD)
    assert [roll(served).text for _ in range(3)] == [GOOD.text] * 3
