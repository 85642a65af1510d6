"""`donewhen guidance accept` and `diff --accepted`: nobody lets the gates follow what they were not shown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import JUDGED, TAUGHT, Court, write_mission

from donewhen.demo.example_mission import make_mission
from donewhen.jobs.judge.missions import accepted_guidance, find_mission
from donewhen.jobs.plan.creating import create_project
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.judging.guidance import GuidanceChange
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]
Person = Callable[..., Any]


@pytest.fixture
def court(repository: Path, git: Callable[..., str]) -> Court:
    court = Court(repository, git, rules=TAUGHT)
    court.job(JUDGED)
    return court


def learn(court: Court, text: str = 'When "ipsum" occurs, the verdict is fail.') -> None:
    mission = court.mission
    mission.store.seed(mission.initial_guidance())
    mission.store.apply(GuidanceChange(op="add", text=text, rationale="seen", evidence=("a::fail",)), "run-1")


def followed(workspace: Workspace, name: str = "reports") -> int:
    return accepted_guidance(workspace, name, find_mission(workspace, name)).step


def edit(court: Court) -> None:
    """Somebody writes into the guidance by hand."""
    path = court.folder / "guidance.json"
    text = path.read_text()
    assert "ipsum" in text
    path.write_text(text.replace("ipsum", "dolor"))


def test_a_person_is_shown_what_changes_and_accepts_it(court: Court, as_person: Person, donewhen: Run) -> None:
    learn(court)
    shown = donewhen(["guidance", "diff", "reports", "--accepted"], court.root).stdout
    assert_sentences(shown)
    played = as_person(["guidance", "accept", "reports"], court.root)
    assert played.status == 0
    assert "step 0 → step 1" in played.screen
    assert 'When "ipsum" occurs' in played.screen
    assert_sentences(played.screen)
    assert followed(court.workspace) == 1
    assert_sentences(donewhen(["guidance", "diff", "reports", "--accepted"], court.root).stdout)
    again = as_person(["guidance", "accept", "reports"], court.root)
    assert again.status == 0
    assert_sentences(again.screen)
    assert "accept_guidance reports: guidance step 1 of reports" in donewhen(["log"], court.root).stdout


def test_an_agents_acceptance_is_on_record_and_does_not_count(court: Court, donewhen: Run) -> None:
    learn(court)
    done = donewhen(["guidance", "accept", "reports", "--json"], court.root)
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"], told["data"]["accepted"]) == (1, False, False)
    assert [one["code"] for one in told["findings"]] == ["approver"]
    assert followed(court.workspace) == 0
    assert court.project_entries()[-1].data["decision"] == "accept_guidance"


def test_another_word_accepts_nothing(court: Court, as_person: Person) -> None:
    learn(court)
    length = len(court.project_entries())
    played = as_person(["guidance", "accept", "reports"], court.root, answer="sure")
    assert played.status == 1
    assert_sentences(played.screen)
    assert len(court.project_entries()) == length


def test_an_older_step_can_be_accepted(court: Court, as_person: Person) -> None:
    learn(court)
    learn(court, 'When "dolor" occurs, the verdict is fail.')
    assert as_person(["guidance", "accept", "reports"], court.root).status == 0
    assert followed(court.workspace) == 2
    played = as_person(["guidance", "accept", "reports", "--step", "1"], court.root)
    assert (played.status, "G4 removed" in played.screen) == (0, True)
    assert followed(court.workspace) == 1


def test_what_was_edited_since_it_was_accepted_is_shown_whole(court: Court, as_person: Person, donewhen: Run) -> None:
    """Compared with itself it would seem that nothing differs, and a person would accept what they never saw."""
    learn(court)
    assert as_person(["guidance", "accept", "reports"], court.root).status == 0
    edit(court)
    shown = donewhen(["guidance", "diff", "reports", "--accepted"], court.root).stdout
    assert_sentences(shown)
    assert '+ When "dolor" occurs' in shown
    played = as_person(["guidance", "accept", "reports"], court.root)
    assert played.status == 0
    assert_sentences(played.screen)
    for rule in ("G0 added", "G1 added", "G2 added"):
        assert rule in played.screen


def test_a_guidance_that_was_begun_anew_can_still_be_accepted(court: Court, as_person: Person) -> None:
    learn(court)
    learn(court, 'When "dolor" occurs, the verdict is fail.')
    assert as_person(["guidance", "accept", "reports"], court.root).status == 0
    for name in ("guidance.json", "guidance.history.jsonl"):
        (court.folder / name).unlink()
    for path in (court.folder / "snapshots").iterdir():
        path.unlink()
    learn(court, 'When "amet" occurs, the verdict is fail.')
    played = as_person(["guidance", "accept", "reports"], court.root)
    assert played.status == 0
    assert_sentences(played.screen)


def test_there_must_be_something_to_accept(court: Court, donewhen: Run, tmp_path: Path) -> None:
    done = donewhen(["guidance", "accept", "reports"], court.root)
    assert done.returncode == 2
    assert_sentences(done.stderr)
    write_mission(court.root / "elsewhere" / "other", rules=TAUGHT, model="contrast")
    done = donewhen(["guidance", "accept", "elsewhere/other"], court.root)
    assert done.returncode == 2
    assert_sentences(done.stderr)


def test_from_and_accepted_exclude_each_other(court: Court, donewhen: Run) -> None:
    done = donewhen(["guidance", "diff", "reports", "--accepted", "--from", "0"], court.root)
    assert (done.returncode, "either --from or --accepted" in done.stderr) == (2, True)


# Learning


@pytest.fixture
def learning(repository: Path) -> Path:
    """A project with a mission of made-up tickets, and no agreement yet."""
    create_project(repository, "Learning")
    make_mission(repository / "missions" / "agent-reports", 150)
    return repository


def outcome(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["data"]


LEARN = ["learn", "agent-reports", "--epochs", "1", "--json"]


def test_learning_leaves_the_gates_as_they_are_until_somebody_accepts(
    learning: Path, donewhen: Run, as_person: Person
) -> None:
    assert as_person(["agree"], learning).status == 0
    told = outcome(donewhen(LEARN, learning))
    assert told["adopted"]
    assert told["gates_follow"] == {"step": 0, "newest": False}
    played = as_person(["guidance", "accept", "agent-reports"], learning)
    assert played.status == 0
    workspace = find_workspace(learning)
    assert followed(workspace, "agent-reports") == told["guidance_step"]


def test_a_trial_accepts_where_a_person_has_agreed_to_that(learning: Path, donewhen: Run, as_person: Person) -> None:
    (learning / "donewhen.toml").write_text("[judge]\ntrial_accepts = true\n")
    assert as_person(["agree"], learning).status == 0
    told = outcome(donewhen(LEARN, learning))
    assert told["gates_follow"] == {"step": told["guidance_step"], "newest": True}
    entry = find_workspace(learning).ledger.read(find_workspace(learning).project().id).entries[-1]
    assert entry.data["value"]["run"] == told["run"]
    assert entry.by.kind == "agent"


@pytest.mark.parametrize(
    ("options", "before"),
    [
        (["--trial", "off"], None),
        ([], "edit the guidance"),
        ([], "weaken the trial"),
        ([], "not agreed"),
    ],
    ids=["no trial", "edited guidance", "weaker trial", "not agreed"],
)
def test_a_trial_accepts_nothing_that_it_does_not_speak_for(
    learning: Path, donewhen: Run, as_person: Person, options: list[str], before: str | None
) -> None:
    if before != "not agreed":
        (learning / "donewhen.toml").write_text("[judge]\ntrial_accepts = true\n")
    assert as_person(["agree"], learning).status == 0
    folder = learning / "missions" / "agent-reports"
    if before == "not agreed":
        (learning / "donewhen.toml").write_text("[judge]\ntrial_accepts = true\n")
    elif before == "weaken the trial":
        text = (folder / "mission.toml").read_text()
        (folder / "mission.toml").write_text(f"{text}[trial]\nmin_tickets = 1\nconfidence = 0.0\n")
    elif before == "edit the guidance":
        mission = find_mission(find_workspace(learning), "agent-reports")
        mission.store.seed(mission.initial_guidance())
        change = GuidanceChange(
            op="add", text='When "the" occurs, the verdict is pass.', rationale="mine", evidence=("x",)
        )
        mission.store.apply(change, "an agent")
    told = outcome(donewhen([*LEARN, *options], learning))
    assert told["adopted"]
    assert told["gates_follow"] == {"step": 0, "newest": False}
    assert followed(find_workspace(learning), "agent-reports") == 0


def test_a_mission_outside_of_a_project_has_no_gates(tmp_path: Path, donewhen: Run) -> None:
    make_mission(tmp_path / "alone", 60)
    assert outcome(donewhen(["learn", "alone", "--epochs", "1", "--json"], tmp_path))["gates_follow"] is None
