"""A model is asked once for all samplers to which it would give the same answer; every sampler still has its vote."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning_kit import Ran, learn, substance

from donewhen.demo.example_mission import make_mission
from donewhen.judging.judge import Judge, calls_per_ticket
from donewhen.judging.mission import Mission, read_mission
from donewhen.learning.running.events import RunEvent
from donewhen.learning.running.run_folders import EVENTS
from donewhen.models.contrast import Contrast
from donewhen.models.metered import MeteredModel
from donewhen.models.roles import (
    Case,
    Completion,
    Decode,
    Prompt,
    ReflectionRequest,
    RolloutRequest,
    distinct_decode,
)


class Counted(Contrast):
    """Counts the questions about each ticket under each guidance."""

    def __init__(self) -> None:
        super().__init__()
        self.decodes: Counter[Decode] = Counter()

    async def roll(self, request: RolloutRequest) -> Completion:
        self.decodes[request.decode] += 1
        return await super().roll(request)


class AskedEachTime:
    """The same model as earlier versions asked it: once for every sampler."""

    name, free, in_points = Contrast.name, Contrast.free, Contrast.in_points

    def __init__(self) -> None:
        self._contrast = Contrast()

    async def roll(self, request: RolloutRequest) -> Completion:
        return await self._contrast.roll(request)

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._contrast.decide(request)

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._contrast.propose(request)

    def study(self, cases: Sequence[Case]) -> None:
        self._contrast.study(cases)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asked") / "reports"
    make_mission(folder, 160)
    (folder / "mission.toml").write_text((folder / "mission.toml").read_text() + "\nepochs = 2\n")
    return folder


def copy_of(folder: Path, place: Path) -> Mission:
    return read_mission(Path(shutil.copytree(folder, place)))


def without_counts(events: Sequence[RunEvent]) -> list[tuple[str, bytes]]:
    """Events without the number of calls that an epoch took."""
    return [
        (event.type, b"") if event.type == "epoch_ended" else row
        for event, row in zip(events, substance(events), strict=True)
    ]


def test_two_of_the_three_default_samplers_are_one_question_to_the_contrast_model(folder: Path) -> None:
    mission = read_mission(folder)
    model = Counted()
    ticket = next(mission.tickets())
    verdict = Judge(mission, mission.guidance(), MeteredModel(model)).judge(ticket)
    assert len(verdict.answers) == len(mission.decodes) == 3
    assert model.decodes == {Decode(0.1): 1, Decode(0.7): 1}
    assert calls_per_ticket(mission, model) == 2
    assert calls_per_ticket(mission, AskedEachTime()) == 3


def test_the_verdicts_are_those_of_a_model_that_is_asked_each_time(folder: Path) -> None:
    mission = read_mission(folder)
    once, each = Judge(mission, mission.guidance(), Contrast()), Judge(mission, mission.guidance(), AskedEachTime())
    tickets = list(mission.tickets())
    assert list(once.judge_all(tickets)) == list(each.judge_all(tickets))


@given(st.floats(0, 2), st.integers(0, 5))
def test_all_decodes_that_are_called_the_same_get_the_same_answer(temperature: float, sample: int) -> None:
    rules = {"G0": "Unless a rule says otherwise, the verdict is pass.", "G1": 'When "x" occurs, the verdict is fail.'}
    model, decode = Contrast(), Decode(temperature, sample)
    request = RolloutRequest(Prompt("", ""), rules, {"text": "x"}, decode, "en")
    answers = [asyncio.run(model.roll(request._replace(decode=asked))) for asked in (decode, model.same_as(decode))]
    assert answers[0] == answers[1]
    assert distinct_decode(AskedEachTime(), decode) == decode


def test_a_run_learns_the_same_with_a_third_fewer_calls(folder: Path, tmp_path: Path) -> None:
    each = learn(copy_of(folder, tmp_path / "each"), AskedEachTime())
    model = Counted()
    once = learn(copy_of(folder, tmp_path / "once"), model)
    assert without_counts(once.events) == without_counts(each.events)
    assert once.state.guidance.hash == each.state.guidance.hash
    rolled = int(each.events[-1].spent["rollout_calls"])
    assert once.events[-1].spent["rollout_calls"] == rolled * 2 // 3 == sum(model.decodes.values())
    assert model.decodes.keys() == {Decode(0.1), Decode(0.7)}


@pytest.mark.parametrize("kept", [0.2, 0.6, 0.95])
def test_a_run_that_an_earlier_version_began_goes_on(folder: Path, tmp_path: Path, kept: float) -> None:
    whole: Ran = learn(copy_of(folder, tmp_path / "whole"), AskedEachTime())
    mission = copy_of(tmp_path / "whole", tmp_path / "cut")
    run = mission.folder / whole.folder.relative_to(whole.mission.folder)
    lines = (run / EVENTS).read_bytes().splitlines(keepends=True)
    (run / EVENTS).write_bytes(b"".join(lines[: int(len(lines) * kept)]))
    resumed = learn(mission, Contrast(), resume=run)
    assert without_counts(resumed.events) == without_counts(whole.events)
    assert resumed.state.guidance.hash == whole.state.guidance.hash
    assert resumed.events[-1].spent["calls"] < whole.events[-1].spent["calls"]
