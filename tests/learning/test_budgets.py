"""Hard caps over judging and reflecting together, exact to the call."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from learning_kit import (
    ONE_VOTE,
    RULES,
    TRIAL_OFF,
    Ran,
    answer,
    captcha_model,
    cases_in,
    learn,
    mentions,
    mission_in,
    obedient,
    says_captcha,
    small,
)

from donewhen.judging.judge import Judge
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.running.events import RunError
from donewhen.learning.running.run_folders import prepare_run
from donewhen.models.metered import BudgetError, Meter, MeteredModel, SpendingLimits
from donewhen.models.roles import Completion, ReflectionRequest, RolloutRequest, Usage
from donewhen.testing.clock import ManualClock
from donewhen.testing.models import ScriptedJudge
from sentences import assert_sentences

# 24 tickets: 12 to learn from, 6 to try on, 6 held out; one vote each.
BASE = "epochs = 2\n" + ONE_VOTE + "[trial]\nmin_tickets = 2\n[reflection]\nbatch_size = 4\n"


def run_with(folder: Path, budget: str, *, concurrency: int = 1, clock: ManualClock | None = None, **more: Any) -> Ran:
    toml = f"concurrency = {concurrency}\n{BASE}[budget]\n{budget}\n"
    model = more.pop("model", None) or captcha_model(**more)
    run = learn(mission_in(folder, small(), toml, clock=clock), model)
    assert model.calls == run.state.spent["calls"]
    assert len(model.rollouts) == run.state.spent["rollout_calls"]
    assert len(model.decisions) + len(model.proposals) == run.state.spent["reflection_calls"]
    return run


def limits_hit(run: Ran) -> list[str]:
    return [event["limit"] for event in run.of("budget_hit")]


def one_fate_each(run: Ran) -> None:
    """Whatever the budget did, nobody who was selected is missing."""
    for selected in run.of("selected"):
        epoch = run.state.epochs[selected["epoch"] - 1]
        assert epoch.covered + epoch.no_evidence + epoch.exhausted == len(selected["candidates"])


@pytest.mark.parametrize("concurrency", [1, 8])
def test_no_call_is_made_beyond_the_budget_and_the_held_out_tickets_are_judged_all_the_same(
    tmp_path: Path, concurrency: int
) -> None:
    whole = run_with(tmp_path / "whole", "calls = 1000", concurrency=concurrency)
    needed = int(whole.state.spent["calls"])
    held_out = len(whole.state.evaluations["before"])
    assert limits_hit(whole) == []
    for calls in range(2 * held_out + 1, needed + 1):
        run = run_with(tmp_path / str(calls), f"calls = {calls}", concurrency=concurrency)
        spent = run.state.spent["calls"]
        assert spent <= calls
        assert len(run.state.evaluations["after"]) == held_out
        one_fate_each(run)
        if calls < needed:
            assert limits_hit(run) == ["calls"]
            assert run.state.status == "budget_exhausted"
            # What was kept back for the end is all that was left when it was hit.
            hit = next(event for event in run.events if event.type == "budget_hit")
            assert hit.spent["calls"] == calls - held_out
            assert spent == (calls if run.of("guidance_changed") else calls - held_out)
        else:
            assert limits_hit(run) == []
            assert spent == needed


def test_a_budget_that_cannot_pay_for_the_held_out_tickets_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), f"{BASE}[budget]\ncalls = 8\n")
    model = captcha_model()
    with pytest.raises(RunError) as caught:
        prepare_run(mission, model)
    assert_sentences(caught.value)
    assert "takes 12" in str(caught.value)
    assert model.calls == 0
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


@pytest.mark.parametrize("allowed", [3, 16, 17, 18, 25])
def test_no_epoch_makes_more_calls_than_it_may(tmp_path: Path, allowed: int) -> None:
    run = run_with(tmp_path, f"calls_per_epoch = {allowed}")
    began: dict[int, float] = {}
    for event in run.events:
        if event.type == "epoch_started":
            began[event.data["epoch"]] = event.spent["calls"]
        if event.type in ("budget_hit", "epoch_ended", "selected", "proposed", "rolled"):
            assert event.spent["calls"] - began[max(began)] <= allowed
        if event.type == "budget_hit":
            assert event.data["limit"] == "calls_per_epoch"
            assert event.spent["calls"] - began[max(began)] == allowed
    assert "calls_per_epoch" in limits_hit(run)
    # It is not the run's budget: the run goes on, and ends.
    assert run.state.status == "finished"
    assert set(run.state.evaluations) == {"before", "after"}
    one_fate_each(run)


def test_an_epoch_whose_budget_does_not_last_for_judging_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    toml = BASE.replace("epochs = 2", "epochs = 4") + "[budget]\ncalls_per_epoch = 10\n"
    model = captcha_model()
    run = learn(mission_in(tmp_path, small(), toml), model)
    # Twelve tickets to judge, ten calls an epoch: the second epoch has the answers of the first.
    assert [epoch.rolled for epoch in run.state.epochs][:2] == [10, 12]
    assert [epoch.selected for epoch in run.state.epochs][:2] == [False, True]
    assert len(model.decisions) >= 1


def test_the_held_out_tickets_belong_to_no_epoch(tmp_path: Path) -> None:
    run = run_with(tmp_path, "calls_per_epoch = 4")
    assert len(run.state.evaluations["before"]) > 4
    assert run.of("epoch_started")


@pytest.mark.parametrize("allowed", [0, 1, 2, 3, 4, 5])
def test_no_epoch_reflects_more_often_than_it_may(tmp_path: Path, allowed: int) -> None:
    toml = f"{BASE}max_calls_per_epoch = {allowed}\n"
    model = ScriptedJudge(obedient, None, lambda request: answer())
    run = learn(mission_in(tmp_path, small(), toml), model)
    assert [epoch.reflection_calls for epoch in run.state.epochs] == [allowed, allowed]
    # The second epoch asks some of the same questions; those are answered already.
    assert len(model.decisions) + len(model.proposals) <= 2 * allowed
    one_fate_each(run)
    assert limits_hit(run) == []
    if allowed < 2:
        notes = {row["uncertainty_note"] for row in run.state.queue if row["reason_code"] == "budget_exhausted"}
        assert_sentences(sorted(notes))


def priced(request: RolloutRequest) -> Completion:
    return Completion(obedient(request), Usage(60, 40, 10), cost=0.5)


def priced_answer(request: ReflectionRequest) -> Completion:
    return Completion(json.dumps(says_captcha(request)), Usage(500, 500), cost=5.0)


@pytest.mark.parametrize(("budget", "limit"), [("tokens = 2500", "tokens"), ("cost = 12.5", "cost")])
def test_after_the_call_that_reaches_it_no_further_one_is_made(tmp_path: Path, budget: str, limit: str) -> None:
    run = run_with(tmp_path, budget, model=ScriptedJudge(priced, None, priced_answer))
    hits = limits_hit(run)
    # The held-out tickets can't be judged either: there is nothing left to pay with.
    assert set(hits) == {limit}
    assert run.state.status == "budget_exhausted"
    spent = run.state.spent
    total = spent["prompt_tokens"] + spent["completion_tokens"] if limit == "tokens" else spent["cost"]
    allowed = float(budget.split(" = ")[1])
    last = {"tokens": (100, 1000), "cost": (0.5, 5.0)}[limit]
    assert allowed <= total < allowed + max(last)
    one_fate_each(run)


def test_judging_and_reflecting_draw_on_one_budget(tmp_path: Path) -> None:
    # 6 held out, 12 judged, a decision and a proposal, and 6 kept back: the next question is one too many.
    run = run_with(tmp_path, "calls = 26")
    assert run.state.spent["reflection_calls"] == 2
    assert limits_hit(run) == ["calls"]
    assert Counter(row["reason_code"] for row in run.state.queue)["budget_exhausted"] > 0
    assert_sentences(
        sorted({row["uncertainty_note"] for row in run.state.queue if row["reason_code"] == "budget_exhausted"})
    )


@pytest.mark.parametrize("allowed", [3, 7, 12, 21])
def test_time_is_looked_at_before_every_call(tmp_path: Path, allowed: int) -> None:
    clock = ManualClock()

    def slow(request: RolloutRequest) -> str:
        clock.advance(1.0)
        return obedient(request)

    def slower(request: ReflectionRequest) -> dict[str, Any]:
        clock.advance(2.0)
        return says_captcha(request)

    run = run_with(tmp_path, f"seconds = {allowed}", clock=clock, model=ScriptedJudge(slow, None, slower))
    assert limits_hit(run)[0] == "seconds"
    assert run.state.status == "budget_exhausted"
    assert allowed <= run.state.spent["seconds"] <= allowed + 1
    one_fate_each(run)


def test_what_is_known_costs_nothing(tmp_path: Path) -> None:
    """Two tickets that read alike are one question."""
    tickets = [ticket | {"group_id": f"{ticket['group_id']}{at}"} for ticket in small(6, 6) for at in "ab"]
    model = captcha_model()
    run = learn(mission_in(tmp_path, tickets, "epochs = 1\n" + ONE_VOTE + TRIAL_OFF), model)
    texts = {request.prompt.own for request in model.rollouts if mentions("captcha") not in request.prompt.shared}
    assert len(texts) <= 12
    assert run.state.spent["calls"] == model.calls
    assert sum(epoch.rolled for epoch in run.state.epochs) > len(texts) / 2


def test_a_run_without_a_budget_has_none(tmp_path: Path) -> None:
    run = learn(mission_in(tmp_path, small(), BASE), captcha_model())
    assert run.rules == RULES | {"G1": mentions("captcha")}
    assert limits_hit(run) == []


# The meter by itself


def test_the_meter_lets_the_last_allowed_call_through_and_no_other() -> None:
    meter = Meter(SpendingLimits(calls=5), reserved=2)
    for _ in range(3):
        meter.admit("rollout")
    with pytest.raises(BudgetError) as caught:
        meter.admit("ops")
    assert (caught.value.limit, caught.value.allowed, meter.calls) == ("calls", 5, 3)
    meter.reserved = 0
    meter.admit("decision")
    meter.admit("ops")
    with pytest.raises(BudgetError):
        meter.admit("rollout")
    assert (meter.rollout_calls, meter.reflection_calls) == (3, 2)


def test_calls_that_were_paid_for_and_not_yet_claimed_leave_less_for_others() -> None:
    meter = Meter(SpendingLimits(calls=5), calls=2, unclaimed=2)
    meter.admit("rollout")
    with pytest.raises(BudgetError):
        meter.admit("rollout")
    meter.claim("rollout")
    meter.claim("ops")
    assert (meter.calls, meter.unclaimed) == (5, 0)
    with pytest.raises(BudgetError):
        meter.admit("rollout")


def test_an_epochs_calls_are_counted_from_its_beginning() -> None:
    meter = Meter(SpendingLimits(calls_per_epoch=1))
    for _ in range(3):
        meter.admit("rollout")
    meter.begin_epoch()
    meter.admit("rollout")
    with pytest.raises(BudgetError) as caught:
        meter.admit("rollout")
    assert_sentences(caught.value)
    meter.begin_epoch()
    meter.admit("rollout")
    meter.end_epoch()
    meter.admit("rollout")


def test_answers_under_way_when_the_budget_ends_are_waited_for(tmp_path: Path) -> None:
    async def slow(request: RolloutRequest) -> Completion:
        for _ in range(20):
            await asyncio.sleep(0)
        return priced(request)

    model = ScriptedJudge(slow, None, priced_answer)  # type: ignore[arg-type]
    run = run_with(tmp_path, "calls = 20", concurrency=8, model=model)
    hit = next(event for event in run.events if event.type == "budget_hit")
    assert hit.spent["prompt_tokens"] == 60 * hit.spent["rollout_calls"]
    assert run.state.spent["prompt_tokens"] == 60 * run.state.spent["rollout_calls"]


def test_more_in_flight_than_the_budget_has_left_is_never_asked(tmp_path: Path) -> None:
    asked: list[str] = []

    async def slow(request: RolloutRequest) -> str:
        asked.append(request.prompt.own)
        await asyncio.sleep(0)
        return obedient(request)

    async def flood() -> int:
        model = ScriptedJudge(slow)  # type: ignore[arg-type]
        asking = MeteredModel(model, Meter(SpendingLimits(calls=7)))
        mission = mission_in(tmp_path, small(), "concurrency = 64\n")
        book = TicketReader(mission)
        judge = Judge(mission, mission.guidance(), asking)
        found = await asyncio.gather(
            *(judge.judged(book.ticket(member.key)) for member in book.members), return_exceptions=True
        )
        assert any(isinstance(item, BudgetError) for item in found)
        return asking.meter.calls

    assert asyncio.run(flood()) == 7
    assert len(asked) == 7


def test_every_case_in_the_prompt_is_one_that_the_model_was_shown(tmp_path: Path) -> None:
    model = captcha_model()
    learn(mission_in(tmp_path, small(), BASE), model)
    assert all(cases_in(request) for request in (*model.decisions, *model.proposals))
