"""A program that judges a stream of tickets gets the verdicts, counts and exit status of `donewhen judge`."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from donewhen.foundation.errors import ExitCode
from donewhen.judging.guidance import GuidanceChange, GuidanceError
from donewhen.judging.guidance_choice import choose_guidance, guidance_of_step
from donewhen.judging.mission import Mission, read_mission
from donewhen.judging.mission_budget import open_metered_model
from donewhen.judging.mission_options import with_options
from donewhen.judging.mission_settings import Trial
from donewhen.judging.ticket import TicketError
from donewhen.judging.ticket_input import tickets_in_files, tickets_of_texts
from donewhen.judging.ticket_judging import VerdictCounts, judge_tickets
from donewhen.judging.verdict import Verdict
from donewhen.models.contrast import Contrast, default_rule
from donewhen.models.metered import BudgetError
from donewhen.models.roles import Completion
from donewhen.testing.models import ScriptedJudge

Run = Callable[..., subprocess.CompletedProcess[str]]
GOOD = '{"group_id": "A", "text": "the receipt", "label": "pass"}\n{"group_id": "B", "text": "none", "label": "fail"}\n'


@pytest.fixture
def mission(tmp_path: Path) -> Mission:
    folder = tmp_path / "mission"
    folder.mkdir()
    (folder / "mission.toml").write_text('mission = "m"\n')
    rules = {"G0": default_rule("fail", "en"), "G1": 'When "receipt" occurs, the verdict is pass.'}
    (folder / "initial_guidance.json").write_text(json.dumps(rules))
    return read_mission(folder)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (GOOD, ExitCode.PASS),
        ("", ExitCode.USAGE),
        (GOOD + "no json\n", ExitCode.USAGE),
        (GOOD + GOOD, ExitCode.USAGE),
    ],
    ids=["good", "nothing", "bad line", "twice"],
)
def test_verdicts_counts_and_status_are_those_of_the_verb(
    mission: Mission, donewhen: Run, content: str, status: ExitCode
) -> None:
    path = mission.folder / "new.jsonl"
    path.write_text(content)
    verdicts: list[Verdict | TicketError] = []
    with open_metered_model(mission, Contrast()) as metered:
        tickets = tickets_in_files([path], mission.name)
        counts = judge_tickets(mission, mission.guidance(), metered, tickets, verdicts.append)
    assert counts.exit_code is status
    done = donewhen(["judge", str(mission.folder), str(path), "--json"], mission.folder)
    assert done.returncode == status
    if counts.seen:
        data = json.loads(done.stdout)["data"]
        assert {name: data[name] for name in counts.as_dict()} == counts.as_dict()
        good = [verdict.as_dict() for verdict in verdicts if isinstance(verdict, Verdict)]
        assert data["verdicts"] == json.loads(json.dumps(good))


def test_a_ticket_without_an_answer_is_no_pass(mission: Mission) -> None:
    (mission.folder / "a.md").write_text("anything")
    model = ScriptedJudge(lambda _: Completion("I would rather not say."), name="mute/1", free=True)
    with open_metered_model(mission, model) as metered:
        tickets = tickets_of_texts([mission.folder / "a.md"], mission.name)
        counts = judge_tickets(mission, mission.guidance(), metered, tickets)
    assert (counts.unjudged, counts.exit_code) == (1, ExitCode.GATE_FAILED)


def test_a_budget_ends_it_and_the_counts_say_how_far_it_came(mission: Mission) -> None:
    limited = with_options(mission, calls=4)
    lines = "".join(
        json.dumps({"group_id": f"T{number}", "text": f"the receipt {number}"}) + "\n" for number in range(9)
    )
    (mission.folder / "new.jsonl").write_text(lines)
    model = ScriptedJudge(lambda _: Completion("Verdict: pass\nReason: it is there"), name="paid/1", free=False)
    counts = VerdictCounts()
    with open_metered_model(limited, model) as metered, pytest.raises(BudgetError) as caught:
        tickets = tickets_in_files([mission.folder / "new.jsonl"], mission.name)
        judge_tickets(limited, mission.guidance(), metered, tickets, counts=counts)
    assert caught.value.exit_code is ExitCode.GATE_FAILED
    assert counts.judged <= 1
    assert metered.meter.calls == 4


def test_it_can_be_called_inside_a_running_event_loop(mission: Mission) -> None:
    (mission.folder / "new.jsonl").write_text(GOOD)

    async def main() -> VerdictCounts:
        with open_metered_model(mission, Contrast()) as metered:
            tickets = tickets_in_files([mission.folder / "new.jsonl"], mission.name)
            return judge_tickets(mission, mission.guidance(), metered, tickets)

    assert asyncio.run(main()).right == 2


def test_a_folder_that_can_not_be_written_caches_nothing_and_is_named(
    mission: Mission, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Mission) -> None:
        raise PermissionError(13, "Permission denied", "runs")

    monkeypatch.setattr("donewhen.judging.mission_budget.open_answer_store", refuse)
    uncached: list[str] = []
    model = ScriptedJudge(lambda _: Completion("Verdict: pass\nReason: x"), name="paid/1", free=False)
    with open_metered_model(mission, model, uncached.append) as metered:
        assert metered.model is model
    assert uncached == ["runs"]


def test_guidance_is_chosen_by_step_or_file(mission: Mission) -> None:
    assert choose_guidance(mission, None) == guidance_of_step(mission, 0) == mission.initial_guidance()
    with pytest.raises(GuidanceError):
        choose_guidance(mission, "1")
    mission.store.seed(mission.initial_guidance())
    change = GuidanceChange(op="add", text='When "note" occurs, the verdict is fail.', rationale="x", evidence=("A",))
    mission.store.apply(change, "ada")
    assert [choose_guidance(mission, choice).step for choice in (None, "0", "1")] == [1, 0, 1]
    assert choose_guidance(mission, str(mission.folder / "guidance.json")).hash == mission.guidance().hash
    first = choose_guidance(mission, str(mission.folder / "initial_guidance.json"))
    assert first.hash == guidance_of_step(mission, 0).hash


def test_options_replace_settings_for_one_call(mission: Mission) -> None:
    assert with_options(mission).settings == mission.settings
    changed = with_options(mission, model="local", epochs=2, seed=9, calls=50).settings
    assert (changed.model, changed.epochs, changed.seed, changed.budget.calls) == ("local", 2, 9, 50)
    off = with_options(mission, trial=False)
    assert off.settings.trial == "off"
    assert with_options(off, trial=False).settings.trial == "off"
    assert with_options(off, trial=True).settings.trial == Trial()
    own = replace(mission, settings=with_options(mission).settings)
    assert with_options(own, trial=True).settings.trial == mission.settings.trial
