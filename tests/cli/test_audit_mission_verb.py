"""How good is the judge as it is? The figures are counted once more here, in another way."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.demo.example_mission import make_mission
from donewhen_kit import run_main
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]

DONEWHEN = [sys.executable, "-m", "donewhen"]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("once") / "reports"
    make_mission(folder, 160)
    run_main(["learn", str(folder), "--quiet"]).check_returncode()
    return folder


@pytest.fixture
def mission(once: Path, tmp_path: Path) -> Path:
    """A mission that has learned something."""
    shutil.copytree(once, tmp_path / "reports")
    return tmp_path / "reports"


def audited(donewhen: Run, mission: Path, *options: str) -> dict[str, Any]:
    done = donewhen(["audit-mission", "--json", *options], mission)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)["data"]["summary"]
    return found


def judged(donewhen: Run, mission: Path, *options: str) -> Counter[tuple[str, str]]:
    """Labels and verdicts, as judging the same tickets finds them."""
    done = donewhen(["judge", ".", "tickets.jsonl", "--quiet", *options], mission)
    assert done.returncode == 0, done.stderr
    labels = {ticket["group_id"]: ticket["label"] for ticket in tickets(mission)}
    verdicts = map(json.loads, done.stdout.splitlines())
    return Counter((labels[verdict["group_id"]], verdict["verdict"]) for verdict in verdicts)


def tickets(mission: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (mission / "tickets.jsonl").read_text().splitlines()]


def test_it_explains_itself(donewhen: Run, tmp_path: Path) -> None:
    said = donewhen(["audit-mission", "--help"], tmp_path)
    assert said.returncode == 0
    assert said.stdout.startswith("Usage: donewhen audit-mission ")
    assert_sentences(said.stdout)
    for option in ("--guidance", "--page", "--out", "--quiet", "--json"):
        assert option in said.stdout


@pytest.mark.parametrize("options", [(), ("--guidance", "0"), ("--guidance", "1")])
def test_its_figures_are_those_of_judging_the_same_tickets(
    donewhen: Run, mission: Path, options: tuple[str, ...]
) -> None:
    counted = judged(donewhen, mission, *options)
    report = audited(donewhen, mission, *options)
    found = report["before"]
    assert found["confusion"] == {
        "true_pass": counted["pass", "pass"],
        "false_pass": counted["fail", "pass"],
        "true_fail": counted["fail", "fail"],
        "false_fail": counted["pass", "fail"],
        "invalid_pass": 0,
        "invalid_fail": 0,
    }
    passes = counted["pass", "pass"] + counted["pass", "fail"]
    fails = counted["fail", "pass"] + counted["fail", "fail"]
    right = counted["pass", "pass"] + counted["fail", "fail"]
    assert passes + fails == len(tickets(mission))
    assert found["accuracy"]["value"] == pytest.approx(right / (passes + fails))
    assert found["tpr"]["value"] == pytest.approx(counted["pass", "pass"] / passes)
    assert found["tnr"]["value"] == pytest.approx(counted["fail", "fail"] / fails)
    assert found["false_release"]["value"] == pytest.approx(counted["fail", "pass"] / fails)
    assert found["false_block"]["value"] == pytest.approx(counted["pass", "fail"] / passes)
    assert (report["status"], report["after"], report["epochs"]) == ("audit", None, [])
    majority = next(one for one in report["baselines"] if one["name"] == "majority")
    assert majority["measures"]["accuracy"]["value"] == pytest.approx(max(passes, fails) / (passes + fails))
    assert report["cost"]["rollout_calls"] == 2 * (passes + fails)


def test_the_file_has_the_verdict_on_each_ticket(donewhen: Run, mission: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    assert donewhen(["audit-mission", "--out", str(out)], mission).returncode == 0
    rows = json.loads(out.read_text())["verdicts"]
    expected = {f"{row['group_id']}::{row['label']}": row["label"] for row in tickets(mission)}
    assert {row["ticket_key"]: row["label"] for row in rows} == expected
    counted = judged(donewhen, mission)
    assert Counter((row["label"], row["verdict"]) for row in rows) == counted
    assert all((row["score"] or 0) >= 0 for row in rows if row["verdict"] == "pass")


def test_nothing_in_the_mission_changes(donewhen: Run, mission: Path) -> None:
    def content() -> dict[str, tuple[bytes, int]]:
        files = (path for path in mission.rglob("*") if path.is_file())
        return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}

    before = content()
    assert donewhen(["audit-mission"], mission).returncode == 0
    assert donewhen(["audit-mission", "--quiet", "--guidance", "0"], mission).returncode == 0
    assert content() == before


def test_the_report_is_for_people_for_programs_and_for_a_browser(donewhen: Run, mission: Path, tmp_path: Path) -> None:
    page, out = tmp_path / "page.html", tmp_path / "report.json"
    done = donewhen(["audit-mission", "--page", str(page), "--out", str(out)], mission)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(out.read_text())
    assert_sentences(done.stdout)
    assert f"{report['before']['accuracy']['value']:.3f}" in done.stdout
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "<title>agent-reports: audit of the judge</title>" in text
    assert "<script" not in text
    assert not re.search(r"https?://", text)
    told = audited(donewhen, mission)
    # Only the file has the verdict on each ticket.
    assert len(report.pop("verdicts")) == len(tickets(mission))
    assert told.pop("verdicts") == []
    for one in (told, report):
        one["cost"].pop("seconds")
        one.pop("finished_at")
    assert told == report
    quiet = donewhen(["audit-mission", "--quiet", "--page", str(tmp_path / "again.html")], mission)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    assert (tmp_path / "again.html").is_file()


def test_a_report_that_has_no_place_to_go_is_said_before_anything_is_judged(donewhen: Run, mission: Path) -> None:
    for option in ("--page", "--out"):
        done = donewhen(["audit-mission", option, "nowhere/report"], mission)
        assert done.returncode == 2
        assert "nowhere/report" in done.stderr
        assert done.stdout == ""


def test_it_says_how_many_tickets_its_rules_were_learned_from(donewhen: Run, mission: Path) -> None:
    guidance = json.loads((mission / "guidance.json").read_text())["agent-reports"]
    evidence = {key for one in guidance["metadata"].values() for key in one["sources"]}
    report = audited(donewhen, mission)
    assert report["splits"]["test_learned_from"] == len(evidence) > 0
    assert [one["code"] for one in report["notes"] if one["serious"]] == ["learned_from"]
    at_first = audited(donewhen, mission, "--guidance", "0")
    assert at_first["splits"]["test_learned_from"] == 0


def test_other_rules_can_be_audited_from_a_file(donewhen: Run, mission: Path) -> None:
    (mission / "strict.json").write_text(json.dumps({"G0": "Unless a rule says otherwise, the verdict is fail."}))
    found = audited(donewhen, mission, "--guidance", "strict.json")
    assert (found["before"]["tpr"]["value"], found["before"]["tnr"]["value"]) == (0.0, 1.0)
    for wrong, told in (("99", "There is no step 99"), ("nowhere.json", "nowhere.json")):
        done = donewhen(["audit-mission", "--guidance", wrong], mission)
        assert done.returncode == 2
        assert told in done.stderr


def test_a_bad_line_is_named_and_no_model_is_invented(donewhen: Run, mission: Path) -> None:
    assert donewhen(["audit-mission", "--model", "oracle"], mission).returncode == 2
    with (mission / "tickets.jsonl").open("a") as file:
        file.write('{"group_id": "broken"\n')
    done = donewhen(["audit-mission"], mission)
    assert done.returncode == 2
    assert "tickets.jsonl:161: " in done.stderr


def test_whoever_watches_sees_how_often_the_judge_is_right_so_far(mission: Path) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*DONEWHEN, "audit-mission"],
        cwd=mission,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=follower,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120", "NO_COLOR": "1"},
    )
    os.close(follower)
    shown = b""
    try:
        while chunk := os.read(leader, 65536):
            shown += chunk
    except OSError:
        pass
    os.close(leader)
    assert process.wait(60) == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"judging +━+ 160/160 .*accuracy 0\.\d{3}, 320 calls", plain)


def test_hostile_texts_reach_neither_the_terminal_nor_the_page(donewhen: Run, mission: Path) -> None:
    rows = tickets(mission)
    for at, one in enumerate(rows):
        one["group_id"] = f"<promise>{at}</promise><script>x</script>"
        one["text"] += "\x1b[2J\x9b5m\u202e<script>alert(1)</script>"
    (mission / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = donewhen(["audit-mission", "--page", "page.html"], mission)
    assert done.returncode == 0, done.stderr
    for text in (done.stdout + done.stderr, (mission / "page.html").read_text()):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
        assert "<promise>" not in text
        assert "<script" not in text
