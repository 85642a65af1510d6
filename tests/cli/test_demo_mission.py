"""The made-up reports that the demo's judge learns from."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.demo.example_mission import NOISE, examples, make_mission
from donewhen.demo.story_mission import mission_file, sample_for
from donewhen.foundation.errors import UsageError
from donewhen.judging.mission import check_mission
from sentences import assert_sentences

Donewhen = Callable[..., subprocess.CompletedProcess[str]]


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
    with pytest.raises(UsageError) as caught:
        make_mission(tmp_path / "reports", 50)
    assert_sentences(caught.value)


def test_the_example_can_be_made_by_a_command_and_learned_from(donewhen: Donewhen, tmp_path: Path) -> None:
    made = donewhen(["mission", "example", "reports", "--tickets", "160"], tmp_path)
    assert made.returncode == 0, made.stderr
    assert_sentences(made.stdout)
    learned = donewhen(["learn", "reports", "--json"], tmp_path)
    assert learned.returncode == 0, learned.stderr
    data = json.loads(learned.stdout)["data"]
    assert data["status"] == "finished"
    assert data["summary"]["after"]["accuracy"]["value"] > data["summary"]["before"]["accuracy"]["value"]
    assert (tmp_path / data["report"]).read_text().startswith("<!doctype html>")
    again = donewhen(["mission", "example", "reports"], tmp_path)
    assert again.returncode == 2
    assert_sentences(again.stderr)


@pytest.mark.parametrize("model", ["contrast", "local", 'local:/with "quotes"/model.gguf'])
def test_what_the_story_sets_is_a_mission_with_any_model(tmp_path: Path, model: str) -> None:
    sample = sample_for(model)
    make_mission(tmp_path, sample.tickets)
    file = tmp_path / "mission.toml"
    file.write_text(mission_file(file.read_text(), model, sample))
    checked = check_mission(tmp_path)
    assert checked.problems == ()
    assert checked.mission is not None
    settings = checked.mission.settings
    assert (settings.model, settings.from_job.parts, settings.rules.max_length) == (model, ("outputs",), 80)


def test_a_model_that_takes_its_time_is_asked_less() -> None:
    assert sample_for("local").tickets < sample_for("contrast").tickets
