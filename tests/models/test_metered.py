"""Asking within limits: no question twice, no call too many, and a run that is resumed has paid what it has paid."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import subprocess
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from donewhen.models.answer_store import AnswerStore
from donewhen.models.metered import BudgetError, Meter, MeteredModel, SpendingLimits
from donewhen.models.roles import Completion, Decode, ModelError, Prompt, ReflectionRequest, RolloutRequest, Usage
from sentences import assert_sentences


class Paid:
    """A model that costs something, answers from the question, and knows what it was asked."""

    name = "paid-1"
    free = False

    def __init__(self, answer: Callable[[str], str] = str.upper, pauses: int = 2) -> None:
        self.asked: list[str] = []
        self._answer = answer
        self._pauses = pauses

    async def _say(self, role: str, prompt: Prompt) -> Completion:
        self.asked.append(f"{role} {prompt.own}")
        for _ in range(self._pauses):
            await asyncio.sleep(0)
        return Completion(self._answer(prompt.own), Usage(10, 5, 4), cost=0.5)

    async def roll(self, request: RolloutRequest) -> Completion:
        return await self._say("rollout", request.prompt)

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._say("decision", request.prompt)

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._say("ops", request.prompt)


class Free(Paid):
    free = True


def rollout(own: str, sample: int = 0) -> RolloutRequest:
    return RolloutRequest(Prompt("shared", own), {}, {}, Decode(0.1, sample), "en")


def reflection(own: str, attempt: int = 0) -> ReflectionRequest:
    return ReflectionRequest(Prompt("shared", own), {}, (), "en", {}, 2, attempt)


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[AnswerStore]:
    with AnswerStore(tmp_path / "answers.db") as opened:
        yield opened


def ask(asking: MeteredModel, *questions: str) -> list[str]:
    """Put questions one after the other, in a loop of their own."""

    async def main() -> list[str]:
        return [(await asking.roll(rollout(question))).text for question in questions]

    return asyncio.run(main())


def ask_at_once(asking: MeteredModel, *questions: str) -> list[str | BaseException]:
    async def main() -> list[Completion | BaseException]:
        return await asyncio.gather(*(asking.roll(rollout(question)) for question in questions), return_exceptions=True)

    return [answer.text if isinstance(answer, Completion) else answer for answer in asyncio.run(main())]


# No question twice


def test_asking_is_the_model_as_far_as_anybody_can_see(answers: AnswerStore) -> None:
    asking = MeteredModel(Paid(), answers=answers)
    assert (asking.name, asking.free) == ("paid-1", False)
    assert MeteredModel(Free()).free

    async def main() -> list[str]:
        return [
            (await asking.roll(rollout("a"))).text,
            (await asking.decide(reflection("b"))).text,
            (await asking.propose(reflection("c"))).text,
        ]

    assert asyncio.run(main()) == ["A", "B", "C"]
    assert asking.model.asked == ["rollout a", "decision b", "ops c"]  # type: ignore[attr-defined]


def test_no_question_is_put_twice(answers: AnswerStore) -> None:
    model = Paid()
    asking = MeteredModel(model, answers=answers, run="r")
    assert ask(asking, "a", "b", "a") == ["A", "B", "A"]
    assert ask(asking, "b", "a") == ["B", "A"]
    assert model.asked == ["rollout a", "rollout b"]
    meter = asking.meter
    assert (meter.calls, meter.tokens, meter.cost, meter.reused) == (2, 30, 1.0, 0)


def test_a_question_that_is_being_answered_is_not_put_again(answers: AnswerStore) -> None:
    model = Paid()
    asking = MeteredModel(model, answers=answers)
    assert ask_at_once(asking, *"aabab") == ["A", "A", "B", "A", "B"]
    assert sorted(model.asked) == ["rollout a", "rollout b"]
    assert asking.meter.calls == 2


def test_the_same_words_in_another_role_or_decode_are_another_question(answers: AnswerStore) -> None:
    model = Paid()
    asking = MeteredModel(model, answers=answers)

    async def main() -> None:
        await asking.roll(rollout("a"))
        await asking.roll(rollout("a", sample=1))
        await asking.decide(reflection("a"))
        await asking.propose(reflection("a"))

    asyncio.run(main())
    assert len(model.asked) == 4


def test_a_second_attempt_at_the_same_cases_is_put(answers: AnswerStore) -> None:
    model = Paid()
    asking = MeteredModel(model, answers=answers)

    async def main() -> None:
        for attempt in (0, 1, 2, 1):
            await asking.propose(reflection("case", attempt))

    asyncio.run(main())
    assert len(model.asked) == 3
    assert asking.meter.reflection_calls == 3


def test_a_model_that_costs_nothing_is_asked_every_time_and_counted(answers: AnswerStore) -> None:
    model = Free()
    asking = MeteredModel(model, answers=answers, run="r")
    assert ask(asking, "a", "a") == ["A", "A"]
    assert (len(model.asked), asking.meter.calls, asking.meter.rollout_calls) == (2, 2, 2)


def test_a_model_without_answers_is_asked_every_time() -> None:
    model = Paid()
    asking = MeteredModel(model)
    ask(asking, "a", "a")
    assert (len(model.asked), asking.meter.calls) == (2, 2)


# What is counted


def test_everything_is_counted_by_what_it_was_for(answers: AnswerStore) -> None:
    meter = Meter()
    asking = MeteredModel(Paid(), meter, answers)

    async def main() -> None:
        await asking.roll(rollout("a"))
        await asking.roll(rollout("b"))
        await asking.decide(reflection("c"))
        await asking.propose(reflection("d"))

    asyncio.run(main())
    assert (meter.calls, meter.rollout_calls, meter.reflection_calls, meter.epoch_calls) == (4, 2, 2, 4)
    assert (meter.prompt_tokens, meter.completion_tokens, meter.cached_tokens, meter.tokens) == (40, 20, 16, 60)
    assert (meter.cost, meter.errors, meter.reused) == (2.0, 0, 0)


def test_a_call_that_failed_was_a_call_and_is_put_again(answers: AnswerStore) -> None:
    attempts = iter([ModelError("away"), "fine"])

    def answer(_: str) -> str:
        message = next(attempts)
        if isinstance(message, ModelError):
            raise message
        return message

    model = Paid(answer)
    asking = MeteredModel(model, answers=answers)
    with pytest.raises(ModelError) as caught:
        ask(asking, "a")
    assert_sentences(caught.value)
    assert (asking.meter.calls, asking.meter.errors, asking.meter.tokens) == (1, 1, 0)
    assert ask(asking, "a") == ["fine"]
    assert (asking.meter.calls, asking.meter.errors, len(model.asked)) == (2, 1, 2)


def test_all_who_wait_for_a_call_that_fails_hear_of_it_and_it_is_one_call(answers: AnswerStore) -> None:
    def away(_: str) -> str:
        raise ModelError("away")

    asking = MeteredModel(Paid(away), answers=answers)
    assert [type(result) for result in ask_at_once(asking, *"aaa")] == [ModelError] * 3
    assert (asking.meter.calls, asking.meter.errors) == (1, 1)


def test_an_error_that_is_no_models_is_not_counted_as_one(answers: AnswerStore) -> None:
    def broken(_: str) -> str:
        raise ZeroDivisionError

    for kept in (answers, None):
        asking = MeteredModel(Paid(broken), answers=kept)
        with pytest.raises(ZeroDivisionError):
            ask(asking, "a")
        assert (asking.meter.calls, asking.meter.errors) == (1, 0)


# Budgets


@pytest.mark.parametrize("model", [Paid, Free])
@pytest.mark.parametrize("allowed", [1, 3, 7])
def test_a_budget_of_calls_is_exact_to_the_call(answers: AnswerStore, model: type[Paid], allowed: int) -> None:
    made = model()
    asking = MeteredModel(made, Meter(SpendingLimits(calls=allowed)), answers)
    found = [answer for question in "abcdefghij" for answer in ask_at_once(asking, question)]
    assert [isinstance(entry, BudgetError) for entry in found] == [False] * allowed + [True] * (10 - allowed)
    assert (len(made.asked), asking.meter.calls) == (allowed, allowed)


@pytest.mark.parametrize("model", [Paid, Free])
@pytest.mark.parametrize("allowed", [1, 3, 7])
def test_a_budget_of_calls_is_exact_when_all_ask_at_once(answers: AnswerStore, model: type[Paid], allowed: int) -> None:
    made = model(pauses=5)
    asking = MeteredModel(made, Meter(SpendingLimits(calls=allowed)), answers)
    found = ask_at_once(asking, *"abcdefghij")
    assert sum(isinstance(answer, BudgetError) for answer in found) == 10 - allowed
    assert (len(made.asked), asking.meter.calls) == (allowed, allowed)


def test_a_call_that_failed_is_part_of_the_budget(answers: AnswerStore) -> None:
    def away(_: str) -> str:
        raise ModelError("away")

    asking = MeteredModel(Paid(away), Meter(SpendingLimits(calls=2)), answers)
    assert [type(result) for question in "abc" for result in ask_at_once(asking, question)] == [
        ModelError,
        ModelError,
        BudgetError,
    ]


def test_the_budget_says_which_limit_it_was_and_how_much_was_allowed(answers: AnswerStore) -> None:
    for limits, name in (
        (SpendingLimits(calls=2), "calls"),
        (SpendingLimits(tokens=30), "tokens"),
        (SpendingLimits(tokens=16), "tokens"),
        (SpendingLimits(cost=1.0), "cost"),
        (SpendingLimits(cost=0.6), "cost"),
        (SpendingLimits(calls_per_epoch=2), "calls_per_epoch"),
        (SpendingLimits(tokens_per_epoch=30), "tokens_per_epoch"),
        (SpendingLimits(tokens_per_epoch=16), "tokens_per_epoch"),
        (SpendingLimits(cost_per_epoch=1.0), "cost_per_epoch"),
        (SpendingLimits(cost_per_epoch=0.6), "cost_per_epoch"),
    ):
        model = Free()
        asking = MeteredModel(model, Meter(limits), answers)
        asking.meter.begin_epoch()
        assert ask(asking, "a", "b") == ["A", "B"]
        with pytest.raises(BudgetError) as caught:
            ask(asking, "c")
        assert caught.value.limit == name
        assert name.replace("_", " ") in str(caught.value)
        assert f"{getattr(limits, name):g} allowed" in str(caught.value)
        assert caught.value.exit_code == 1
        assert len(model.asked) == 2


def test_an_epoch_has_its_own_calls_and_the_run_has_all() -> None:
    meter = Meter(SpendingLimits(calls=5, calls_per_epoch=2))
    asking = MeteredModel(Free(), meter)
    meter.begin_epoch()
    ask(asking, "a", "b")
    with pytest.raises(BudgetError) as caught:
        ask(asking, "c")
    assert_sentences(caught.value)
    meter.begin_epoch()
    ask(asking, "c", "d")
    meter.begin_epoch()
    ask(asking, "e")
    with pytest.raises(BudgetError) as caught:
        ask(asking, "f")
    assert_sentences(caught.value)


@pytest.mark.parametrize("limits", [SpendingLimits(tokens_per_epoch=30), SpendingLimits(cost_per_epoch=1.0)])
def test_an_epoch_has_its_own_tokens_and_its_own_money(limits: SpendingLimits) -> None:
    meter = Meter(limits)
    asking = MeteredModel(Free(), meter)
    ask(asking, *"xyz")
    for round_ in ("ab", "cd"):
        meter.begin_epoch()
        ask(asking, *round_)
        with pytest.raises(BudgetError) as caught:
            ask(asking, "e")
        assert_sentences(caught.value)
    meter.end_epoch()
    ask(asking, *"efgh")


def test_what_belongs_to_no_epoch_is_none_of_its_calls() -> None:
    meter = Meter(SpendingLimits(calls=9, calls_per_epoch=2))
    asking = MeteredModel(Free(), meter)
    ask(asking, *"abc")
    meter.begin_epoch()
    ask(asking, *"de")
    with pytest.raises(BudgetError) as caught:
        ask(asking, "f")
    assert_sentences(caught.value)
    meter.end_epoch()
    ask(asking, *"fghi")
    assert (meter.calls, meter.epoch_calls) == (9, 4)
    with pytest.raises(BudgetError) as caught:
        ask(asking, "j")
    assert_sentences(caught.value)


def test_when_the_time_is_over_no_call_is_made() -> None:
    now = [0.0]
    meter = Meter(SpendingLimits(seconds=10.0), elapsed=lambda: now[0])
    model = Free()
    asking = MeteredModel(model, meter)
    now[0] = 9.99
    ask(asking, "a")
    now[0] = 10.0
    with pytest.raises(BudgetError) as caught:
        ask(asking, "b")
    assert_sentences(caught.value)
    assert (caught.value.limit, caught.value.allowed, len(model.asked), meter.calls) == ("seconds", 10.0, 1, 1)


def test_without_a_clock_or_a_limit_there_is_no_end_of_time() -> None:
    for meter in (Meter(SpendingLimits(seconds=1.0)), Meter(elapsed=lambda: 1e9)):
        ask(MeteredModel(Free(), meter), "a")
        assert meter.calls == 1


def test_what_is_reserved_is_kept_back_until_it_is_let_go() -> None:
    meter = Meter(SpendingLimits(calls=5), reserved=2)
    asking = MeteredModel(Free(), meter)
    ask(asking, "a", "b", "c")
    with pytest.raises(BudgetError):
        ask(asking, "d")
    meter.reserved = 0
    ask(asking, "d", "e")
    with pytest.raises(BudgetError):
        ask(asking, "f")


def test_a_refused_call_is_not_counted(answers: AnswerStore) -> None:
    asking = MeteredModel(Paid(), Meter(SpendingLimits(calls=1)), answers)
    ask(asking, "a")
    for _ in range(3):
        with pytest.raises(BudgetError):
            ask(asking, "b")
    meter = asking.meter
    assert (meter.calls, meter.rollout_calls, meter.epoch_calls, meter.errors) == (1, 1, 1, 0)
    assert ask(asking, "a") == ["A"]


def test_without_limits_there_are_none(answers: AnswerStore) -> None:
    asking = MeteredModel(Paid(pauses=0), answers=answers)
    assert len(ask(asking, *map(str, range(50)))) == 50


# Runs that are resumed, and other runs


def test_another_runs_answers_are_free(answers: AnswerStore) -> None:
    ask(MeteredModel(Paid(), answers=answers, run="first"), "a", "b")
    model = Paid()
    second = MeteredModel(model, Meter(SpendingLimits(calls=1)), answers, "second")
    assert ask(second, "a", "b", "a", "c") == ["A", "B", "A", "C"]
    assert model.asked == ["rollout c"]
    assert (second.meter.calls, second.meter.reused, second.meter.tokens) == (1, 2, 15)


def test_without_a_run_every_known_answer_is_free_whoever_paid_for_it(answers: AnswerStore) -> None:
    first = MeteredModel(Paid(), answers=answers)
    assert ask(first, "a", "b", "a") == ["A", "B", "A"]
    assert (first.meter.calls, first.meter.reused) == (2, 1)
    # One that was killed has left nothing to claim: the next has a budget of its own.
    second = MeteredModel(Paid(), Meter(SpendingLimits(calls=1)), answers)
    assert second.meter.unclaimed == 0
    assert ask(second, "a", "b", "c", "b") == ["A", "B", "C", "B"]
    assert (second.meter.calls, second.meter.reused) == (1, 3)
    with pytest.raises(BudgetError):
        ask(second, "d")
    run = MeteredModel(Paid(), answers=answers, run="run")
    assert ask(run, "a", "a") == ["A", "A"]
    assert (run.meter.calls, run.meter.reused) == (0, 1)


def test_another_models_answers_are_not_used(answers: AnswerStore) -> None:
    class Newer(Paid):
        name = "paid-2"

    ask(MeteredModel(Paid(), answers=answers), "a")
    model = Newer(str.title)
    assert ask(MeteredModel(model, answers=answers), "abc", "a") == ["Abc", "A"]
    assert len(model.asked) == 2


def test_a_resumed_run_counts_what_it_paid_and_asks_nothing_again(answers: AnswerStore) -> None:
    limits = SpendingLimits(calls=4)
    first = MeteredModel(Paid(), Meter(limits), answers, "run")
    ask(first, "a", "b", "c")
    model = Paid()
    resumed = MeteredModel(model, Meter(limits), answers, "run")
    assert ask(resumed, "a", "b", "a") == ["A", "B", "A"]
    assert (resumed.meter.calls, resumed.meter.tokens, resumed.meter.cost, resumed.meter.reused) == (2, 30, 1.0, 0)
    assert ask(resumed, "c", "d") == ["C", "D"]
    assert (model.asked, resumed.meter.calls) == (["rollout d"], 4)
    with pytest.raises(BudgetError):
        ask(resumed, "e")
    assert ask(resumed, "a", "b", "c", "d") == ["A", "B", "C", "D"]


def test_what_a_run_has_paid_for_is_always_its_own_and_the_budget_holds_for_the_rest(answers: AnswerStore) -> None:
    ask(MeteredModel(Paid(), Meter(), answers, "run"), "a", "b", "c")
    model = Paid()
    resumed = MeteredModel(model, Meter(SpendingLimits(calls=2)), answers, "run")
    with pytest.raises(BudgetError):
        ask(resumed, "d")
    assert ask(resumed, "a", "b", "c", "a") == ["A", "B", "C", "A"]
    assert (resumed.meter.calls, resumed.meter.unclaimed, model.asked) == (3, 0, [])
    with pytest.raises(BudgetError):
        ask(resumed, "d")


def test_calls_that_a_killed_run_has_made_count_before_it_comes_to_them(answers: AnswerStore) -> None:
    ask(MeteredModel(Paid(), Meter(), answers, "run"), "a", "b", "c")
    ask(MeteredModel(Paid(), Meter(), answers, "other"), "x", "y", "z")
    model = Paid()
    resumed = MeteredModel(model, Meter(SpendingLimits(calls=5)), answers, "run")
    assert resumed.meter.unclaimed == 3
    found = ask_at_once(resumed, *"defgabc")
    assert [isinstance(answer, BudgetError) for answer in found] == [False, False, True, True, False, False, False]
    assert (resumed.meter.calls, resumed.meter.unclaimed, len(model.asked)) == (5, 0, 2)


def test_in_an_epoch_they_count_too(answers: AnswerStore) -> None:
    first = MeteredModel(Paid(), Meter(), answers, "run")
    ask(first, "a", "b")
    resumed = MeteredModel(Paid(), Meter(SpendingLimits(calls_per_epoch=3)), answers, "run")
    resumed.meter.begin_epoch()
    assert ask(resumed, "c") == ["C"]
    with pytest.raises(BudgetError) as caught:
        ask(resumed, "d")
    assert_sentences(caught.value)
    assert ask(resumed, "a", "b") == ["A", "B"]
    assert resumed.meter.epoch_calls == 3


def test_what_is_claimed_is_counted_by_what_it_was_for(answers: AnswerStore) -> None:
    async def some(asking: MeteredModel) -> None:
        await asking.roll(rollout("a"))
        await asking.decide(reflection("b"))
        await asking.propose(reflection("c"))

    asyncio.run(some(MeteredModel(Paid(), Meter(), answers, "run")))
    meter = Meter()
    asyncio.run(some(MeteredModel(Paid(), meter, answers, "run")))
    assert (meter.calls, meter.rollout_calls, meter.reflection_calls, meter.epoch_calls) == (3, 1, 2, 3)
    assert (meter.tokens, meter.cost, meter.unclaimed) == (45, 1.5, 0)


def test_a_run_that_knows_what_it_had_spent_counts_only_what_came_after(answers: AnswerStore) -> None:
    first = MeteredModel(Paid(), Meter(), answers, "run")
    ask(first, "a", "b")
    noted = Meter(SpendingLimits(calls=4), calls=2, rollout_calls=2, prompt_tokens=20, completion_tokens=10, cost=1.0)
    ask(first, "c")
    model = Paid()
    resumed = MeteredModel(model, noted, answers, "run")
    assert ask(resumed, "a", "b", "c", "d") == ["A", "B", "C", "D"]
    assert model.asked == ["rollout d"]
    assert (noted.calls, noted.tokens, noted.cost) == (4, 60, 2.0)
    with pytest.raises(BudgetError):
        ask(resumed, "e")


def test_a_meter_that_is_set_later_counts_from_there(answers: AnswerStore) -> None:
    first = MeteredModel(Paid(), Meter(), answers, "run")
    ask(first, "a", "b", "c")
    resumed = MeteredModel(Paid(), Meter(), answers, "run")
    resumed.meter.calls = 2
    resumed.resume()
    assert ask(resumed, "a", "b", "c", "a") == ["A", "B", "C", "A"]
    assert (resumed.meter.calls, resumed.meter.tokens) == (3, 15)


def test_a_call_has_the_number_that_it_had_when_it_was_made(answers: AnswerStore) -> None:
    noted: list[int] = []

    class Slow(Paid):
        async def roll(self, request: RolloutRequest) -> Completion:
            while request.prompt.own == "slow" and len(self.asked) < 3:
                await asyncio.sleep(0)
            return await super().roll(request)

    first = MeteredModel(Slow(), Meter(), answers, "run")

    async def main() -> None:
        slow = asyncio.create_task(first.roll(rollout("slow")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        noted.append(first.meter.calls)
        for entry in "abc":
            await first.roll(rollout(entry))
        await slow

    asyncio.run(main())
    assert (noted, first.meter.calls) == ([1], 4)
    resumed = MeteredModel(Paid(), Meter(calls=1), answers, "run")
    ask(resumed, "slow", "a", "b", "c")
    assert resumed.meter.calls == 4


def test_an_answer_that_another_process_had_first_is_the_one_that_is_used(answers: AnswerStore, tmp_path: Path) -> None:
    class Overtaken(Paid):
        async def roll(self, request: RolloutRequest) -> Completion:
            with AnswerStore(tmp_path / "answers.db") as other:
                asking = MeteredModel(Paid(str.title), answers=other, run="quicker")
                await asking.roll(request)
            return await super().roll(request)

    slower = MeteredModel(Overtaken(), answers=answers, run="slower")
    assert ask(slower, "abc") == ["Abc"]
    assert ask(MeteredModel(Paid(), answers=answers, run="slower"), "abc") == ["Abc"]


# Giving up


def test_giving_up_on_a_question_does_not_take_it_from_others(answers: AnswerStore) -> None:
    model = Paid(pauses=10)
    asking = MeteredModel(model, answers=answers)

    async def main() -> str:
        one, other = (asyncio.create_task(asking.roll(rollout("a"))) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        one.cancel()
        answered = await other
        assert one.cancelled()
        return answered.text

    assert asyncio.run(main()) == "A"
    assert (len(model.asked), asking.meter.calls) == (1, 1)


def test_a_question_that_everybody_gave_up_is_answered_when_it_is_asked_again(answers: AnswerStore) -> None:
    class Stuck(Paid):
        stuck = True

        async def roll(self, request: RolloutRequest) -> Completion:
            if self.stuck:
                await asyncio.Event().wait()
            return await super().roll(request)

    model = Stuck()
    asking = MeteredModel(model, answers=answers)

    async def gives_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asking.roll(rollout("a")), 0.01)

    asyncio.run(gives_up())
    model.stuck = False
    assert ask(asking, "a") == ["A"]
    assert ask(asking, "a") == ["A"]
    assert len(model.asked) == 1


def test_a_failure_that_nobody_waited_for_is_not_kept_for_who_asks_next(
    answers: AnswerStore, caplog: pytest.LogCaptureFixture
) -> None:
    fails = [True]

    def answer(text: str) -> str:
        if fails[0]:
            raise ModelError("away")
        return text.upper()

    asking = MeteredModel(Paid(answer, pauses=5), answers=answers)

    async def main() -> str:
        asked = asyncio.create_task(asking.roll(rollout("a")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asked.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        fails[0] = False
        return (await asking.roll(rollout("a"))).text

    assert asyncio.run(main()) == "A"
    gc.collect()
    assert caplog.records == []
    assert asking.meter.errors == 1


def test_who_settles_waits_for_every_answer_that_is_under_way(answers: AnswerStore) -> None:
    model = Paid(pauses=30)
    asking = MeteredModel(model, answers=answers, run="run")

    async def main() -> None:
        asked = [asyncio.create_task(asking.roll(rollout(entry))) for entry in "abc"]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        await asking.settled()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert len(model.asked) == 3
    assert asking.meter.tokens == 45
    assert answers.paid("run", 0) == 3
    asyncio.run(asking.settled())


def test_an_answer_that_fails_does_not_keep_anybody_from_settling(answers: AnswerStore) -> None:
    def answer(text: str) -> str:
        if text == "a":
            raise ModelError("away")
        return text.upper()

    asking = MeteredModel(Paid(answer, pauses=5), answers=answers, run="run")

    async def main() -> None:
        asked = [asyncio.create_task(asking.roll(rollout(entry))) for entry in "ab"]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        await asking.settled()

    asyncio.run(main())
    assert (asking.meter.errors, answers.paid("run", 0)) == (1, 1)


@pytest.mark.parametrize(("run", "each"), [("run", 400), ("", 20)])
def test_a_run_remembers_which_questions_it_met_and_not_their_answers(
    answers: AnswerStore, run: str, each: int
) -> None:
    """And whoever has nothing to go on with, not even that."""
    asking = MeteredModel(Paid(lambda text: "x" * 2000, pauses=0), answers=answers, run=run)
    # As many as there may be; the model of these tests keeps them all.
    asked: deque[str] = deque(maxlen=10)
    asking.model.asked = asked  # type: ignore[attr-defined]

    async def main(start: int, end: int) -> None:
        for number in range(start, end):
            await asking.roll(rollout(str(number)))

    asyncio.run(main(0, 300))
    tracemalloc.start()
    try:
        asyncio.run(main(300, 1300))
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 1000 * each + 20_000


# Killed


KILLED = """
import asyncio, json, os, signal, sys
from pathlib import Path
from donewhen.models.answer_store import AnswerStore
from donewhen.models.metered import MeteredModel
from donewhen.models.roles import Completion, Decode, Prompt, RolloutRequest, Usage

