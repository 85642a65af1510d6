"""A check that fails and then passes on the same files waits for a person."""

from __future__ import annotations

from pathlib import Path

import pytest
from room_kit import GOOD, LAZY, PRICE, PYTHON, SHOP, Bench

from donewhen.jobs.gates.evidence_status import collect_evidence, evidence_statuses
from donewhen.jobs.judge.person_overrides import override_gate
from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.plan.job import Job
from donewhen.review.queue import review_queue

pytestmark = pytest.mark.scenes

DICE = "import secrets, sys\n\nsys.exit(secrets.randbelow(2))\n"
DICE_TEST = """\
import secrets
import unittest


class DiceTest(unittest.TestCase):
    def test_dice(self):
        self.assertEqual(secrets.randbelow(2), 0)
"""
_MANY = 60
"""As good as certain that both sides are seen."""


def run(bench: Bench, job: Job) -> str:
    """Run the check, and return the state of its criterion."""
    collect_evidence(bench.workspace, job, unproved_actor())
    return next(status.state for status in evidence_statuses(bench.workspace, job) if status.requirement.name == "AC-1")


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"check.py": DICE}, f"{PYTHON} check.py"),
        ({"tests/test_dice.py": DICE_TEST}, f"{PYTHON} -m unittest tests/test_dice.py"),
    ],
    ids=["script", "tests"],
)
def test_green_after_red_on_the_same_files_needs_a_person(tmp_path: Path, files: dict[str, str], command: str) -> None:
    bench = Bench(tmp_path / "shop", {**SHOP, **files})
    job = bench.job(f"The check passes\n  check: run {command}")
    for number in range(_MANY):
        bench.write(PRICE, f"{GOOD}\n# {number}\n")
        if run(bench, job) == "failed":
            break
    assert next(state for state in (run(bench, job) for _ in range(_MANY)) if state != "failed") == "needs_human"
    assert bench.complete(job).codes == {"run_flaky"}
    (item,) = [item for item in review_queue(bench.workspace) if item.kind == "flaky"]
    assert item.criterion == "AC-1"
    override_gate(bench.workspace, job, "AC-1", "pass", "It rolls dice.", Approval(person_at_terminal()))
    assert not [item for item in review_queue(bench.workspace) if item.kind == "flaky"]
    assert bench.complete(job).done


def test_green_after_red_on_other_files_is_honest_work(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job()
    bench.write(PRICE, LAZY)
    assert not bench.complete(job).done
    bench.write(PRICE, GOOD)
    assert bench.complete(job).done
