"""A program that calls learn() gets the decision about the gates that `donewhen learn` makes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.demo.example_mission import make_mission
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.judge.missions import accepted_guidance
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import create_project
from donewhen.jobs.plan.workspace import find_workspace
from donewhen.judging.mission import read_mission
from donewhen.judging.mission_options import with_options
from donewhen.learning.after.learn_mission import LearnResult, learn
from donewhen.learning.running.run_folders import has_new_run, run_folders, run_to_resume
from donewhen.models.contrast import Contrast

Run = Callable[..., subprocess.CompletedProcess[str]]
TRUSTED = "[judge]\ntrial_accepts = true\n"
NAME = "agent-reports"


def make_project(folder: Path, agreed: str, later: str | None = None) -> Path:
    """A project with a mission, agreed with the settings ``agreed``; ``later`` are the settings after that."""
    folder.mkdir()
    workspace = create_project(folder, "Learning")
    make_mission(folder / "missions" / NAME, 160)
    (folder / "donewhen.toml").write_text(agreed)
    for proposal in agreement_proposals(workspace, []):
        agree(workspace, proposal, Approval(Actor("ada", "person")))
    if later is not None:
        (folder / "donewhen.toml").write_text(later)
    return folder


def learn_by_call(folder: Path, trial: bool | None) -> LearnResult:
    mission = read_mission(folder / "missions" / NAME)
    return learn(with_options(mission, epochs=1, trial=trial), Contrast())


@pytest.mark.parametrize(
    ("agreed", "later", "trial", "follows"),
    [
        (TRUSTED, None, None, True),
        (TRUSTED, None, False, False),
        ("", None, None, False),
        ("", TRUSTED, None, False),
    ],
    ids=["agreed", "no trial", "not wanted", "not agreed"],
)
def test_the_gates_use_the_same_guidance_after_the_call_and_after_the_verb(
    tmp_path: Path, donewhen: Run, agreed: str, later: str | None, trial: bool | None, follows: bool
) -> None:
    called, typed = make_project(tmp_path / "called", agreed, later), make_project(tmp_path / "typed", agreed, later)
    result = learn_by_call(called, trial)
    options = [] if trial is None else ["--trial", "on" if trial else "off"]
    done = donewhen(["learn", NAME, "--epochs", "1", "--json", *options], typed)
    assert result.guidance is not None
    assert result.gates is not None
    assert (result.gates.step, result.gates.newest) == ((result.guidance.step, True) if follows else (0, False))
    assert json.loads(done.stdout)["data"]["gates_follow"] == {"step": result.gates.step, "newest": follows}
    for folder in (called, typed):
        workspace = find_workspace(folder)
        used = accepted_guidance(workspace, NAME, read_mission(folder / "missions" / NAME, code=False))
        assert used.step == result.gates.step
        last = workspace.ledger.read(workspace.project().id).entries[-1]
        assert (last.type == "decided") == result.gates.recorded
    assert result.exit_code is ExitCode.PASS


def test_without_adoption_the_gates_stay_as_they_are(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project", TRUSTED)
    mission = with_options(read_mission(folder / "missions" / NAME), epochs=1)
    result = learn(mission, Contrast(), adopting=False)
    assert result.guidance is None
    assert result.gates is not None
    assert (result.gates.step, result.gates.recorded) == (0, False)


def test_a_mission_that_no_gate_uses_has_no_gates(tmp_path: Path) -> None:
    make_mission(tmp_path / "alone", 60)
    mission = with_options(read_mission(tmp_path / "alone"), epochs=1)
    assert learn(mission, Contrast()).gates is None


def test_only_an_interrupted_run_is_resumed_without_a_name(tmp_path: Path, donewhen: Run) -> None:
    make_mission(tmp_path / "alone", 60)
    mission = with_options(read_mission(tmp_path / "alone"), epochs=1)
    before = run_folders(mission)
    assert not has_new_run(mission, before)
    learn(mission, Contrast())
    (folder,) = run_folders(mission)
    assert has_new_run(mission, before)
    assert not has_new_run(mission, (folder,))
    assert run_to_resume(mission, folder.name) == folder
    with pytest.raises(UsageError) as caught:
        run_to_resume(mission)
    typed = donewhen(["learn", "alone", "--resume", "--json"], tmp_path)
    assert [finding["message"] for finding in json.loads(typed.stdout)["findings"]] == [caught.value.message]
    assert typed.returncode == caught.value.exit_code
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "events.jsonl").write_bytes(b"".join(lines[:-1]))
    assert run_to_resume(mission) == folder
