"""A program that decides about guidance gets what `donewhen guidance` gives a person who types."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import ADA, BOT, JUDGED, TAUGHT, Court, write_mission

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.jobs.judge.guidance_decisions import (
    accept_proposal,
    guidance_in_use,
    propose_guidance,
    roll_back_guidance,
)
from donewhen.jobs.judge.missions import accepted_guidance
from donewhen.judging.guidance import GuidanceChange
from donewhen.judging.mission import Mission, read_mission

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def court(repository: Path, git: Callable[..., str]) -> Court:
    court = Court(repository, git, rules=TAUGHT)
    court.job(JUDGED)
    return court


def learn(mission: Mission, word: str) -> None:
    mission.store.seed(mission.initial_guidance())
    text = f'When "{word}" occurs, the verdict is fail.'
    mission.store.apply(GuidanceChange(op="add", text=text, rationale="seen", evidence=("a::fail",)), "run-1")


def entries(court: Court) -> int:
    return len(court.workspace.ledger.read(court.workspace.project().id).entries)


def test_what_an_approver_accepts_is_what_the_gates_use(court: Court) -> None:
    learn(court.mission, "ipsum")
    proposal = propose_guidance(court.mission)
    assert [(change.key, change.kind) for change in proposal.changes] == [("G3", "added")]
    assert (proposal.accepted.step, proposal.chosen.step, proposal.in_use) == (0, 1, False)
    assert accept_proposal(proposal, ADA)
    assert accepted_guidance(court.workspace, "reports", court.mission).step == 1


def test_an_agents_acceptance_is_recorded_and_does_not_count_as_from_the_verb(court: Court, donewhen: Run) -> None:
    learn(court.mission, "ipsum")
    before = entries(court)
    assert not accept_proposal(propose_guidance(court.mission), BOT)
    done = donewhen(["guidance", "accept", "reports", "--json"], court.root)
    assert (done.returncode, json.loads(done.stdout)["data"]["accepted"]) == (1, False)
    assert entries(court) == before + 2
    assert accepted_guidance(court.workspace, "reports", court.mission).step == 0


def test_guidance_that_the_gates_use_is_not_recorded_again(court: Court, donewhen: Run) -> None:
    learn(court.mission, "ipsum")
    accept_proposal(propose_guidance(court.mission), ADA)
    before = entries(court)
    proposal = propose_guidance(court.mission)
    assert (proposal.in_use, proposal.changes) == (True, ())
    assert accept_proposal(proposal, BOT)
    assert donewhen(["guidance", "accept", "reports"], court.root).returncode == 0
    assert entries(court) == before


def test_guidance_that_was_edited_after_it_was_accepted_is_proposed_whole(court: Court) -> None:
    learn(court.mission, "ipsum")
    accept_proposal(propose_guidance(court.mission), ADA)
    path = court.folder / "guidance.json"
    path.write_text(path.read_text().replace("ipsum", "dolor"))
    proposal = propose_guidance(court.mission)
    assert proposal.before is None
    assert {change.kind for change in proposal.changes} == {"added"}
    assert len(proposal.changes) == len(proposal.chosen.experiences)
    assert guidance_in_use(court.mission) == (proposal.accepted, None)


@pytest.mark.parametrize("place", ["elsewhere", "nothing learned", "no such step"])
def test_what_can_not_be_accepted_is_refused_in_the_same_words(court: Court, donewhen: Run, place: str) -> None:
    folder, options, step = court.folder, [], None
    if place == "elsewhere":
        folder = write_mission(court.root / "elsewhere", model="contrast", rules=TAUGHT)
        learn(read_mission(folder, code=False), "ipsum")
    elif place == "no such step":
        learn(court.mission, "ipsum")
        options, step = ["--step", "7"], 7
    with pytest.raises(DonewhenError) as caught:
        propose_guidance(read_mission(folder, code=False), step)
    done = donewhen(["guidance", "accept", str(folder), "--json", *options], court.root)
    assert [finding["message"] for finding in json.loads(done.stdout)["findings"]] == [caught.value.message]
    assert done.returncode == caught.value.exit_code


def test_a_rollback_is_a_step_of_its_own_under_the_same_name(court: Court, donewhen: Run) -> None:
    with pytest.raises(UsageError):
        roll_back_guidance(court.mission, 0)
    learn(court.mission, "ipsum")
    with pytest.raises(UsageError):
        roll_back_guidance(court.mission, 1)
    rolled = roll_back_guidance(court.mission, 0)
    assert (rolled.before.step, rolled.after.step) == (1, 2)
    assert [(change.key, change.kind) for change in rolled.changes] == [("G3", "removed")]
    done = donewhen(["guidance", "rollback", "1", "reports", "--json"], court.root)
    data = json.loads(done.stdout)["data"]
    assert (data["step"], data["by"]) == (3, rolled.by)
    assert [revision.by for revision in court.mission.store.history()[-2:]] == [rolled.by, rolled.by]
