"""The story of a judge that learns in writing, as `donewhen demo --judge` tells it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.demo.example_mission import NOISE, examples, make_mission
from donewhen.foundation.errors import UsageError
from donewhen.judging.mission import check_mission

Donewhen = Callable[..., subprocess.CompletedProcess[str]]


def test_the_judge_gets_better_on_reports_that_it_has_not_seen(donewhen: Donewhen, tmp_path: Path) -> None:
    done = donewhen(["demo", "--judge", "--json"], tmp_path)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["data"]
    report = data["report"]
    assert report["status"] == "finished"
    assert report["after"]["accuracy"]["value"] > report["before"]["accuracy"]["value"] + 0.3
    assert report["comparison"]["p"] < 0.001
    told = [one["text"] for one in data["story"] if one["who"] == "learned"]
    assert len(told) == sum(row["key"][0] == "G" and row["key"] != "G0" for row in report["rules"]) > 0
    assert "skipped" in " ".join(told)
    assert any("look wrong" in one["text"] for one in data["story"])
    assert list(tmp_path.iterdir()) == []


def test_the_story_is_told_to_people_in_words(donewhen: Donewhen, tmp_path: Path) -> None:
    done = donewhen(["demo", "--judge"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "made up" in done.stdout
    assert "nothing was trained" in done.stdout


def test_one_story_at_a_time(donewhen: Donewhen, tmp_path: Path) -> None:
    done = donewhen(["demo", "--judge", "--job"], tmp_path)
    assert done.returncode == 2
    assert "One story at a time" in done.stderr


def test_the_made_up_reports_are_the_same_for_a_seed_and_wrong_now_and_then() -> None:
    found = list(examples(600))
    assert found == list(examples(600))
    assert found != list(examples(600, seed=8))
    assert 0.5 * NOISE < sum(one.noisy for one in found) / 600 < 2 * NOISE
    for one in found:
        rules = "skipped" in one.text, "EVIDENCE" not in one.text, int(one.text.split("Unreviewed files: ")[1][0]) > 2
        assert (one.label == "fail") == (any(rules) != one.noisy)


def test_the_example_is_a_mission_like_any_other(tmp_path: Path) -> None:
    make_mission(tmp_path / "reports", 50)
    checked = check_mission(tmp_path / "reports")
    assert checked.problems == ()
    assert checked.passes + checked.fails == 50
    with pytest.raises(UsageError, match="already"):
        make_mission(tmp_path / "reports", 50)


def test_the_example_can_be_made_by_a_command_and_learned_from(donewhen: Donewhen, tmp_path: Path) -> None:
    made = donewhen(["mission", "example", "reports", "--tickets", "120"], tmp_path)
    assert made.returncode == 0, made.stderr
    assert "120 made-up reports" in made.stdout
    learned = donewhen(["learn", "reports", "--json"], tmp_path)
    assert learned.returncode == 0, learned.stderr
    data = json.loads(learned.stdout)["data"]
    assert data["status"] == "finished"
    assert data["summary"]["after"]["accuracy"]["value"] > data["summary"]["before"]["accuracy"]["value"]
    assert (tmp_path / data["report"]).read_text().startswith("<!doctype html>")
    again = donewhen(["mission", "example", "reports"], tmp_path)
    assert again.returncode == 2
    assert "There is a mission already" in again.stderr
