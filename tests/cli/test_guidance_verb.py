"""The rules that a judge follows, as people look at them, compare them, go back, and take them elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.judging.guidance import GuidanceChange
from donewhen.judging.guidance_store import read_guidance, read_initial
from donewhen.judging.mission import read_mission
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]

HOSTILE = "\x1b]0;owned\x07When *this* [link](http://evil.example/) <b>or</b> <promise>x</promise>\u202e, pass."


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    folder = tmp_path / "refunds"
    folder.mkdir()
    (folder / "mission.toml").write_text('mission = "refunds"\n')
    (folder / "initial_guidance.json").write_text(json.dumps({"S1": "Both pages count.", "G0": "Otherwise fail."}))
    return folder


@pytest.fixture
def learned(fresh: Path) -> Path:
    """Ten steps: ten rules are added; then the first is reworded, and the second goes."""
    mission = read_mission(fresh)
    store = mission.store
    store.seed(mission.initial_guidance())
    for at in range(1, 11):
        change = GuidanceChange(
            op="add", text=f"Rule number {at}.", rationale="Because.", evidence=(f"Q{at}::fail", "Q0::pass")
        )
        store.apply(change, "learn")
    store.apply(GuidanceChange(op="update", key="G1", text="Said better.", evidence=("Q9::fail",)), "learn")
    store.apply(GuidanceChange(op="delete", key="G2", rationale="It misled.", evidence=("Q9::pass",)), "learn")
    store.credit({"G1": (9, 1)})
    return fresh


def data(done: subprocess.CompletedProcess[str]) -> Any:
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)["data"]


def test_rules_are_shown_in_order_with_what_they_are_based_on(donewhen: Run, learned: Path) -> None:
    shown = donewhen(["guidance", "show"], learned)
    assert shown.returncode == 0
    keys = [line.split()[0] for line in shown.stdout.split("\n") if line.startswith(("  S", "  G"))]
    assert keys == ["S1", "G0", "G1", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10"]
    assert_sentences(shown.stdout)
    told = data(donewhen(["guidance", "show", str(learned), "--json"], learned.parent))
    assert (told["step"], told["rules"]["S1"]["scaffold"], told["rules"]["G1"]["hit_count"]) == (12, True, 9)
    earlier = data(donewhen(["guidance", "show", "--step", "1", "--json"], learned))
    assert set(earlier["rules"]) == {"S1", "G0", "G1"}


def test_before_anything_is_learned_there_is_what_it_begins_with(donewhen: Run, fresh: Path) -> None:
    shown = donewhen(["guidance", "show"], fresh)
    assert_sentences(shown.stdout)
    assert "Otherwise fail." in shown.stdout
    assert_sentences(donewhen(["guidance", "diff"], fresh).stdout)
    assert_sentences(donewhen(["guidance", "log"], fresh).stdout)
    back = donewhen(["guidance", "rollback", "0"], fresh)
    assert back.returncode == 2
    assert_sentences(back.stderr)
    assert donewhen(["guidance", "show", "--step", "3"], fresh).returncode == 2


def test_a_difference_is_told_rule_by_rule(donewhen: Run, learned: Path) -> None:
    shown = donewhen(["guidance", "diff", "--from", "2"], learned).stdout
    assert shown.startswith("refunds  step 2 → step 12\n")
    assert "G1 changed\n  - Rule number 1.\n  + Said better.\nG2 removed\n  - Rule number 2.\nG3 added\n" in shown
    whole = data(donewhen(["guidance", "diff", "--json"], learned))
    assert (whole["from"], whole["to"]) == ("initial", 12)
    assert [one["key"] for one in whole["changes"]] == ["G1", *(f"G{at}" for at in range(3, 11))]
    between = data(donewhen(["guidance", "diff", "--from", "10", "--to", "11", "--json"], learned))
    assert between["changes"] == [{"key": "G1", "kind": "changed", "before": "Rule number 1.", "after": "Said better."}]
    assert donewhen(["guidance", "diff", "--from", "99"], learned).returncode == 2


def test_the_log_tells_every_change_with_its_evidence(donewhen: Run, learned: Path) -> None:
    shown = donewhen(["guidance", "log", "-n", "2"], learned).stdout
    assert "update G1" in shown
    assert "delete G2" in shown
    assert "It misled." in shown
    assert_sentences(shown)
    assert (
        "add G10  by learn, 2 ticket(s)\n    Rule number 10.\n    Because.\n"
        in donewhen(["guidance", "log"], learned).stdout
    )
    told = data(donewhen(["guidance", "log", "--json"], learned))
    assert told["total"] == len(told["revisions"]) == 12
    assert told["revisions"][0]["change"]["evidence"] == ["Q1::fail", "Q0::pass"]


def test_going_back_is_a_step_of_its_own_under_a_name(donewhen: Run, learned: Path) -> None:
    done = donewhen(["guidance", "rollback", "10"], learned)
    assert done.returncode == 0, done.stderr
    assert_sentences(done.stdout)
    assert "G2 added" in done.stdout
    store = read_mission(learned).store
    assert store.read().experiences == store.at(10).experiences
    assert store.read().step == 13
    assert store.history()[-1].by.startswith(unproved_actor().name)
    again = donewhen(["guidance", "rollback", "12", str(learned)], learned.parent)
    assert again.returncode == 0
    assert store.read().experiences == store.at(12).experiences
    for step in ("14", "99"):
        refused = donewhen(["guidance", "rollback", step], learned)
        assert refused.returncode == 2
        assert "donewhen guidance log" in refused.stderr
    assert store.read().step == 14


def test_an_agent_that_goes_back_is_recorded_as_one(learned: Path, donewhen: Run) -> None:
    donewhen(["guidance", "rollback", "1"], learned, dict(os.environ) | {"DONEWHEN_AGENT": "1"})
    assert read_mission(learned).store.history()[-1].by == f"{unproved_actor().name} (agent)"


def test_rules_can_be_taken_elsewhere_and_back(donewhen: Run, learned: Path) -> None:
    prompt = donewhen(["guidance", "export", "--format", "prompt"], learned).stdout
    assert prompt.index("[S1] Both pages count.") < prompt.index("[G0] Otherwise fail.") < prompt.index("[G10]")
    assert donewhen(["guidance", "export", "--format", "json", "--out", "out.json"], learned).returncode == 0
    assert read_guidance(learned / "out.json", "refunds") == read_mission(learned).guidance()
    assert json.loads(donewhen(["guidance", "export", "--format", "json"], learned).stdout) == json.loads(
        (learned / "out.json").read_text()
    )
    page = donewhen(["guidance", "export"], learned).stdout
    assert_sentences(page)
    assert "  - Tickets: Q1::fail, Q0::pass, Q9::fail" in page
    earlier = donewhen(["guidance", "export", "--format", "json", "--step", "1"], learned).stdout
    assert set(json.loads(earlier)["refunds"]["experiences"]) == {"S1", "G0", "G1"}
    told = data(donewhen(["guidance", "export", "--json"], learned))
    assert told["text"] == page


def test_hostile_rules_drive_no_terminal_and_are_no_markup(donewhen: Run, fresh: Path) -> None:
    (fresh / "initial_guidance.json").write_text(json.dumps({"G0": "x", "S1": HOSTILE}))
    for arguments in (["show"], ["export", "--format", "prompt"], ["export"], ["export", "--format", "json"], ["diff"]):
        shown = donewhen(["guidance", *arguments], fresh).stdout
        for mark in ("\x1b", "\x07", "\u202e", "<promise>"):
            assert mark not in shown, arguments
    page = donewhen(["guidance", "export"], fresh).stdout
    assert r"\*this\* \[link\](http:\/\/evil.example/) \<b\>or\</b\>" in page
    exported = donewhen(["guidance", "export", "--format", "json"], fresh).stdout
    (fresh / "again.json").write_text(exported)
    assert read_initial(fresh / "again.json", "refunds").rules == read_mission(fresh).guidance().rules


@pytest.mark.parametrize(
    "content", ['{"refunds": ', "[]", '{"refunds": {"step": -1, "experiences": {"G0": "x"}}}', "{}"]
)
def test_a_broken_guidance_is_named_and_nothing_is_changed(donewhen: Run, learned: Path, content: str) -> None:
    (learned / "guidance.json").write_text(content)
    for verb in (["show"], ["diff"], ["log"], ["rollback", "1"], ["export"]):
        done = donewhen(["guidance", *verb], learned)
        assert done.returncode == 2, verb
        assert "guidance.json" in done.stderr
        assert "Traceback" not in done.stderr
    assert (learned / "guidance.json").read_text() == content


@pytest.mark.parametrize("verb", ["show", "diff", "log", "rollback", "export"])
def test_they_explain_themselves(donewhen: Run, tmp_path: Path, verb: str) -> None:
    said = donewhen(["guidance", verb, "--help"], tmp_path)
    assert said.returncode == 0
    assert said.stdout.startswith(f"Usage: donewhen guidance {verb} ")
    assert "--json" in said.stdout
    assert donewhen(["guidance", verb, *(["0"] if verb == "rollback" else [])], tmp_path).returncode == 2
