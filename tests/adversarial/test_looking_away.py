"""Nobody keeps people from looking at a judge: fewer spot checks and a later alarm are for people to agree to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import JUDGED, TAUGHT, Court, write_mission

from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]
BEFORE = {"spot_check": 0.5, "alarm_below": 0.5}


def review(court: Court, **more: float) -> None:
    toml = "\n".join(["[manual_review]", *(f"{name} = {value}" for name, value in (BEFORE | more).items())])
    write_mission(court.folder, toml, TAUGHT, model="contrast")


@pytest.fixture
def court(repository: Path, git: Callable[..., str]) -> Court:
    court = Court(repository, git, rules=TAUGHT)
    review(court)
    return court


@pytest.mark.parametrize("name", BEFORE)
def test_less_of_it_voids_the_agreement_and_more_does_not(court: Court, donewhen: Run, name: str) -> None:
    job = court.job(JUDGED)
    review(court, **{name: 0.0})
    done = donewhen(["complete", job.id], court.root)
    assert (done.returncode, "<promise>" in done.stdout) == (1, False)
    assert court.workspace.project().id in done.stdout
    assert name in done.stdout
    assert_sentences(done.stdout)
    review(court, **{name: 1.0})
    assert donewhen(["complete", job.id], court.root).returncode == 0
