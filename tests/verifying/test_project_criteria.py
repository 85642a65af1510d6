"""The criteria of the project itself are checked when a branch claims that the whole project is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from verify_room_kit import PYTHON, RIGHT, WRONG, RoomShop

from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.verifying import JobCases, Verification, verify_branch

pytestmark = pytest.mark.scenes

ALL = "import sys\n\nsys.path.insert(0, 'src')\nfrom shop.price import total\n\nsys.exit(total([2, 3]) != 5)\n"
THERE = f"run {PYTHON} -c pass"


class Whole(RoomShop):
    """The project has a criterion of its own, which is stricter than that of its job."""

    def __init__(self, folder: Path, criterion: str = f"check: run {PYTHON} all.py") -> None:
        super().__init__(folder, {"all.py": ALL})
        if criterion:
            path = self.workspace.project_file
            text = path.read_text()
            head, mark, rest = text.partition("## Acceptance Criteria\n")
            assert mark
            path.write_text(f"{head}{mark}\n- AC-1: All of it works\n  {criterion}\n{rest}")

    def forged(self, job: Job | None) -> None:
        """Append a completion that rests on nothing."""
        data: dict[str, Any] = {"score": 100, "gates": {}, "writes": {"status": ["planned", "done"]}}
        project = self.workspace.project()
        self.workspace.ledger.append(project.id if job is None else job.id, "completed", data, Actor("bot"))

    def judged(self) -> tuple[Verification, JobCases | None]:
        """What CI says, and what of it is about the project."""
        self.commit("The work")
        found = verify_branch(self.workspace, "main")
        project = self.workspace.project().id
        return found, next((cases for cases in found.jobs if cases.id == project), None)


def outcomes(cases: JobCases | None) -> dict[str, str]:
    assert cases is not None
    return {case.name: case.outcome for case in cases.cases}


def test_a_project_that_is_done_meets_its_criteria(tmp_path: Path) -> None:
    shop = Whole(tmp_path / "shop")
    job = shop.agreed(THERE)
    shop.git("switch", "-q", "-c", "agent")
    shop.write("src/shop/price.py", RIGHT)
    start_job(shop.workspace, job.id, unproved_actor())
    done = complete(shop.workspace, job.id, unproved_actor())
    assert done.done and not done.unmet
    found, project = shop.judged()
    assert found.passed, found.reasons
    assert outcomes(project) == {"jobs": "passed", "truth": "passed", "AC-1": "passed"}


@pytest.mark.parametrize(
    "work",
    [
        {"src/shop/price.py": f"# Lazy.\n{WRONG}"},
        {"src/shop/price.py": f"# Lazy.\n{WRONG}", "all.py": "# Everything is fine.\n"},
        {"src/shop/price.py": f"# Lazy.\n{WRONG}", "conftest.py": "", "shop.py": "total = sum\n"},
    ],
)
def test_a_project_that_is_said_to_be_done_is_checked(tmp_path: Path, work: dict[str, str]) -> None:
    shop = Whole(tmp_path / "shop")
    job = shop.agreed(THERE)
    shop.git("switch", "-q", "-c", "agent")
    for name, text in work.items():
        shop.write(name, text)
    shop.forged(job)
    shop.forged(None)
    found, project = shop.judged()
    assert not found.passed
    assert outcomes(project)["AC-1"] == "failed"


def test_a_project_with_open_jobs_is_not_done(tmp_path: Path) -> None:
    shop = Whole(tmp_path / "shop")
    job = shop.agreed(THERE)
    shop.agreed(THERE, title="Another one")
    shop.git("switch", "-q", "-c", "agent")
    shop.write("src/shop/price.py", RIGHT)
    shop.forged(job)
    shop.forged(None)
    found, project = shop.judged()
    assert outcomes(project)["jobs"] == "failed"
    assert any(reason.code == "dependency_open" for reason in found.reasons)


def test_while_jobs_are_open_nobody_is_asked_for_the_whole(tmp_path: Path) -> None:
    shop = Whole(tmp_path / "shop")
    job = shop.agreed(THERE)
    shop.agreed(THERE, title="Another one")
    shop.git("switch", "-q", "-c", "agent")
    shop.write("src/shop/price.py", f"# Not yet.\n{WRONG}")
    start_job(shop.workspace, job.id, unproved_actor())
    assert complete(shop.workspace, job.id, unproved_actor()).done
    found, project = shop.judged()
    assert found.passed, found.reasons
    assert outcomes(project) == {"not run": "skipped"}


def test_a_project_without_criteria_is_not_mentioned(tmp_path: Path) -> None:
    shop = Whole(tmp_path / "shop", "")
    job = shop.agreed(THERE)
    shop.git("switch", "-q", "-c", "agent")
    shop.write("src/shop/price.py", RIGHT)
    start_job(shop.workspace, job.id, unproved_actor())
    assert complete(shop.workspace, job.id, unproved_actor()).done
    found, project = shop.judged()
    assert found.passed, found.reasons
    assert project is None