class Paid:
    name, free = "paid-1", False
    calls = 0
    async def roll(self, request):
        self.calls += 1
        with open(sys.argv[2], "a") as log:
            log.write(request.prompt.own + "\\n")
        if self.calls == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return Completion(request.prompt.own.upper(), Usage(10, 5), cost=0.5)

async def main():
    with AnswerStore(Path(sys.argv[1])) as answers:
        asking = MeteredModel(Paid(), answers=answers, run="run")
        said = []
        for text in "abcdef":
            answer = await asking.roll(RolloutRequest(Prompt("shared", text), {}, {}, Decode(0.1, 0), "en"))
            said.append(answer.text)
        return {"said": said, "calls": asking.meter.calls, "tokens": asking.meter.tokens}
print(json.dumps(asyncio.run(main())))
"""


@pytest.mark.parametrize("fatal", [1, 4, 6])
def test_a_run_that_is_killed_pays_again_for_no_answer_that_it_had(tmp_path: Path, fatal: int) -> None:
    log = tmp_path / "asked"

    def run(fatal: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, str(tmp_path / "answers.db"), str(log), str(fatal)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run(fatal).returncode == -signal.SIGKILL
    assert log.read_text().split() == list("abcdef"[:fatal])
    resumed = run(0)
    assert json.loads(resumed.stdout) == {"said": list("ABCDEF"), "calls": 6, "tokens": 90}, resumed.stderr
    # Only the call that was under way when the process died was made twice.
    assert log.read_text().split() == [*"abcdef"[:fatal], *"abcdef"[fatal - 1 :]]
    again = run(0)
    assert json.loads(again.stdout)["calls"] == 6
    assert len(log.read_text().split()) == 7
