"""A project that was agreed to before there were rooms stays agreed, and is checked in the work tree as before.

``old_formats/without_rooms.tar.gz`` holds it: a job that is done, one in progress and one that is only agreed.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import Agreed, CommandRun, Completed
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.lifecycle.agreeing import lacks_work_area
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.promise import verify_promise
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.verifying.verify import verify_branch

ARCHIVE = Path(__file__).parents[1] / "old_formats" / "without_rooms.tar.gz"
DONE, BEGUN, AGREED = (f"WI-20260214-{number:03d}" for number in (1, 2, 3))
BOT = Actor("bot")
Git = Callable[..., str]


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "shop", filter="data")
    return find_workspace(tmp_path / "shop")


def work(shop: Workspace) -> None:
    (shop.root / "table.csv").write_text("name,price\nbread,2\nmilk,1\n")


def test_nothing_is_voided_and_every_state_is_the_same(shop: Workspace) -> None:
    survey = survey_jobs(shop)
    assert survey.problems == ()
    assert {job.id: (job.status, job.recorded, job.agreement) for job in survey.jobs} == {
        DONE: ("done", "done", "agreed"),
        BEGUN: ("in_progress", "in_progress", "agreed"),
        AGREED: ("planned", "planned", "agreed"),
    }
    assert [finding for finding in audit_workspace(shop).findings if finding.severity == "error"] == []
    assert verify_promise(shop, (shop.root / "promise.txt").read_text(), approval_policy(shop)).real
    assert [job.id for job in map(shop.job, (DONE, BEGUN, AGREED)) if lacks_work_area(shop, job)] == [BEGUN, AGREED]


def test_a_job_in_progress_is_completed_in_the_work_tree(shop: Workspace) -> None:
    assert not complete(shop, BEGUN, BOT).done
    work(shop)
    done = complete(shop, BEGUN, BOT)
    assert done.done
    runs = [entry.content for entry in shop.ledger.read(BEGUN).entries if isinstance(entry.content, CommandRun)]
    assert {run.room for run in runs} == {None}
    assert done.entry.read_as(Completed).work == {}
    assert complete(shop, DONE, BOT).repeated


def test_verify_says_that_it_has_no_work_area_and_passes_honest_work(shop: Workspace, git: Git) -> None:
    git(shop.root, "init", "-q", "-b", "main")
    git(shop.root, "add", "-A")
    git(shop.root, "commit", "-q", "-m", "Before")
    git(shop.root, "checkout", "-q", "-b", "work")
    work(shop)
    assert complete(shop, BEGUN, BOT).done
    git(shop.root, "add", "-A")
    git(shop.root, "commit", "-q", "-m", "Three prices")
    found = verify_branch(shop, "main")
    assert found.passed
    assert FindingCode.NO_WORK_AREA in {note.code for note in found.notes}


def test_agreeing_to_a_job_by_its_name_proposes_a_work_area(shop: Workspace, as_person: Any) -> None:
    said = as_person(["agree"], shop.root)
    assert said.status == 0
    assert f"donewhen agree {BEGUN}" in said.screen
    assert as_person(["agree", BEGUN], shop.root).status == 0
    agreed = [entry.content for entry in shop.ledger.read(BEGUN).entries if isinstance(entry.content, Agreed)]
    assert agreed[-1].tree is not None
    assert not lacks_work_area(shop, shop.job(BEGUN))
    work(shop)
    done = complete(shop, BEGUN, BOT)
    assert done.done
    assert done.entry.read_as(Completed).work.keys() == {"table.csv"}
