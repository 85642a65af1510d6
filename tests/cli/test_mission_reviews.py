"""`donewhen mission new` and `donewhen mission reviews`: a mission to come, and what people have said about one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import label, said, write_mission

from donewhen.judging.labels import add_label
from donewhen.judging.mission import read_mission
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    toml = "[manual_review]\ndrift_window = 6\nalarm_below = 0.7"
    return write_mission(tmp_path / "reports", toml, model="contrast")


def looked_at(folder: Path, right: str) -> None:
    for number, sign in enumerate(right):
        given = said("pass" if sign == "+" else "fail")
        add_label(folder, "reports", label(f"T{number}", "pass", said=given))


# new


def test_a_mission_without_tickets_says_how_jobs_name_it(tmp_path: Path, donewhen: Run) -> None:
    rules = ["--rule", 'When "lorem" occurs, the verdict is fail.', "--rule", "Be fair."]
    done = donewhen(["mission", "new", "missions/reports", *rules], tmp_path)
    assert done.returncode == 0
    assert "check: judge:reports" in done.stdout
    mission = read_mission(tmp_path / "missions" / "reports")
    assert mission.name == "reports"
    assert list(mission.initial_guidance().scaffold.values()) == [rules[1], rules[3]]
    again = donewhen(["mission", "new", "missions/reports"], tmp_path)
    assert again.returncode == 2
    assert_sentences(again.stderr)


def test_a_name_and_a_language_can_be_chosen(tmp_path: Path, donewhen: Run) -> None:
    done = donewhen(["mission", "new", "x", "--name", "Berichte", "--language", "zh", "--json"], tmp_path)
    assert json.loads(done.stdout)["data"] == {"mission": "Berichte", "folder": "x", "language": "zh"}
    assert read_mission(tmp_path / "x").settings.language == "zh"


@pytest.mark.parametrize("options", [["--name", "a\nb"], ["--language", "klingon"], ["--rule", " "]])
def test_what_can_not_be_used_leaves_nothing_behind(tmp_path: Path, donewhen: Run, options: list[str]) -> None:
    done = donewhen(["mission", "new", "x", *options], tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x").exists()


# reviews


def test_agreement_and_drift_are_told(folder: Path, donewhen: Run) -> None:
    looked_at(folder, "++++++")
    add_label(folder, "reports", label("T0", "fail", "ben"))
    done = donewhen(["mission", "reviews", "reports"], folder.parent)
    assert done.returncode == 0
    assert "labelled by people: 6 ticket(s) (ada 6, ben 1)" in done.stdout
    assert_sentences(done.stdout)


def test_an_alarm_is_an_exit_status_with_what_to_do(folder: Path, donewhen: Run) -> None:
    looked_at(folder, "+++---")
    done = donewhen(["mission", "reviews", "reports"], folder.parent)
    assert done.returncode == 1
    assert_sentences(done.stdout)
    told = json.loads(donewhen(["mission", "reviews", "reports", "--json"], folder.parent).stdout)
    assert (told["ok"], told["data"]["alarm"], told["data"]["of"]) == (False, True, 6)
    assert [one["code"] for one in told["findings"]] == ["drift"]


def test_half_a_window_says_nothing_yet(folder: Path, donewhen: Run) -> None:
    looked_at(folder, "--")
    assert donewhen(["mission", "reviews", "reports"], folder.parent).returncode == 0
    looked_at(folder, "---")
    assert donewhen(["mission", "reviews", "reports"], folder.parent).returncode == 1


def test_a_page_has_the_plot_and_no_markup_from_names(folder: Path, donewhen: Run) -> None:
    looked_at(folder, "++++-+")
    evil = "<script>alert(1)</script>"
    for number in range(3):
        add_label(folder, "reports", label(f"T{number}", "pass", evil))
    done = donewhen(["mission", "reviews", "reports", "--html", "page.html"], folder.parent)
    assert done.returncode == 0
    page = (folder.parent / "page.html").read_text()
    assert "<svg" in page and "&lt;script&gt;" in page
    assert "<script>alert" not in page


def test_labels_that_can_not_be_read_are_an_error_with_their_place(folder: Path, donewhen: Run) -> None:
    looked_at(folder, "+")
    path = folder / "reviews.jsonl"
    path.write_text("no label\n" + path.read_text())
    done = donewhen(["mission", "reviews", "reports"], folder.parent)
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert "Traceback" not in done.stderr
