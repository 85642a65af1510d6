"""Verdicts on tickets that come one by one: in order, without waiting for more, and without piling up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from judging_kit import FAIL, PASS, Scripted, many, mission_in, ticket

from donewhen.foundation.errors import ConfigError
from donewhen.judging.judge import HELD, Judge
from donewhen.judging.ticket import Ticket, TicketError
from donewhen.judging.verdict import Verdict
from donewhen.judging.verdict_stream import stream_verdicts
from donewhen.models.roles import Completion, RolloutRequest

both_ways = pytest.mark.parametrize("piped", [False, True])


class Slow(Scripted):
    """Answers the later the lower the ticket's number is, and counts how many it is asked about at once."""

    def __init__(self) -> None:
        super().__init__(lambda _: PASS)
        self.now = self.most = 0

    async def roll(self, request: RolloutRequest) -> Completion:
        self.now += 1
        self.most = max(self.most, self.now)
        number = int(request.evidence["image_1"].split()[1])
        for _ in range(20 - number % 20):
            await asyncio.sleep(0)
        self.now -= 1
        return await super().roll(request)


def judge_in(folder: Path, model: Scripted, at_once: int = 4) -> Judge:
    mission = mission_in(folder, f"concurrency = {at_once}\n")
    return Judge(mission, mission.initial_guidance(), model)


async def all_of(judge: Judge, tickets: Iterator[Ticket | TicketError], *, piped: bool) -> list[Verdict | TicketError]:
    return [verdict async for verdict in stream_verdicts(judge, tickets, piped=piped)]


@both_ways
@pytest.mark.parametrize("at_once", [1, 4])
def test_verdicts_keep_the_order_of_the_tickets_and_no_more_are_judged_at_once_than_allowed(
    tmp_path: Path, piped: bool, at_once: int
) -> None:
    model = Slow()
    found = asyncio.run(all_of(judge_in(tmp_path, model, at_once), many(50), piped=piped))
    assert [verdict.group_id for verdict in found if isinstance(verdict, Verdict)] == [f"QC-{at}" for at in range(50)]
    assert model.most == at_once


@both_ways
def test_what_is_no_ticket_keeps_its_place(tmp_path: Path, piped: bool) -> None:
    bad = TicketError("Bad.")
    source: list[Ticket | TicketError] = [ticket("A"), bad, ticket("B"), bad, bad]
    found = asyncio.run(all_of(judge_in(tmp_path, Scripted(lambda _: FAIL)), iter(source), piped=piped))
    assert [verdict.group_id if isinstance(verdict, Verdict) else verdict for verdict in found] == [
        "A",
        bad,
        "B",
        bad,
        bad,
    ]


@both_ways
def test_nothing_in_nothing_out(tmp_path: Path, piped: bool) -> None:
    assert asyncio.run(all_of(judge_in(tmp_path, Scripted(lambda _: PASS)), iter(()), piped=piped)) == []


def test_a_verdict_does_not_wait_for_the_next_ticket(tmp_path: Path) -> None:
    more = threading.Event()

    def source() -> Iterator[Ticket]:
        yield ticket("A")
        assert more.wait(60)
        yield ticket("B")

    async def answered() -> list[str]:
        names = []
        async for verdict in stream_verdicts(judge_in(tmp_path, Scripted(lambda _: PASS)), source(), piped=True):
            assert isinstance(verdict, Verdict)
            names.append(verdict.group_id)
            more.set()
        return names

    assert asyncio.run(answered()) == ["A", "B"]


class StuckAtFirst(Scripted):
    """Does not answer about the first ticket before it has answered about some others."""

    def __init__(self, others: int) -> None:
        super().__init__(lambda _: PASS)
        self._others = others
        self.answered = 0
        self.most = self.now = 0
        self.enough = asyncio.Event()

    async def roll(self, request: RolloutRequest) -> Completion:
        self.now += 1
        self.most = max(self.most, self.now)
        if request.evidence["image_1"].split()[1] == "0":
            await self.enough.wait()
        self.now -= 1
        self.answered += 1
        if self.answered == self._others:
            self.enough.set()
        return await super().roll(request)


@both_ways
def test_a_ticket_that_takes_long_does_not_keep_the_others_from_being_judged(tmp_path: Path, piped: bool) -> None:
    samplers = "[[sampler]]\ntemperature = 0.0\n"
    mission = mission_in(tmp_path, f"concurrency = 4\n{samplers}")
    # More than are judged at once; as many as are held at most, but for the one that is stuck.
    model = StuckAtFirst(others=4 * HELD - 1)
    judge = Judge(mission, mission.initial_guidance(), model)
    found = asyncio.run(asyncio.wait_for(all_of(judge, many(40), piped=piped), 60))
    assert [verdict.group_id for verdict in found if isinstance(verdict, Verdict)] == [f"QC-{at}" for at in range(40)]
    assert model.most <= 4


@both_ways
def test_a_reader_who_takes_his_time_holds_the_tickets_back(tmp_path: Path, piped: bool) -> None:
    taken = 0

    def source() -> Iterator[Ticket]:
        nonlocal taken
        for piped_ticket in many(10_000):
            taken += 1
            yield piped_ticket

    async def read_a_few() -> None:
        judged = 0
        async for _ in stream_verdicts(judge_in(tmp_path, Scripted(lambda _: PASS)), source(), piped=piped):
            judged += 1
            # As many as are judged at once, as many read ahead, and one in each hand.
            assert taken <= judged + 2 * 4 + 3
            if judged == 200:
                break

    asyncio.run(read_a_few())
    assert taken < 300


@both_ways
def test_what_reading_raises_ends_it(tmp_path: Path, piped: bool) -> None:
    def source() -> Iterator[Ticket]:
        yield ticket("A")
        raise ConfigError("The disk is gone.")

    with pytest.raises(ConfigError, match="The disk is gone"):
        asyncio.run(all_of(judge_in(tmp_path, Scripted(lambda _: PASS)), source(), piped=piped))


@both_ways
def test_what_judging_raises_ends_it_and_leaves_no_question_open(tmp_path: Path, piped: bool) -> None:
    def answer(request: RolloutRequest) -> str:
        if request.evidence["image_1"] == "cabinet 7":
            raise ConfigError("No such thing.")
        return PASS

    async def until_it_breaks() -> set[asyncio.Task[object]]:
        with pytest.raises(ConfigError, match="No such thing"):
            await all_of(judge_in(tmp_path, Scripted(answer)), many(1000), piped=piped)
        return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]

    assert asyncio.run(until_it_breaks()) == set()
