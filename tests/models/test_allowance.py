"""How many calls are allowed, against simulated servers: time is a number here, and chance has a seed."""

from __future__ import annotations

import heapq
import itertools
import random
import statistics
from collections.abc import Callable
from typing import NamedTuple, Protocol

import pytest

from donewhen.models.remote.allowance import FIRST, CallAllowance, CallRound, CallStart, is_faster_with_more

EVERYTHING = 10_000
"""More calls than are ever allowed."""


class SimulatedServer(Protocol):
    def ends(self, now: float, in_flight: int) -> float:
        """When a call that begins now is answered."""
        ...


class SimulatedConstantServer:
    """Answers after the same time, however many ask; how long that is may change."""

    def __init__(self, latency: Callable[[float], float] = lambda _: 1.0) -> None:
        self._latency = latency

    def ends(self, now: float, in_flight: int) -> float:
        return now + self._latency(now)


class SimulatedQueueingServer:
    """Works on so many questions at once, each for about a second; the others wait in line."""

    def __init__(self, places: Callable[[float], int], seed: int) -> None:
        self._places = places
        self._chance = random.Random(seed)
        self._free_at: list[float] = []

    def ends(self, now: float, in_flight: int) -> float:
        begins = now
        while self._free_at and (self._free_at[0] <= now or len(self._free_at) >= self._places(now)):
            begins = max(now, heapq.heappop(self._free_at))
        end = begins + self._chance.uniform(0.8, 1.2)
        heapq.heappush(self._free_at, end)
        return end


class SimulatedBatchingServer:
    """Works on all questions together: with 64 of them it is half as fast for each as with one."""

    def ends(self, now: float, in_flight: int) -> float:
        return now + 1.0 + in_flight / 64


class Played(NamedTuple):
    allowance: CallAllowance
    answers: list[float]
    levels: list[tuple[float, int]]
    """How many calls were in flight, at the time of each answer."""

    def rate(self, since: float, until: float) -> float:
        return sum(since <= answer < until for answer in self.answers) / (until - since)

    def level(self, since: float, until: float) -> float:
        return statistics.median(level for at, level in self.levels if since <= at < until)


def played(
    server: SimulatedServer, seconds: float, wanted: int = EVERYTHING, allowance: CallAllowance | None = None
) -> Played:
    """Ask a server as much as is wanted and allowed, for so many seconds."""
    found = Played(allowance or CallAllowance(most=1024), [], [])
    turns, now = itertools.count(), 0.0
    under_way: list[tuple[float, int, CallStart]] = []
    while now < seconds:
        while len(under_way) < min(int(found.allowance.allowed), wanted):
            in_flight = len(under_way) + 1
            call = found.allowance.begin(now, in_flight)
            heapq.heappush(under_way, (server.ends(now, in_flight), next(turns), call))
        now, _, call = under_way[0]
        found.levels.append((now, len(under_way)))
        found.allowance.answered(call, now)
        heapq.heappop(under_way)
        found.answers.append(now)
    return found


# A server that takes everything


def test_of_a_simulated_server_that_takes_everything_all_that_is_wanted_is_asked_at_once() -> None:
    found = played(SimulatedConstantServer(), 100, wanted=700)
    assert found.level(10, 100) == 700
    assert found.rate(10, 100) == pytest.approx(700, rel=0.01)


def test_each_round_has_twice_as_many_calls_until_there_is_enough() -> None:
    found = played(SimulatedConstantServer(), 20.5, wanted=256)
    assert [found.level(at - 0.5, at + 0.5) for at in (1, 2, 3, 4)] == [64, 128, 256, 256]
    # Of what could have been had in twenty rounds, the start costs a round and a quarter.
    assert len(found.answers) / (20 * 256) >= 0.93


def test_there_are_never_more_than_the_most() -> None:
    found = played(SimulatedConstantServer(), 50, allowance=CallAllowance(most=100))
    assert max(level for _, level in found.levels) == found.allowance.allowed == 100


