"""A run that is killed, anywhere, and goes on: the same events, the same guidance, no answered call made twice."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from learning_kit import (
    NAME,
    Ran,
    add,
    answer,
    captcha_model,
    cases_in,
    guess,
    learn,
    mentions,
    mission_in,
    obedient,
    row,
    set_aside,
    shown_word,
    small,
    spent_but_time,
    substance,
)

from donewhen.judging.mission import Mission, read_mission
from donewhen.learning.after.replay import replay_run
from donewhen.learning.running.artifacts import write_artifacts
from donewhen.learning.running.events import RunError, RunEvent, read_events
from donewhen.learning.running.recorder import NoWatcher
from donewhen.learning.running.run_folders import (
    EVENTS,
    open_log,
    prepare_resumed_run,
    prepare_run,
    run_state_of,
    unfinished_run,
)
from donewhen.learning.running.run_state import RunState
from donewhen.models.roles import Completion, ReflectionRequest, RolloutRequest, Usage
from donewhen.testing.clock import ManualClock
from donewhen.testing.models import ScriptedJudge
from donewhen_kit import sampled
from sentences import assert_sentences

SWEEP = 6


class Killed(BaseException):
    """What a process does not survive."""


class Killer(NoWatcher):
    """Kills the run as soon as so many events are written."""

    def __init__(self, after: int) -> None:
        self._after = after

    def event(self, event: RunEvent, state: RunState) -> None:
        if event.number == self._after:
            raise Killed


def eventful(request: ReflectionRequest) -> dict[str, Any]:
    """Covers most of what it is shown, with a good operation, a good hypothesis and a bad one."""
    seen = cases_in(request)
    captcha = [case.key for case in seen if "captcha" in case.text]
    timeout = [case.key for case in seen if "timeout" in case.text]
    known = request.prompt.shared
    operations = [] if mentions("timeout") in known or not timeout else [add(mentions("timeout"), timeout)]
    rest = timeout if not operations else []
    hypotheses = [guess(mentions("captcha"), captcha[:-1] or captcha)] if captcha else []
    hypotheses += [guess(mentions("pages"), rest)] if rest else []
    return answer(operations, [*hypotheses, guess("It is pending, so the verdict is fail.", captcha)])


def sets_some_aside(request: ReflectionRequest) -> dict[str, Any]:
    return set_aside(*(case.key for case in cases_in(request) if "riddle" in case.text))


def wavering(request: RolloutRequest) -> Completion:
    """The obedient judge, who is not of one mind about receipts, and counts tokens."""
    said = obedient(request)
    if "receipt1 " in request.prompt.own and request.decode.temperature > 0.5:
        said = "Verdict: fail\nReason: on second thoughts"
    if "receipt2 " in request.prompt.own:
        said = said.replace("Verdict: ", "I think: ") if request.decode.temperature > 0.5 else said
    return Completion(said, Usage(7, 3, 1), cost=0.25)


def eventful_model(**more: Any) -> ScriptedJudge:
    return ScriptedJudge(wavering, sets_some_aside, eventful, **more)


def eventful_tickets() -> list[dict[str, Any]]:
    riddles = [row(f"riddle{at}", "fail", f"riddle{at} of a page") for at in range(3)]
    both = [row("twice", "pass", "twice a page"), row("twice", "fail", "twice a page")]
    return small(9, 7) + shown_word("timeout", 6) + riddles + both


EVENTFUL = """
epochs = 2
concurrency = 3
sampler = [{ temperature = 0.1 }, { temperature = 0.7 }]
[trial]
min_tickets = 2
[reflection]
batch_size = 5
hypothesis_min_unique_ticket_keys = 4
"""
BUDGETS = {
    "none": "",
    "calls": "[budget]\ncalls = 90\n",
    "calls_per_epoch": "[budget]\ncalls_per_epoch = 60\n",
    "tokens_per_epoch": "[budget]\ntokens_per_epoch = 500\n",
    "tokens": "[budget]\ntokens = 800\n",
    "cost": "[budget]\ncost = 20.5\n",
}


def eventful_mission(folder: Path, budget: str = "none") -> Mission:
    # One question at a time where a budget ends it: what is in flight at the end is then the same every time.
    toml = EVENTFUL if budget == "none" else EVENTFUL.replace("concurrency = 3", "concurrency = 1")
    return mission_in(folder, eventful_tickets(), toml + BUDGETS[budget])


def whole(folder: Path, budget: str = "none", **more: Any) -> tuple[Ran, ScriptedJudge]:
    model = eventful_model(**more)
    return learn(eventful_mission(folder, budget), model), model


def same(resumed: Ran, run: Ran) -> None:
    assert substance(resumed.events) == substance(run.events)
    assert spent_but_time(resumed.events) == spent_but_time(run.events)
    assert resumed.state.guidance.as_file() == run.state.guidance.as_file()
    assert resumed.state == run.state


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_eventful_run_has_every_kind_of_event_that_its_budget_allows(tmp_path: Path, budget: str) -> None:
    run, _ = whole(tmp_path / "m", budget)
    kinds = {event.type for event in run.events}
    always = {"run_started", "evaluated", "epoch_started", "rolled", "selected", "decided", "run_finished", "queued"}
    assert always <= kinds
    if budget == "none":
        assert kinds == always | {
            *(
                "proposed",
                "closed",
                "supported",
                "trialled",
                "guidance_changed",
                "fated",
                "credited",
                "epoch_ended",
                "assessed",
            )
        }
    else:
        assert run.of("budget_hit")[0]["limit"] == budget


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_run_killed_after_any_event_ends_like_one_that_was_not(tmp_path: Path, budget: str) -> None:
    run, _ = whole(tmp_path / "m", budget)
    hit = {event.number for event in run.events if event.type in ("budget_hit", "epoch_ended")}
    near = {number + off for number in hit for off in (-2, -1, 0, 1, 2)}
    moments = range(1, len(run.events))
    every = [after for after in moments if budget == "none" or not after % 4 or after in near]
    for after in sorted({*sampled(every, SWEEP), *hit} & {*moments}):
        mission = eventful_mission(tmp_path / f"m{after}", budget)
        first, second = eventful_model(), eventful_model()
        with pytest.raises(Killed):
            learn(mission, first, watcher=Killer(after))
        folder = unfinished_run(mission)
        assert folder is not None
        assert len(read_events(folder / EVENTS)) == after
        resumed = learn(mission, second, resume=folder)
        same(resumed, run)
        assert first.calls + second.calls == run.state.spent["calls"], f"killed after event {after}"
        shutil.rmtree(mission.folder)


@pytest.mark.parametrize("torn", [b"", b'{"at":"2026-01-01T00:00:00Z","data":{"ca'])
def test_a_run_whose_last_line_is_torn_goes_on_from_the_line_before(tmp_path: Path, torn: bytes) -> None:
    run, _ = whole(tmp_path / "m")
    path = run.folder / EVENTS
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in sampled(range(1, len(lines)), SWEEP):
        path.write_bytes(b"".join(lines[:kept]) + torn)
        model = eventful_model()
        resumed = learn(run.mission, model, resume=run.folder)
        same(resumed, run)
        # All answers are known: not one is asked for again.
        assert model.calls == 0
        assert path.read_bytes().splitlines(keepends=True)[:kept] == lines[:kept]


@pytest.mark.parametrize("budget", ["none", "calls", "calls_per_epoch", "tokens_per_epoch"])
def test_a_run_killed_at_any_call_ends_like_one_that_was_not(tmp_path: Path, budget: str) -> None:
    run, whole_model = whole(tmp_path / "m", budget)
    total = whole_model.calls
    for at in sampled(range(1, total + 1, 11), SWEEP):
        mission = eventful_mission(tmp_path / f"m{at}", budget)
        first, second = eventful_model(), eventful_model()
        with pytest.raises(Killed):
            learn(mission, dying(first, at))
        folder = unfinished_run(mission)
        assert folder is not None
        resumed = learn(mission, second, resume=folder)
        assert substance(resumed.events) == substance(run.events)
        assert spent_but_time(resumed.events)[-1] == spent_but_time(run.events)[-1]
        # Whatever was in flight has no answer, and is asked again; what was answered is not.
        assert total <= first.calls + second.calls <= total + 3
        shutil.rmtree(mission.folder)


class dying:
    """A model whose process is killed while it waits for the nth answer."""

    def __init__(self, model: ScriptedJudge, at: int) -> None:
        self.name, self.free = model.name, model.free
        self._model = model
        self._left = at

    async def roll(self, request: RolloutRequest) -> Completion:
        return await self._unless_dead(self._model.roll, request)

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._unless_dead(self._model.decide, request)

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._unless_dead(self._model.propose, request)

    async def _unless_dead(self, ask: Callable[[Any], Any], request: Any) -> Completion:
        answered: Completion = await ask(request)
        self._left -= 1
        if self._left <= 0:
            raise Killed
        return answered


def hesitant(seed: int) -> ScriptedJudge:
    """A model whose answers take their time, each another one."""
    dice = random.Random(seed)

    async def roll(request: RolloutRequest) -> Completion:
        for _ in range(dice.randrange(6)):
            await asyncio.sleep(0)
        return wavering(request)

    return ScriptedJudge(roll, sets_some_aside, eventful)  # type: ignore[arg-type]


def test_the_order_in_which_answers_come_changes_nothing(tmp_path: Path) -> None:
    run, _ = whole(tmp_path / "m")
    for seed in range(3):
        other = learn(eventful_mission(tmp_path / str(seed)), hesitant(seed))
        same(other, run)


@pytest.mark.parametrize("calls", [60, 85])
def test_a_run_that_is_killed_with_many_questions_in_flight_keeps_its_budget(tmp_path: Path, calls: int) -> None:
    toml = EVENTFUL.replace("concurrency = 3", "concurrency = 8") + f"[budget]\ncalls = {calls}\n"
    for at in range(3, calls - 20, 13):
        mission = mission_in(tmp_path / str(at), eventful_tickets(), toml)
        with pytest.raises(Killed):
            learn(mission, dying(hesitant(at), at))
        second = hesitant(at + 1)
        resumed = learn(mission, second, resume=unfinished_run(mission))
        with closing(sqlite3.connect(mission.folder / "runs" / "answers.sqlite")) as kept:
            [(answered,)] = kept.execute("select count(*) from answers").fetchall()
        assert answered <= calls
        assert resumed.state.spent["calls"] <= calls


def test_a_run_can_be_killed_again_and_again(tmp_path: Path) -> None:
    run, _ = whole(tmp_path / "m")
    mission = eventful_mission(tmp_path / "again")
    folder, calls = None, 0
    for after in sampled(range(1, len(run.events)), SWEEP):
        model = eventful_model()
        with pytest.raises(Killed):
            learn(mission, model, watcher=Killer(after), resume=folder)
        calls += model.calls
        folder = unfinished_run(mission)
    model = eventful_model()
    resumed = learn(mission, model, resume=folder)
    same(resumed, run)
    assert calls + model.calls == run.state.spent["calls"]


def test_a_model_that_costs_nothing_is_asked_again_and_the_count_stays_the_same(tmp_path: Path) -> None:
    run, _ = whole(tmp_path / "m", free=True)
    assert not (tmp_path / "m" / "runs" / "answers.sqlite").stat().st_size > 50_000
    for after in sampled(range(1, len(run.events)), SWEEP):
        mission = eventful_mission(tmp_path / f"m{after}")
        with pytest.raises(Killed):
            learn(mission, eventful_model(free=True), watcher=Killer(after))
        resumed = learn(mission, eventful_model(free=True), resume=unfinished_run(mission))
        assert substance(resumed.events) == substance(run.events), f"killed after event {after}"
        assert spent_but_time(resumed.events) == spent_but_time(run.events), f"killed after event {after}"
        shutil.rmtree(mission.folder)


def test_a_finished_run_that_is_resumed_asks_nobody_and_writes_nothing(tmp_path: Path) -> None:
    run, _ = whole(tmp_path / "m")
    before = (run.folder / EVENTS).read_bytes()
    model = eventful_model()
    resumed = learn(run.mission, model, resume=run.folder)
    same(resumed, run)
    assert model.calls == 0
    assert (run.folder / EVENTS).read_bytes() == before


def test_seconds_of_both_halves_count_together(tmp_path: Path) -> None:
    clock = ManualClock()

    def slow(request: RolloutRequest) -> str:
        clock.advance(1.0)
        return obedient(request)

    mission = mission_in(tmp_path / "m", small(), EVENTFUL, clock=clock)
    with pytest.raises(Killed):
        learn(mission, ScriptedJudge(slow), watcher=Killer(4))
    folder = unfinished_run(mission)
    assert folder is not None
    before = run_state_of(folder).spent["seconds"]
    clock.advance(3600)
    resumed = learn(mission, ScriptedJudge(slow), resume=folder)
    # The hour in which nothing ran is not counted.
    assert before > 0
    assert resumed.state.spent["seconds"] == resumed.state.spent["rollout_calls"]


def test_a_run_that_was_killed_before_its_first_event_has_not_begun(tmp_path: Path) -> None:
    mission = mission_in(tmp_path / "m", small())
    prepared = prepare_run(mission, captcha_model())
    open_log(prepared).close()
    assert unfinished_run(mission) is None
    with pytest.raises(RunError) as caught:
        prepare_resumed_run(mission, captcha_model(), prepared.folder)
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: _replaced(folder / "tickets.jsonl", "\n", " \n"), "tickets"),
        (lambda folder: _replaced(folder / "tickets.jsonl", "captcha3 shows", "captcha3 has"), "tickets"),
        (lambda folder: _replaced(folder / "mission.toml", f'"{NAME}"', f'"{NAME}"\nverdict.pass = "ok"'), "language"),
    ],
)
def test_a_run_does_not_go_on_with_other_tickets_or_other_words(
    tmp_path: Path, change: Callable[[Path], object], named: str
) -> None:
    mission = eventful_mission(tmp_path / "m")
    with pytest.raises(Killed):
        learn(mission, eventful_model(), watcher=Killer(6))
    change(mission.folder)
    mission = read_mission(mission.folder, clock=mission.clock)
    with pytest.raises(RunError) as caught:
        learn(mission, eventful_model(), resume=unfinished_run(mission))
    assert_sentences(caught.value)


def test_a_run_does_not_go_on_with_another_model(tmp_path: Path) -> None:
    mission = eventful_mission(tmp_path / "m")
    with pytest.raises(Killed):
        learn(mission, eventful_model(), watcher=Killer(6))
    with pytest.raises(RunError) as caught:
        learn(mission, eventful_model(name="scripted/2"), resume=unfinished_run(mission))
    assert_sentences(caught.value)


def test_a_run_goes_on_with_the_settings_that_it_began_with(tmp_path: Path) -> None:
    run, _ = whole(tmp_path / "m")
    mission = eventful_mission(tmp_path / "other")
    with pytest.raises(Killed):
        learn(mission, eventful_model(), watcher=Killer(6))
    _replaced(mission.folder / "mission.toml", "batch_size = 5", "batch_size = 3")
    changed = read_mission(mission.folder, clock=mission.clock)
    assert changed.settings.reflection.batch_size == 3
    same(learn(changed, eventful_model(), resume=unfinished_run(changed)), run)


OVERRIDE = "def strict(ticket, vote):\n    return 'fail' if 'riddle' in ticket.text else None\n"


def test_a_run_does_not_go_on_with_overrides_that_say_something_else(tmp_path: Path) -> None:
    tmp_path.joinpath("m").mkdir()
    (tmp_path / "m" / "own.py").write_text(OVERRIDE)
    mission = mission_in(tmp_path / "m", eventful_tickets(), f'overrides = ["own.py:strict"]\n{EVENTFUL}')
    with pytest.raises(Killed):
        learn(mission, eventful_model(), watcher=Killer(6))
    folder = unfinished_run(mission)
    assert folder is not None
    # What an override decides is no mistake, and nothing that can be learned from.
    asked = next(event for event in read_events(folder / EVENTS) if event.type == "selected")
    assert not any("riddle" in row["ticket_key"] for row in asked.data["candidates"])
    (tmp_path / "m" / "own.py").write_text(OVERRIDE.replace("riddle", "receipt"))
    mission = read_mission(mission.folder, clock=mission.clock)
    with pytest.raises(RunError) as caught:
        learn(mission, eventful_model(), resume=folder)
    assert_sentences(caught.value)


def _replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_events_that_do_not_belong_together_stop_a_resumed_run(tmp_path: Path) -> None:
    run, _ = whole(tmp_path / "m")
    path = run.folder / EVENTS
    lines = path.read_bytes().splitlines(keepends=True)
    closed = next(at for at, event in enumerate(run.events) if event.type == "closed")
    assert b'"covered":["' in lines[closed]
    path.write_bytes(b"".join(lines[:closed]) + lines[closed].replace(b'"covered":["', b'"covered":["x'))
    with pytest.raises(RunError) as caught:
        learn(run.mission, eventful_model(), resume=run.folder)
    assert str(closed + 1) in str(caught.value)
    assert_sentences(caught.value)
    rolled = next(at for at, event in enumerate(run.events) if event.type == "rolled")
    other = next(at for at, event in enumerate(run.events) if event.type == "closed")
    number = f'"number":{rolled + 1},'.encode()
    path.write_bytes(b"".join(lines[:rolled]) + re.sub(rb'"number":\d+,', number, lines[other]))
    with pytest.raises(RunError) as caught:
        learn(run.mission, eventful_model(), resume=run.folder)
    assert str(rolled + 1) in str(caught.value)
    assert_sentences(caught.value)


def test_a_second_run_pays_for_nothing_that_the_first_has_paid_for(tmp_path: Path) -> None:
    run, _ = whole(tmp_path / "m")
    model = eventful_model()
    again = learn(run.mission, model)
    assert again.folder != run.folder
    assert model.calls == 0
    assert again.state.spent["calls"] == 0
    assert again.state.spent["reused"] == run.state.spent["calls"]
    assert substance(again.events)[1:] != []
    assert again.rules == run.rules


def test_what_a_resumed_run_leaves_behind_replays(tmp_path: Path) -> None:
    run, _ = whole(tmp_path / "m")
    half = len(run.events) * 3 // 4
    path = run.folder / EVENTS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:half]))
    # The artifacts of the half that there is, and then those of the whole.
    events = read_events(path)
    write_artifacts(run.folder, events, run_state_of(run.folder), run.mission.clock)
    assert replay_run(run.folder).differences == ()
    resumed = learn(run.mission, eventful_model(), resume=run.folder)
    write_artifacts(run.folder, resumed.events, resumed.state, run.mission.clock)
    found = replay_run(run.folder)
    assert found.differences == ()
    assert found.finished
    assert found.guidance == run.state.guidance
