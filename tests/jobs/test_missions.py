"""The missions whose judges the gates ask, and the guidance that they follow: what was accepted, and nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import ADA, BOT, JUDGED, RULES, Court, write_mission

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.jobs.contract.agreeing import agreement_proposals
from donewhen.jobs.contract.mission_folders import mission_folders, missions_folder
from donewhen.jobs.contract.terms import project_terms, terms_hash
from donewhen.jobs.judge.missions import (
    accept_guidance,
    accepted_guidance,
    find_mission,
    gate_guidance,
    gate_mission_name,
)
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.plan.frontmatter import DocumentError
from donewhen.judging.guidance import Guidance, GuidanceChange, GuidanceError
from donewhen.judging.mission import read_mission
from sentences import assert_sentences

CI = Approval(Actor("robot", "ci"))


@pytest.fixture
def court(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Court:
    return Court(repository, git, monkeypatch)


def learned(court: Court, text: str = "A report without a date fails.") -> Guidance:
    """One more rule, as learning makes it; nobody has accepted it yet."""
    mission = court.mission
    mission.store.seed(mission.initial_guidance())
    return mission.store.apply(GuidanceChange(op="add", text=text, rationale="seen", evidence=("a::fail",)), "run-1")


def followed(court: Court) -> tuple[int, bool]:
    """Which step the gates follow, and whether somebody has accepted it."""
    found = accepted_guidance(court.workspace, "reports", court.mission)
    return found.step, found.entry is not None


def accepts(court: Court, guidance: Guidance, by: Approval = ADA, run: str | None = None) -> bool:
    return accept_guidance(court.workspace, "reports", court.mission, guidance, by, run=run)


def rules(court: Court) -> dict[str, str]:
    return gate_guidance(court.workspace, "reports", court.mission).rules


# Which guidance


def test_before_anybody_accepts_anything_the_gates_follow_what_was_agreed_to(court: Court) -> None:
    court.job(JUDGED)
    learned(court)
    assert followed(court) == (0, False)
    assert rules(court) == RULES


def test_a_person_lets_the_gates_follow_a_step(court: Court) -> None:
    court.job(JUDGED)
    guidance = learned(court)
    assert accepts(court, guidance)
    assert followed(court) == (1, True)
    assert rules(court)["G1"] == "A report without a date fails."
    entry = court.project_entries()[-1]
    assert (entry.type, entry.data["decision"]) == ("decided", "accept_guidance")
    assert entry.data["value"] == {"mission": "reports", "step": 1, "hash": guidance.hash}


def test_an_agent_and_an_untrusted_ci_let_the_gates_follow_nothing(court: Court) -> None:
    court.job(JUDGED)
    guidance = learned(court)
    assert not accepts(court, guidance, BOT)
    assert not accepts(court, guidance, CI)
    assert followed(court) == (0, False)
    assert court.project_entries()[-1].by == CI.by


def test_what_does_not_count_takes_nothing_back(court: Court) -> None:
    court.job(JUDGED)
    first = learned(court)
    assert accepts(court, first)
    assert not accepts(court, learned(court, "Everything passes that is long."), BOT)
    assert followed(court) == (1, True)


def test_a_trial_accepts_only_where_that_was_agreed_to(court: Court) -> None:
    job = court.job(JUDGED)
    guidance = learned(court)
    assert not accepts(court, guidance, BOT, run="20260214-001")
    court.write("donewhen.toml", "[judge]\ntrial_accepts = true\n")
    assert not accepts(court, guidance, BOT, run="20260214-001")
    assert followed(court) == (0, False)
    court.agree(job)
    # What was said while it did not count does not begin to.
    assert followed(court) == (0, False)
    assert accepts(court, guidance, BOT, run="20260214-002")
    assert followed(court) == (1, True)
    assert court.project_entries()[-1].data["value"]["run"] == "20260214-002"
    assert not accepts(court, learned(court, "Everything passes."), BOT)
    assert followed(court) == (1, True)


def test_trial_accepts_is_a_term_that_only_a_person_loosens(court: Court) -> None:
    court.job(JUDGED)
    court.write("donewhen.toml", "[judge]\ntrial_accepts = true\n")
    assert court.project_state() == "voided"


def test_going_back_is_a_step_that_has_to_be_accepted_and_an_older_step_can_be(court: Court) -> None:
    court.job(JUDGED)
    first = learned(court)
    assert accepts(court, first)
    assert accepts(court, learned(court, "A report without a name fails."))
    mission = court.mission
    mission.store.rollback(1, "ada")
    assert followed(court) == (2, True)
    assert set(rules(court)) == {"S1", "G0", "G1", "G2"}
    assert accepts(court, mission.store.at(1))
    assert followed(court) == (1, True)
    assert set(rules(court)) == {"S1", "G0", "G1"}


def test_guidance_that_the_mission_does_not_have_can_not_be_accepted(court: Court) -> None:
    court.job(JUDGED)
    with pytest.raises(UsageError) as caught:
        accepts(court, court.mission.initial_guidance())
    assert_sentences(caught.value)
    guidance = learned(court)
    path = court.folder / "guidance.json"
    path.write_text(path.read_text().replace("without a date", "without a smile"))
    with pytest.raises(UsageError) as caught:
        accepts(court, guidance)
    assert_sentences(caught.value)


@pytest.mark.parametrize("newer", [False, True], ids=["the newest step", "a snapshot"])
def test_accepted_guidance_that_was_edited_by_hand_is_refused_with_its_place(court: Court, newer: bool) -> None:
    job = court.job(JUDGED)
    assert accepts(court, learned(court))
    court.ask(job)
    path = court.folder / "guidance.json"
    if newer:
        learned(court, "A report without a name fails.")
        path = court.folder / "snapshots" / "guidance-00001.json"
    path.write_text(path.read_text().replace("fails", "passes"))
    with pytest.raises(GuidanceError) as caught:
        rules(court)
    assert_sentences(caught.value)
    assert caught.value.where == "missions/reports/guidance.json"
    status = court.standing(job)
    assert status.state == "missing"
    assert_sentences(status.why[0])
    asked = court.asked
    assert not court.complete(job).done
    assert court.asked == asked


def test_accepted_guidance_that_is_gone_is_refused(court: Court) -> None:
    job = court.job(JUDGED)
    assert accepts(court, learned(court))
    (court.folder / "guidance.json").unlink()
    assert court.standing(job).state == "missing"
    assert_sentences(court.standing(job).why[0])


def test_guidance_that_nobody_accepted_may_be_edited_without_any_effect(court: Court) -> None:
    job = court.job(JUDGED)
    court.ask(job)
    learned(court)
    path = court.folder / "guidance.json"
    path.write_text(path.read_text().replace("fails", "passes"))
    assert court.standing(job).state == "passed"
    assert rules(court) == RULES


def test_the_gate_names_the_step_that_it_followed(court: Court) -> None:
    job = court.job(JUDGED)
    accepts(court, learned(court))
    assert court.complete(job).done
    entry = next(item for item in court.entries(job) if item.data.get("what") == "judge")
    assert entry.data["guidance_step"] == 1
    assert_sentences(entry.data["told"])
    assert court.entries(job)[-1].data["judged"]["AC-1"]["guidance_step"] == 1


# What is agreed to


def changed(court: Court, field: str) -> list[str]:
    """What became of the agreement, and where that can be seen."""
    (about, *_) = agreement_proposals(court.workspace, [])
    found = [change for change in about.agreement.changes if change.field == field]
    assert found, about.agreement.changes
    return [f"{item.kind} {about.place(item)}" for item in found]


@pytest.mark.parametrize(
    ("toml", "field"),
    [
        ('language = "zh"', "missions.reports.language"),
        ("sampler = [{ temperature = 0.1 }]", "missions.reports.sampler"),
        ("[from_job]\nparts = ['outputs']", "missions.reports.from_job"),
        ("[from_job]\nmax_chars = 1000", "missions.reports.from_job"),
        ("[manual_review]\nmin_verdict_agreement = 0.5", "missions.reports.min_verdict_agreement"),
        ("[verdict]\npass = 'fine'", "missions.reports.words"),
        ("[trial]\nmin_tickets = 1", "missions.reports.trial"),
    ],
)
def test_another_judge_voids_what_was_agreed(court: Court, toml: str, field: str) -> None:
    job = court.job(JUDGED)
    court.settings(toml)
    assert court.project_state() == "voided"
    assert changed(court, field) == ["loosened missions/reports"]
    assert "agreement_voided" in court.codes(job)


def test_another_model_voids_what_was_agreed(court: Court) -> None:
    court.job(JUDGED)
    path = court.folder / "mission.toml"
    path.write_text(path.read_text().replace('"scripted"', '"contrast"'))
    assert court.project_state() == "voided"
    assert changed(court, "missions.reports.model") == ["loosened missions/reports"]


def test_another_first_guidance_voids_what_was_agreed(court: Court) -> None:
    court.job(JUDGED)
    path = court.folder / "initial_guidance.json"
    path.write_text(json.dumps(RULES | {"G0": "Everything passes."}))
    assert changed(court, "missions.reports.initial_guidance") == ["loosened missions/reports"]


def test_other_code_of_an_override_voids_what_was_agreed(court: Court) -> None:
    court.write("missions/reports/last.py", "def say(ticket, vote):\n    return None\n")
    court.settings('overrides = ["last.py:say"]')
    court.job(JUDGED)
    assert court.project_state() == "agreed"
    court.write("missions/reports/last.py", "def say(ticket, vote):\n    return 'pass'\n")
    assert changed(court, "missions.reports.overrides") == ["loosened missions/reports"]


def test_looking_at_a_mission_runs_none_of_its_code(court: Court, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    court.write(
        "missions/reports/last.py", f"import os\nos.mkdir({str(mark)!r})\ndef say(ticket, vote):\n    return None\n"
    )
    court.settings('overrides = ["last.py:say"]')
    job = court.job(JUDGED)
    court.standing(job)
    court.queue()
    assert court.project_state() == "agreed"
    assert not mark.exists()
    court.ask(job)
    assert mark.exists()


def test_asking_for_more_votes_to_agree_is_free_and_sealed_once(court: Court) -> None:
    job = court.job(JUDGED)
    before = len(court.project_entries())
    court.settings("[manual_review]\nmin_verdict_agreement = 0.9\nspot_check = 0.0")
    assert court.project_state() == "agreed"
    for _ in range(3):
        court.ask(job)
        court.complete(job)
    assert [entry.data["how"] for entry in court.project_entries()[before:] if entry.type == "agreed"] == ["tightened"]
    court.settings("[manual_review]\nmin_verdict_agreement = 0.67\nspot_check = 0.0")
    assert court.project_state() == "voided"


def test_what_says_nothing_about_verdicts_may_change(court: Court) -> None:
    court.job(JUDGED)
    court.settings("epochs = 9\nconcurrency = 2\nseed = 5\n[manual_review]\nspot_check = 0.5\nalarm_below = 0.9")
    (court.folder / "tickets.jsonl").write_text("")
    assert court.project_state() == "agreed"


def test_a_new_mission_is_free_and_a_removed_one_voids(court: Court) -> None:
    job = court.job(JUDGED)
    before = len(court.project_entries())
    added = write_mission(court.root / "missions" / "more")
    assert court.project_state() == "agreed"
    for _ in range(3):
        court.ask(job, again=True)
    kinds = [entry.data["how"] for entry in court.project_entries()[before:]]
    assert kinds == ["tightened"]
    for path in added.iterdir():
        path.unlink()
    added.rmdir()
    assert court.project_state() == "voided"
    assert changed(court, "missions.more") == ["removed missions/more"]


def test_the_first_mission_of_a_project_that_agreed_without_any_is_free(
    repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    court = Court(repository, git, monkeypatch)
    for path in court.folder.iterdir():
        path.unlink()
    court.folder.rmdir()
    court.job("It is there.\n  check: file /report.md")
    sealed = next(entry for entry in court.project_entries() if entry.type == "agreed")
    assert "missions" not in sealed.data["terms"]
    write_mission(court.folder)
    assert court.project_state() == "agreed"


def test_without_missions_the_terms_are_what_they_were_before_there_were_any(court: Court) -> None:
    project, settings = court.workspace.project(), court.workspace.settings()
    none, empty = project_terms(project, settings), project_terms(project, settings, {})
    assert terms_hash(none) == terms_hash(empty)
    assert none.missions is empty.missions is msgspec.UNSET
    assert set(project_terms(project, settings, {"reports": court.folder}).missions) == {"reports"}


def test_a_mission_that_can_not_be_read_voids_and_says_so(court: Court) -> None:
    job = court.job(JUDGED)
    (court.folder / "mission.toml").write_text("this is no TOML")
    assert court.project_state() == "voided"
    assert court.standing(job).state == "missing"
    assert_sentences(court.standing(job).why[0])


def test_many_commands_add_nothing_to_the_projects_chain(court: Court) -> None:
    job = court.job(JUDGED)
    court.complete(job)
    length = len(court.project_entries())
    for _ in range(3):
        evaluate_and_record(court.workspace, job.id, BOT.by, collecting=True)
        court.complete(job)
        court.queue()
    assert len(court.project_entries()) == length


# Which missions


def test_missions_are_known_by_their_folders(court: Court, tmp_path: Path) -> None:
    assert find_mission(court.workspace, "reports").name == "reports"
    assert gate_mission_name(court.workspace, court.mission) == "reports"
    elsewhere = read_mission(write_mission(tmp_path / "elsewhere"))
    assert gate_mission_name(court.workspace, elsewhere) is None
    with pytest.raises(ConfigError) as caught:
        find_mission(court.workspace, "other")
    assert_sentences(caught.value)
    assert caught.value.next_step == "donewhen mission new missions/other"


def test_where_there_are_none_that_is_said(court: Court) -> None:
    for path in court.folder.iterdir():
        path.unlink()
    with pytest.raises(ConfigError) as caught:
        find_mission(court.workspace, "reports")
    assert_sentences(caught.value)


@pytest.mark.parametrize("place", ["../missions", "/etc", "", "a/../../b"])
def test_a_folder_of_missions_outside_of_the_project_is_refused(court: Court, place: str) -> None:
    court.write("donewhen.toml", f'[judge]\nmissions = "{place}"\n')
    with pytest.raises(ConfigError):
        missions_folder(court.root, court.workspace.settings())


def test_another_folder_of_missions_can_be_chosen(court: Court) -> None:
    write_mission(court.root / "judges" / "deep" / "reports")
    court.write("donewhen.toml", '[judge]\nmissions = "judges/deep"\n')
    assert list(mission_folders(court.root, court.workspace.settings())) == ["reports"]
    assert court.mission.folder == court.root / "judges" / "deep" / "reports"


@pytest.mark.parametrize("name", ["../reports", "reports/../../x", "/etc", ".hidden", "a b"])
def test_a_criterion_can_name_no_mission_by_a_path(court: Court, name: str) -> None:
    job = court.job(JUDGED)
    with pytest.raises((ConfigError, DocumentError)):
        court.question(court.edit(job, "judge:reports", f"judge:{name}"))