def test_longer_calls_are_no_queue() -> None:
    found = played(SimulatedConstantServer(lambda now: 4.0 if now > 50 else 1.0), 300, wanted=256)
    assert found.level(40, 50) == 256
    # It is tried out once, with fewer, and then all that is wanted is asked again.
    assert min(level for at, level in found.levels if at > 60) < 256
    assert found.level(100, 300) == 256
    assert found.rate(100, 300) == pytest.approx(256 / 4, rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_a_mixture_of_short_and_long_calls_is_no_queue(seed: int) -> None:
    chance = random.Random(seed)
    found = played(SimulatedConstantServer(lambda _: 8.0 if chance.random() < 0.2 else 0.5), 200, wanted=512)
    assert found.level(100, 200) == 512


# A server with a queue


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("places", [16, 40, 100, 300])
def test_a_simulated_server_with_a_queue_is_kept_busy_and_its_queue_short(places: int, seed: int) -> None:
    found = played(SimulatedQueueingServer(lambda _: places, seed), 400)
    assert places <= found.level(200, 400) <= 2 * places
    assert found.rate(0, 400) >= 0.9 * places
    assert found.rate(200, 400) >= 0.9 * places


@pytest.mark.parametrize("seed", range(3))
def test_a_simulated_server_that_gets_slower_in_the_middle_has_fewer_calls_until_it_recovers(seed: int) -> None:
    found = played(SimulatedQueueingServer(lambda now: 32 if 200 < now < 600 else 128, seed), 1000, wanted=512)
    assert 128 <= found.level(100, 200) <= 256
    assert 32 <= found.level(400, 600) <= 64
    assert found.rate(200, 600) >= 0.9 * 32
    assert 128 <= found.level(800, 1000) <= 256
    assert found.rate(800, 1000) >= 0.9 * 128


def test_a_simulated_server_that_had_no_queue_may_get_one() -> None:
    found = played(SimulatedQueueingServer(lambda now: 32 if now > 100 else 1000, 1), 500, wanted=256)
    assert found.level(50, 100) == 256
    assert 32 <= found.level(300, 500) <= 64


def test_a_queue_in_which_nobody_waits_for_long_does_no_harm() -> None:
    # A hundred answers a second, one after the other, so that forty calls wait for less than half a second.
    busy = [0.0]

    class SimulatedFastServer:
        def ends(self, now: float, in_flight: int) -> float:
            busy[0] = max(now, busy[0]) + 0.01
            return busy[0]

    found = played(SimulatedFastServer(), 60, wanted=40, allowance=CallAllowance(most=1024, first=40))
    assert found.level(10, 60) == 40


# A server that batches


def test_a_simulated_server_that_batches_is_not_throttled_for_being_slower_with_more() -> None:
    found = played(SimulatedBatchingServer(), 300, wanted=256)
    assert found.level(50, 300) == 256
    # Each answer takes five times as long as one alone, and there are fifty times as many.
    assert found.rate(50, 300) == pytest.approx(256 / 5, rel=0.05)


# What decides


def test_more_calls_bring_more_where_a_fifth_of_them_arrives_as_more_answers() -> None:
    alone = CallRound(100, 1.0)
    assert is_faster_with_more(alone, CallRound(200, 1.0))
    assert is_faster_with_more(alone, CallRound(200, 2 / 1.21))
    assert not is_faster_with_more(alone, CallRound(200, 2 / 1.19))
    assert not is_faster_with_more(alone, CallRound(200, 2.0))


def test_answers_that_take_no_time_are_no_queue() -> None:
    allowance = CallAllowance(most=1024)
    for _ in range(10):
        for call in [allowance.begin(0.0, number + 1) for number in range(200)]:
            allowance.answered(call, 0.0)
    assert allowance.allowed >= 200


def test_a_few_answers_decide_nothing() -> None:
    allowance = CallAllowance(most=1024, first=8)
    for number in range(15):
        allowance.answered(allowance.begin(number, 8), number + 1)
    assert allowance.allowed == 8
    allowance.answered(allowance.begin(15, 8), 16)
    assert allowance.allowed == 16


def test_where_few_are_wanted_nothing_is_decided() -> None:
    found = played(SimulatedQueueingServer(lambda _: 4, 1), 200, wanted=FIRST // 4)
    assert found.allowance.allowed == FIRST


# A server that refuses


def test_all_calls_of_one_moment_halve_once_and_there_are_no_leaps_afterwards() -> None:
    allowance = CallAllowance(most=1024)
    for call in [allowance.begin(0.0, number) for number in range(1, 65)]:
        allowance.refused(call, 64)
    assert allowance.allowed == 32
    found = played(SimulatedConstantServer(), 20.5, allowance=allowance)
    assert 32 + 15 <= found.allowance.allowed <= 32 + 20


def test_a_later_moment_halves_again_down_to_one() -> None:
    allowance = CallAllowance(most=1024)
    for at in range(8):
        allowance.refused(allowance.begin(at, int(allowance.allowed)), int(allowance.allowed))
    assert allowance.allowed == 1


def test_a_simulated_server_that_refuses_more_than_it_takes_is_asked_for_nearly_that() -> None:
    allowance = CallAllowance(most=1024)
    levels = []
    for at in range(400):
        calls = [allowance.begin(at, number + 1) for number in range(int(allowance.allowed))]
        levels.append(len(calls))
        for call in calls:
            if call.in_flight > 100:
                allowance.refused(call, len(calls))
            else:
                allowance.answered(call, at + 1)
    # The answers of a round come together here, so that it grows by less than one in each.
    assert max(levels[5:]) <= 102
    assert min(levels[5:]) >= 50
