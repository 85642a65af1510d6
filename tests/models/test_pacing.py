"""Pacing: who waits their turn, who tries again and when, and what a server that has too much to do changes."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.models.remote.allowance import CallAllowance
from donewhen.models.remote.pacing import Pace, Patience, RetryLater
from donewhen.models.remote.server_errors import UnsupportedOption, raise_for_refusal
from donewhen.models.roles import ModelError
from donewhen.testing.clock import ManualClock
from sentences import assert_sentences

QUICK = Patience(tries=4, first_pause=0.0, longest_pause=0.0)


class Pauses:
    """Notes how long anybody wants to sleep, and lets nobody sleep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: list[float] = []
        sleep = asyncio.sleep

        async def noted(seconds: float) -> None:
            self.taken.append(seconds)
            await sleep(0)

        monkeypatch.setattr("donewhen.models.remote.pacing.asyncio.sleep", noted)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    return Pauses(monkeypatch)


class Gate:
    """Calls that wait until they are let through."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.inside = 0
        self.most = 0

    async def through(self) -> str:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.open.wait()
        finally:
            self.inside -= 1
        return "done"


async def until(true: Callable[[], bool]) -> None:
    """Let the others go on until something is so."""
    for _ in range(1000):
        if true():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def failing(*ways: BaseException | None) -> Callable[[], Awaitable[str]]:
    """A call that fails so, one way after the other, and is answered where there is None."""
    left = iter(ways)

    async def make() -> str:
        way = next(left)
        if way is not None:
            raise way
        return "answer"

    return make


def played(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


# Turns


def test_never_more_calls_are_in_flight_than_are_allowed() -> None:
    async def main() -> tuple[int, int, int, list[str]]:
        gate, pace = Gate(), Pace(Patience(most=3))
        calls = [asyncio.ensure_future(pace.call(gate.through)) for _ in range(10)]
        await until(lambda: gate.inside == 3)
        held = pace.in_flight
        gate.open.set()
        return held, gate.most, pace.in_flight, await asyncio.gather(*calls)

    held, most, after, answers = played(main())
    assert (held, most, answers) == (3, 3, ["done"] * 10)
    assert after in range(4)


def test_calls_that_come_together_begin_one_in_each_turn_of_the_loop() -> None:
    async def main() -> list[int]:
        gate, pace = Gate(), Pace()
        calls = [asyncio.ensure_future(pace.call(gate.through)) for _ in range(20)]
        found = []
        while gate.inside < 20:
            await asyncio.sleep(0)
            found.append(gate.inside)
        gate.open.set()
        await asyncio.gather(*calls)
        return found

    inside = played(main())
    assert {later - earlier for earlier, later in itertools.pairwise(inside)} <= {0, 1}


def test_a_pace_goes_on_in_another_loop() -> None:
    pace = Pace()
    for _ in range(3):
        # The loop ends before its next turn.
        assert played(pace.call(failing(None))) == "answer"
    assert pace.in_flight == 0


def test_when_all_is_done_nobody_is_in_flight() -> None:
    async def main() -> int:
        pace = Pace(QUICK)
        calls = [pace.call(failing(RetryLater("busy"), None)) for _ in range(5)]
        calls.append(pace.call(failing(ModelError("no"))))
        await asyncio.gather(*calls, return_exceptions=True)
        return pace.in_flight

    assert played(main()) == 0


def test_whoever_gives_up_in_the_queue_takes_nobodys_turn() -> None:
    async def main() -> tuple[str, str, int]:
        gate, pace = Gate(), Pace(Patience(most=1))
        first, second, third = (asyncio.ensure_future(pace.call(gate.through)) for _ in range(3))
        await until(lambda: gate.inside == 1)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        gate.open.set()
        return await first, await third, pace.in_flight

    assert played(main()) == ("done", "done", 0)


def test_whoever_gives_up_at_the_moment_of_its_turn_hands_it_on() -> None:
    async def main() -> tuple[bool, str, int]:
        pace = Pace(Patience(most=1))
        gate = Gate()

        async def then_cancels() -> None:
            await pace.call(gate.through)
            # Its turn was given a moment ago, and it has not run since.
            second.cancel()

        first = asyncio.ensure_future(then_cancels())
        second, third = (asyncio.ensure_future(pace.call(gate.through)) for _ in range(2))
        await until(lambda: gate.inside == 1)
        gate.open.set()
        await first
        await asyncio.gather(second, return_exceptions=True)
        return second.cancelled(), await third, pace.in_flight

    cancelled, third, in_flight = played(main())
    assert (third, in_flight) == ("done", 0)
    assert cancelled


def test_whoever_gives_up_in_mid_call_makes_room() -> None:
    async def main() -> tuple[str, int]:
        gate, pace = Gate(), Pace(Patience(most=1))
        first, second = (asyncio.ensure_future(pace.call(gate.through)) for _ in range(2))
        await until(lambda: gate.inside == 1)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await until(lambda: gate.inside == 1)
        gate.open.set()
        return await second, pace.in_flight

    assert played(main()) == ("done", 0)


def test_nobody_is_in_flight_while_it_waits_to_try_again() -> None:
    async def main() -> tuple[int, int]:
        pace = Pace(Patience(tries=2, first_pause=1000.0, longest_pause=1000.0))
        waiting = asyncio.ensure_future(pace.call(failing(RetryLater("busy"))))
        await until(lambda: pace.retries == 1)
        during = pace.in_flight
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return during, pace.in_flight

    assert played(main()) == (0, 0)


# Trying again


def test_a_call_that_may_pass_is_made_again_until_it_is_answered(pauses: Pauses) -> None:
    pace = Pace(Patience(tries=4))
    assert played(pace.call(failing(RetryLater("a"), RetryLater("b"), RetryLater("c"), None))) == "answer"
    assert (pace.retries, len(pauses.taken)) == (3, 3)


def test_after_the_last_try_it_says_how_often_and_why(pauses: Pauses) -> None:
    pace = Pace(Patience(tries=3))
    with pytest.raises(ModelError) as caught:
        played(pace.call(failing(*[RetryLater("it is busy")] * 3)))
    assert_sentences(caught.value)
    # Nobody waits for nothing.
    assert len(pauses.taken) == 2


def test_what_can_not_pass_is_not_tried_again(pauses: Pauses) -> None:
    for error in (ModelError("no"), ConfigError("no"), UnsupportedOption("seed"), ZeroDivisionError()):
        pace = Pace(QUICK)
        with pytest.raises(type(error)):
            played(pace.call(failing(error)))
        assert (pauses.taken, pace.in_flight, pace.retries) == ([], 0, 0)


def test_pauses_grow_by_half_and_half_again_with_jitter_and_have_an_end(pauses: Pauses) -> None:
    pace = Pace(Patience(tries=8, first_pause=1.0, longest_pause=8.0), seed=3)
    with pytest.raises(ModelError):
        played(pace.call(failing(*[RetryLater("busy")] * 8)))
    for taken, middle in zip(pauses.taken, [1, 2, 4, 8, 8, 8, 8], strict=True):
        assert middle * 0.5 <= taken <= min(middle * 1.5, 8.0)
    assert len(set(pauses.taken)) > 4


def test_those_who_failed_together_do_not_come_back_together(pauses: Pauses) -> None:
    async def main() -> None:
        pace = Pace(Patience(tries=2, first_pause=1.0), seed=1)
        await asyncio.gather(*(pace.call(failing(RetryLater("busy"), None)) for _ in range(20)))

    played(main())
    assert len(set(pauses.taken)) == 20


@pytest.mark.parametrize(("asked", "least"), [(0.0, 0.0), (7.0, 7.0), (300.0, 300.0), (1e9, 600.0), (math.inf, 600.0)])
def test_the_server_says_how_long_but_not_forever(pauses: Pauses, asked: float, least: float) -> None:
    assert played(Pace(Patience()).call(failing(RetryLater("busy", after=asked), None))) == "answer"
    assert least <= pauses.taken[0] <= least + Patience().first_pause


def test_those_who_are_told_the_same_pause_do_not_come_back_together(pauses: Pauses) -> None:
    pace = Pace(Patience())
    for _ in range(2):
        played(pace.call(failing(RetryLater("busy", after=7.0), None)))
    assert pauses.taken[0] != pauses.taken[1]


def test_a_call_without_an_answer_is_given_up_and_made_again() -> None:
    cancelled = []

    async def hanging() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return "never"

    pace = Pace(Patience(tries=2, timeout=0.001, first_pause=0.0))
    with pytest.raises(ModelError) as caught:
        played(pace.call(hanging))
    assert "0.001 seconds" in str(caught.value)
    assert_sentences(caught.value)
    assert (len(cancelled), pace.in_flight) == (2, 0)


def test_ctrl_c_is_no_timeout() -> None:
    async def main() -> tuple[bool, int]:
        gate, pace = Gate(), Pace()
        call = asyncio.ensure_future(pace.call(gate.through))
        await until(lambda: gate.inside == 1)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return call.cancelled(), pace.retries

    assert played(main()) == (True, 0)


# Slowing down, and coming back


async def refused_together(pace: Pace, count: int, clock: ManualClock) -> None:
    """So many calls are in flight, and the server has too much of all of them; then they are answered."""
    gate = Gate()
    left = count

    async def make() -> str:
        nonlocal left
        if left:
            left -= 1
            await gate.through()
            raise RetryLater("too much", slow_down=True, after=0.0)
        return "answer"

    calls = [asyncio.ensure_future(pace.call(make)) for _ in range(count)]
    await until(lambda: gate.inside == count)
    clock.advance(1.0)
    gate.open.set()
    await asyncio.gather(*calls)


def test_too_much_halves_what_was_in_flight_and_not_what_was_allowed() -> None:
    clock = ManualClock()
    pace = Pace(Patience(most=1000, first_pause=0.0), clock=clock)
    played(refused_together(pace, 40, clock))
    # Once for all of them, because they tell of the same moment; what was answered since has added a little.
    assert 20.0 <= pace.allowed < 23.0


def test_a_second_moment_halves_again_and_at_least_one_call_is_left() -> None:
    clock = ManualClock()
    pace = Pace(Patience(tries=9, first_pause=0.0), clock=clock)

    async def main() -> None:
        for _ in range(6):
            clock.advance(1.0)
            with pytest.raises(ModelError):
                await pace.call(failing(*[RetryLater("too much", slow_down=True, after=0.0)] * 9))

    played(main())
    assert pace.allowed == 1.0


def test_a_failure_that_is_not_too_much_slows_nobody_down() -> None:
    pace = Pace(QUICK)
    before = pace.allowed
    played(pace.call(failing(RetryLater("it broke"), RetryLater("it broke"), None)))
    assert pace.allowed == before > 1.0


def test_a_call_that_took_too_long_counts_as_too_much() -> None:
    pace = Pace(Patience(tries=1, timeout=0.001))
    with pytest.raises(ModelError):
        played(pace.call(asyncio.Event().wait))
    assert pace.allowed == 1.0


def test_answers_bring_it_back_one_more_for_each_round() -> None:
    clock = ManualClock()
    pace = Pace(Patience(most=8, first_pause=0.0), clock=clock)
    played(refused_together(pace, 4, clock))

    async def rounds(count: int) -> None:
        for _ in range(count):
            gate = Gate()
            calls = [asyncio.ensure_future(pace.call(gate.through)) for _ in range(int(pace.allowed))]
            await until(lambda gate=gate, calls=calls: gate.inside == len(calls))  # type: ignore[misc]
            gate.open.set()
            await asyncio.gather(*calls)

    before = pace.allowed
    assert 2.0 <= before < 4.0
    played(rounds(3))
    assert before + 0.9 <= pace.allowed <= before + 3.1
    played(rounds(60))
    assert pace.allowed <= 8.0
    assert int(pace.allowed) >= 7


def test_where_nobody_wants_more_no_more_is_allowed() -> None:
    pace = Pace(Patience(most=100))
    pace.allowance = CallAllowance(most=100, first=10)
    for _ in range(20):
        played(pace.call(failing(None)))
    assert pace.allowed == 10.0


# What a refusal means


def refusal(status: int, message: str = "it said so", options: tuple[str, ...] = (), **headers: str) -> Exception:
    with pytest.raises((RetryLater, UnsupportedOption, ModelError, ConfigError)) as caught:
        raise_for_refusal(status, message, headers, "http://server", options)
    return caught.value


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again_and_too_much_slows_down(status: int) -> None:
    found = refusal(status, **{"retry-after": "2"})
    assert isinstance(found, RetryLater)
    assert (found.after, found.slow_down) == (2.0, status in (429, 503, 529))
    assert str(status) in str(found)
    assert_sentences(found)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_would_be_refused_every_time_ends_it_with_the_place(status: int) -> None:
    found = refusal(status)
    assert isinstance(found, ConfigError)
    assert found.where == "http://server"
    assert str(status) in str(found)
    assert_sentences(found)


def test_no_money_is_no_matter_of_waiting() -> None:
    assert isinstance(refusal(429, "{'code': 'insufficient_quota'}"), ConfigError)
    assert isinstance(refusal(429, "Your credit balance is too low"), ConfigError)


@pytest.mark.parametrize("status", [400, 422])
def test_what_the_server_does_not_know_is_left_out_and_only_that(status: int) -> None:
    found = refusal(status, "Unsupported parameter: 'seed'", ("temperature", "seed"))
    assert isinstance(found, UnsupportedOption)
    assert found.option == "seed"
    # What was not sent can't be left out.
    assert isinstance(refusal(status, "Unsupported parameter: 'seed'", ("temperature",)), ModelError)
    assert isinstance(refusal(413, "the seed is too large", ("seed",)), ModelError)


def test_a_refusal_never_repeats_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-without-a-shape")
    for status in (400, 401, 429, 500):
        found = str(refusal(status, "Bad key: a-key-without-a-shape or sk-abcdefghijklmnopqrstuvw"))
        assert "a-key-without-a-shape" not in found
        assert "sk-abc" not in found
        assert "[redacted]" in found


def test_a_refusal_is_one_short_line() -> None:
    found = str(refusal(500, "line\n" * 1000))
    assert "\n" not in found
    assert len(found) < 350


@pytest.mark.parametrize(("header", "after"), [("1.5", 1.5), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("soon", None)])
def test_a_refusal_says_how_long_to_wait(header: str, after: float | None) -> None:
    with pytest.raises(RetryLater) as caught:
        raise_for_refusal(429, "slow down", {"retry-after": header}, "server", ())
    assert caught.value.after == after
