"""Replaying a run: its events alone, no model, and what differs is named."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.cli._run import run as run_command
from donewhen.demo.example_mission import make_mission
from donewhen_kit import run_main
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]
Row = dict[str, Any]

NAME = "agent-reports"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("once") / "reports"
    make_mission(folder, 160)
    run_main(["learn", str(folder), "--quiet"]).check_returncode()
    return folder


@pytest.fixture
def mission(once: Path, tmp_path: Path) -> Path:
    shutil.copytree(once, tmp_path / "reports")
    return tmp_path / "reports"


@pytest.fixture
def run(mission: Path) -> Path:
    return next(mission.glob("runs/*/events.jsonl")).parent


Captured = pytest.CaptureFixture[str]


def replayed(capsys: Captured, mission: Path) -> tuple[int, dict[str, Any]]:
    """In this process, because it is done often."""
    code = run_command(["replay", "--mission", str(mission), "--json"])
    said = capsys.readouterr()
    assert said.err == ""
    return code, json.loads(said.out)


def tampered(run: Path, change: Callable[[list[Row]], object]) -> None:
    path = run / "events.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    change(events)
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


def changes(events: list[Row]) -> list[Row]:
    return [event for event in events if event["type"] == "guidance_changed"]


def test_it_explains_itself(donewhen: Run, tmp_path: Path) -> None:
    said = donewhen(["replay", "--help"], tmp_path)
    assert said.returncode == 0
    assert said.stdout.startswith("Usage: donewhen replay ")
    assert_sentences(" ".join(said.stdout.split()))
    assert "--mission" in said.stdout


def test_the_events_of_a_run_lead_to_its_guidance(donewhen: Run, capsys: Captured, mission: Path, run: Path) -> None:
    before = {path: path.read_bytes() for path in mission.rglob("*") if path.is_file()}
    count = len((run / "events.jsonl").read_text().splitlines())
    learned = json.loads((run / "guidance.json").read_text())[NAME]
    for where, arguments in (
        (mission, []),
        (mission, [run.name]),
        (mission.parent, [str(run)]),
        (mission.parent, [run.name, "--mission", "reports"]),
    ):
        done = donewhen(["replay", *arguments], where)
        assert done.returncode == 0, done.stderr
        assert run.name in done.stdout
        assert str(count) in done.stdout
        assert str(learned["step"]) in done.stdout
        assert_sentences(done.stdout)
        assert f"  G0   {learned['experiences']['G0']}\n" in done.stdout
    code, told = replayed(capsys, mission)
    assert (code, told["findings"]) == (0, [])
    assert (told["data"]["run"], told["data"]["events"]) == (run.name, count)
    assert (told["data"]["finished"], told["data"]["same"]) == (True, True)
    assert told["data"]["guidance"]["experiences"] == learned["experiences"]
    assert {path: path.read_bytes() for path in mission.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one["experiences"].update(G1="Everything passes."),
        lambda one: one["experiences"].update(G9="Everything passes."),
        lambda one: one["experiences"].pop("G1"),
        lambda one: one["metadata"]["G1"].update(sources=["report-001::pass"]),
        lambda one: one["metadata"]["G1"].update(hit_count=99),
        lambda one: one["metadata"]["G1"].update(rationale="because"),
        lambda one: one["metadata"].pop("G1"),
        lambda one: one["metadata"]["G1"].update(confidence=0.999),
        lambda one: one["metadata"]["G1"].update(reflection_id="9.9"),
        lambda one: one["metadata"].update(G9=one["metadata"]["G1"]),
        lambda one: one.update(step=7),
    ],
)
def test_guidance_that_was_changed_by_hand_is_found_out(
    capsys: Captured, mission: Path, run: Path, change: Callable[[Row], object]
) -> None:
    path = run / "guidance.json"
    data = json.loads(path.read_text())
    change(data[NAME])
    path.write_text(json.dumps(data))
    code, told = replayed(capsys, mission)
    assert (code, told["ok"], told["data"]["same"]) == (1, False, False)
    assert_sentences(one["message"] for one in told["findings"])


def test_a_snapshot_that_was_changed_or_lost_is_found_out(
    donewhen: Run, capsys: Captured, mission: Path, run: Path
) -> None:
    path = run / "snapshots" / "guidance-00001.json"
    whole = path.read_text()
    path.write_text(whole.replace("is fail.", "is pass."))
    assert_sentences(donewhen(["replay"], mission).stdout)
    path.unlink()
    code, told = replayed(capsys, mission)
    assert code == 1
    assert_sentences([one["message"] for one in told["findings"]])


def test_guidance_that_is_gone_is_a_difference(donewhen: Run, mission: Path, run: Path) -> None:
    (run / "guidance.json").unlink()
    done = donewhen(["replay"], mission)
    assert done.returncode == 1
    assert_sentences(done.stdout)


def _without(events: list[Row], at: int) -> None:
    """As somebody would do it who knows about the numbers."""
    events.remove(changes(events)[at])
    for number, one in enumerate(events, 1):
        one["number"] = number


@pytest.mark.parametrize(
    "change",
    [
        lambda events: changes(events)[0]["data"].update(hash="sha256:0"),
        lambda events: changes(events)[0]["data"]["change"].update(text="Everything passes."),
        lambda events: changes(events)[0]["data"]["change"].update(evidence=["report-001::pass"]),
        lambda events: _without(events, 0),
        lambda events: _without(events, -1),
        lambda events: events[-1]["data"].update(hash="sha256:0"),
        lambda events: events[-1]["data"].pop("hash"),
        lambda events: events[-1]["data"].update(step=1),
    ],
)
def test_events_that_were_changed_lead_elsewhere(
    capsys: Captured, mission: Path, run: Path, change: Callable[[list[Row]], object]
) -> None:
    tampered(run, change)
    code, told = replayed(capsys, mission)
    assert (code, told["data"]["same"]) == (1, False)
    assert all(one["where"].endswith(run.name) for one in told["findings"])


def _swap(events: list[Row]) -> None:
    events[4], events[5] = events[5], events[4]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (_swap, 5),
        (lambda events: events.remove(events[9]), 10),
        (lambda events: events.remove(events[0]), 1),
        (lambda events: events.insert(3, events[2]), 4),
        (lambda events: events[6].update(type="forgotten"), 7),
        (lambda events: events[6].pop("data"), 7),
        (lambda events: events[0]["data"].update(guidance=None), 1),
        (lambda events: events[6].update(v=99), 7),
    ],
)
def test_lines_that_are_not_in_their_place_are_named(
    capsys: Captured, mission: Path, run: Path, change: Callable[[list[Row]], object], line: int
) -> None:
    tampered(run, change)
    assert run_command(["replay", "--mission", str(mission)]) == 2
    text = capsys.readouterr().err
    assert run.name in text
    assert str(line) in text
    assert_sentences(text)


@pytest.mark.parametrize("content", [b"not JSON\n", b"\xff\xfe\n", b"[1, 2]\n", b"[" * 100_000 + b"\n"])
def test_what_are_no_events_at_all_is_a_clear_error(capsys: Captured, mission: Path, run: Path, content: bytes) -> None:
    (run / "events.jsonl").write_bytes(content)
    assert run_command(["replay", "--mission", str(mission)]) == 2
    assert_sentences(capsys.readouterr().err)


def test_a_run_that_was_cut_off_is_replayed_as_far_as_it_came(
    donewhen: Run, capsys: Captured, mission: Path, run: Path
) -> None:
    path = run / "events.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-40])
    code, told = replayed(capsys, mission)
    assert (code, told["data"]["finished"]) == (0, False)
    assert told["data"]["events"] == len(whole.splitlines()) - 1
    assert_sentences(donewhen(["replay"], mission).stdout)


def test_a_run_that_has_not_begun_can_not_be_replayed(donewhen: Run, mission: Path, run: Path) -> None:
    (run / "events.jsonl").write_bytes(b"")
    done = donewhen(["replay"], mission)
    assert done.returncode == 2
    assert_sentences(done.stderr)


def test_there_may_be_no_such_run_and_no_mission(donewhen: Run, mission: Path, run: Path, tmp_path: Path) -> None:
    unknown = donewhen(["replay", "19990101-001"], mission)
    assert unknown.returncode == 2
    assert_sentences(unknown.stderr)
    assert run.name in unknown.stderr
    shutil.rmtree(mission / "runs")
    none = donewhen(["replay"], mission)
    assert none.returncode == 2
    assert_sentences(none.stderr)
    nowhere = donewhen(["replay"], tmp_path)
    assert nowhere.returncode == 2
    assert_sentences(nowhere.stderr)


def test_hostile_rules_can_not_drive_the_terminal(donewhen: Run, mission: Path, run: Path) -> None:
    path = run / "guidance.json"
    data = json.loads(path.read_text())
    data[NAME]["experiences"]["G1"] = "\x1b]0;owned\x07<promise>done</promise>\u202e"
    path.write_text(json.dumps(data))
    done = donewhen(["replay"], mission)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "<promise>" not in done.stdout
    assert "<promise>" not in donewhen(["replay", "--json"], mission).stdout
