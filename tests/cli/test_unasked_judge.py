"""A judge that can't be asked: what is wrong is said where it matters, and nothing else is claimed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import JUDGED, TAUGHT, Court

from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def court(repository: Path, git: Callable[..., str]) -> Court:
    return Court(repository, git, rules=TAUGHT)


def test_an_override_that_is_gone_is_a_reason_and_no_crash(court: Court, donewhen: Run) -> None:
    path = court.folder / "mission.toml"
    path.write_text("overrides = ['mine.py:say']\n" + path.read_text())
    code = court.write("missions/reports/mine.py", "def say(ticket, vote):\n    return None\n")
    job = court.job(JUDGED)
    code.unlink()
    done = donewhen(["complete", job.id], court.root)
    assert (done.returncode, done.stderr) == (1, "")
    assert "[agreement_voided]" in done.stdout
    assert "[criterion_not_shown]" in done.stdout
    assert_sentences(done.stdout)
    assert donewhen(["why", job.id], court.root).returncode == 1


def test_what_could_not_be_asked_did_not_change_meanwhile(court: Court, donewhen: Run) -> None:
    job = court.job(JUDGED)
    (court.folder / "mission.toml").write_text("no toml\n")
    done = donewhen(["run", job.id], court.root)
    assert done.returncode == 1
    assert_sentences(done.stdout)
