"""reward-eval and truth-eval over all jobs, as scripts call them with nothing but a project."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace

Donewhen = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


def made(shop: Workspace, title: str) -> Job:
    job = add_job(shop, title, criteria=["It is there\n  check: file outputs/primary.md"])
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, Approval(person_at_terminal()))
    assert start_job(shop, job.id, unproved_actor()).started
    return job


def told(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    data: dict[str, object] = json.loads(done.stdout)
    return data


def test_every_job_is_scored_and_one_below_its_target_is_enough_to_fail(shop: Workspace, donewhen: Donewhen) -> None:
    good, bad = made(shop, "Good"), made(shop, "Bad")
    (good.folder / "outputs" / "primary.md").write_text("Twelve lines of text.\n")
    assert donewhen(["truth-eval", good.id], shop.root).returncode == 0
    done = donewhen(["reward-eval", "--project", str(shop.root), "--json"], shop.root.parent)
    assert done.returncode == 1
    envelope = told(done)
    jobs = envelope["data"]["jobs"]  # type: ignore[index]
    assert [job["job"] for job in jobs] == [good.id, bad.id]
    assert jobs[0]["score"]["total"] >= 80 > jobs[1]["score"]["total"]
    assert [one["code"] for one in envelope["findings"]] == ["score_too_low"]  # type: ignore[attr-defined]


def test_every_job_is_checked_and_what_is_stale_is_run(shop: Workspace, donewhen: Donewhen) -> None:
    job = made(shop, "Good")
    (job.folder / "outputs" / "primary.md").write_text("Twelve lines of text.\n")
    done = donewhen(["truth-eval", "--json"], shop.root)
    assert done.returncode == 0
    (checked,) = told(done)["data"]["jobs"]
    assert checked == {
        "job": job.id,
        "state": "completable",
        "code": None,
        "next": f"donewhen complete {job.id}",
        "status": "pass",
        "mode": "strict",
        "failures": [],
    }
    assert [entry.type for entry in shop.ledger.read(job.id).entries][-2:] == ["ran", "evaluated"]


def test_a_cancelled_job_is_left_out_and_a_broken_one_stops_nobody(shop: Workspace, donewhen: Donewhen) -> None:
    gone, broken, good = made(shop, "Gone"), made(shop, "Broken"), made(shop, "Good")
    decide(shop, gone, Decision("cancel", "Not wanted."), Approval(person_at_terminal()))
    broken.path.write_text("---\ntitle: [\n---\n")
    (good.folder / "outputs" / "primary.md").write_text("Twelve lines of text.\n")
    done = donewhen(["truth-eval", "--json"], shop.root)
    assert done.returncode == 1
    envelope = told(done)
    assert [one["job"] for one in envelope["data"]["jobs"]] == [good.id]  # type: ignore[index]
    assert [one["code"] for one in envelope["findings"]] == ["document"]  # type: ignore[attr-defined]


def test_no_jobs_at_all_is_no_pass(shop: Workspace, donewhen: Donewhen) -> None:
    done = donewhen(["reward-eval", "--json"], shop.root)
    assert done.returncode == 1
    assert [one["code"] for one in told(done)["findings"]] == ["no_job"]  # type: ignore[attr-defined]


@pytest.mark.powerless
def test_reward_and_next_work_where_nothing_can_be_written(tmp_path: Path, donewhen: Donewhen) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    assert donewhen(["init", "--title", "Shop"], root).returncode == 0
    assert donewhen(["add", "Sell", "--criterion", "It works"], root).returncode == 0
    job = next(find_workspace(root).places()).id
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    for folder in folders:
        folder.chmod(0o500)
    try:
        scored = donewhen(["reward", job, "--json"], root)
        step = donewhen(["next", job, "--json"], root)
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert (scored.returncode, step.returncode) == (1, 0), scored.stderr + step.stderr
    assert json.loads(scored.stdout)["data"]["job"] == job
    assert json.loads(step.stdout)["data"]["next"] == f"donewhen agree {job}"
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
