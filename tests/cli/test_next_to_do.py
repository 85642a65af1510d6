"""What the verbs say at the places where a newcomer does not know how to go on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen_kit import git_command

Run = Callable[..., subprocess.CompletedProcess[str]]
Person = Callable[..., Any]
CHECK = "It says yes :: run grep -q yes answer.txt"


@pytest.fixture
def done_job(tmp_path: Path, donewhen: Run, as_person: Person) -> Path:
    """A project in git with a job that is done."""
    git_command(tmp_path, "init", "-q")
    donewhen(["init", "--title", "Shop"], tmp_path)
    donewhen(["add", "Answer", "--criterion", CHECK, "--output", "/answer.txt"], tmp_path)
    git_command(tmp_path, "add", "-A")
    git_command(tmp_path, "commit", "-q", "-m", "Plan")
    played = as_person(["agree"], tmp_path)
    assert played.status == 0
    (tmp_path / "agreed.txt").write_text(played.screen)
    assert donewhen(["start", "001"], tmp_path).returncode == 0
    (tmp_path / "answer.txt").write_text("yes, the parser reads every line\n")
    done = donewhen(["complete", "001"], tmp_path)
    assert done.returncode == 0, done.stdout
    return tmp_path


def test_who_agreed_sees_which_files_to_commit(done_job: Path) -> None:
    assert "git add jobs .donewhen && git commit" in (done_job / "agreed.txt").read_text()


def test_a_start_of_a_done_job_says_that_it_is_open_again_and_how_to_close_it(done_job: Path, donewhen: Run) -> None:
    started = donewhen(["start", "001"], done_job)
    assert "It was done. It is open again, and its promise is no longer valid." in started.stdout
    assert json.loads(donewhen(["start", "001", "--json"], done_job).stdout)["data"]["reopened"] is False
    assert donewhen(["complete", "001"], done_job).returncode == 0
    assert json.loads(donewhen(["start", "001", "--json"], done_job).stdout)["data"]["reopened"] is True


def test_a_job_that_is_no_longer_done_is_not_counted_and_is_to_be_completed_again(
    done_job: Path, donewhen: Run
) -> None:
    (done_job / "answer.txt").write_text("yes, and more than that\n")
    status = donewhen(["status"], done_job).stdout
    assert "1 no_longer_done" in status
    assert "(next: donewhen complete WI-" in status
    assert donewhen(["complete", "001"], done_job).returncode == 0
    assert "1 done" in donewhen(["status"], done_job).stdout


def test_the_default_output_is_said_and_a_named_one_is_not(tmp_path: Path, donewhen: Run) -> None:
    donewhen(["init", "--title", "Shop"], tmp_path)
    assert "/outputs/primary.md; if the work is in other files" in donewhen(["add", "One"], tmp_path).stdout
    assert "primary.md" not in donewhen(["add", "Two", "--output", "/two.txt"], tmp_path).stdout


def test_the_job_that_the_help_of_init_shows_can_be_agreed_to(tmp_path: Path, donewhen: Run, as_person: Person) -> None:
    shown = donewhen(["init", "--help"], tmp_path).stdout
    assert "--criterion" in shown
    assert "--output /src/login.py" in shown
    donewhen(["init", "--title", "Shop"], tmp_path)
    added = donewhen(
        [
            *("add", "Log in with a password"),
            *("--criterion", "A wrong password is refused :: run python -m pytest -q", "--output", "/src/login.py"),
        ],
        tmp_path,
    )
    assert added.returncode == 0
    played = as_person(["agree", "--no-baseline"], tmp_path)
    assert played.status == 0, played.screen
