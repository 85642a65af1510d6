"""A judge passes nothing that it was not shown: work that is hidden from it is left to a person."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import JUDGED, TAUGHT, Court

from donewhen.jobs.judge.job_ticket import fit_to_size, outputs_not_shown
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]
BAD = b"lorem lorem lorem\n"


@pytest.fixture
def court(repository: Path, git: Callable[..., str]) -> Court:
    """Its judge fails whatever mentions lorem, and passes all else."""
    return Court(repository, git, rules=TAUGHT)


@pytest.mark.parametrize(
    "work",
    [BAD + b"\0", b"\xff" + BAD, b"fine\n" * 20_000 + BAD + b"fine\n" * 20_000, b" " * (5 << 20) + BAD],
    ids=["one byte of zero", "one byte of no text", "in the middle of much", "more than is read"],
)
def test_bad_work_that_no_judge_can_read_is_left_to_a_person(court: Court, donewhen: Run, work: bytes) -> None:
    job = court.job(JUDGED, work=None)
    court.write("report.md", work)
    done = donewhen(["complete", job.id], court.root)
    assert (done.returncode, "<promise>" in done.stdout) == (1, False)
    assert "[needs_human]" in done.stdout
    assert_sentences(done.stdout)
    assert donewhen(["review", "--list"], court.root).stdout.count("low agreement") == 1


def test_bad_work_behind_many_other_outputs_is_left_to_a_person(court: Court, donewhen: Run) -> None:
    job = court.job(JUDGED, work=BAD.decode())
    names = [f"filler/{number}.md" for number in range(250)]
    for name in names:
        court.write(name, "fine\n")
    before = "outputs:\n  - /report.md\n"
    job = court.edit(job, before, "outputs:\n" + "".join(f"  - /{name}\n" for name in names) + "  - /report.md\n")
    done = donewhen(["complete", job.id], court.root)
    assert (done.returncode, "[needs_human]" in done.stdout, "<promise>" in done.stdout) == (1, True, False)


def test_a_fail_needs_nobody_to_have_seen_all_of_it(court: Court, donewhen: Run) -> None:
    job = court.job(JUDGED, outputs=["/report.md", "/picture.png"], work=BAD.decode())
    court.write("picture.png", b"\x89PNG\0")
    assert "[criterion_failed]" in donewhen(["complete", job.id], court.root).stdout


def test_what_was_cut_out_is_known_however_little_room_there_is() -> None:
    parts = {f"output {number}": "x" * 200 for number in range(60)} | {"evidence AC-1 1": "y" * 2000}
    for most in (0, 60, 1000, 11_000):
        assert outputs_not_shown(fit_to_size(parts, most)) == tuple(parts)[:60]
    assert outputs_not_shown(fit_to_size(parts, 14_000)) == ()
