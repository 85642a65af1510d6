"""`donewhen dispute`: an agent that disagrees with a refusal, and a person who decides."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import JUDGED, TAUGHT, Court

from donewhen.judging.labels import read_label_log
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]
Person = Callable[..., Any]


@pytest.fixture
def court(repository: Path, git: Callable[..., str]) -> Court:
    """Its judge fails whatever mentions lorem."""
    return Court(repository, git, rules=TAUGHT)


def test_a_refusal_is_disputed_and_a_person_overrules_the_judge(court: Court, donewhen: Run, as_person: Person) -> None:
    job = court.job(JUDGED, work="lorem, but with good reason\n")
    refused = donewhen(["complete", job.id], court.root)
    assert refused.returncode == 1
    assert_sentences(refused.stdout)
    done = donewhen(["dispute", job.id, "--reason", "lorem is the name of the customer"], court.root)
    assert done.returncode == 0
    assert_sentences(done.stdout)
    played = as_person(["review"], court.root, keys=["p"])
    assert_sentences(played.screen)
    completed = donewhen(["complete", job.id], court.root)
    assert f"<promise>{job.id}-DONE</promise>" in completed.stdout
    assert [one.label for one in read_label_log(court.folder)] == ["pass"]


def test_programs_are_told_what_is_disputed(court: Court, donewhen: Run) -> None:
    job = court.job(JUDGED, work="lorem\n")
    donewhen(["complete", job.id], court.root)
    told = json.loads(donewhen(["dispute", job.id, "--reason", "no", "--json"], court.root).stdout)
    assert told["data"] == {"job": job.id, "status": "blocked", "criteria": ["AC-1"], "reason": "no"}


def test_what_was_not_refused_can_not_be_disputed(court: Court, donewhen: Run) -> None:
    job = court.job(JUDGED)
    done = donewhen(["dispute", job.id, "--reason", "no"], court.root)
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert f"donewhen complete {job.id}" in done.stderr


def test_a_dispute_in_the_log_names_its_criteria(court: Court, donewhen: Run) -> None:
    job = court.job(JUDGED, work="lorem\n")
    donewhen(["complete", job.id], court.root)
    donewhen(["dispute", job.id, "--reason", "it is\x1b[31m fine"], court.root)
    log = donewhen(["log", job.id], court.root).stdout
    assert "dispute AC-1: it is fine" in log
