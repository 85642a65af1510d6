"""How the tool that this format comes from breaks, as its users measured it; each must not happen here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, DecisionKind, decide
from donewhen.jobs.ledger.approval import Approval, Policy, person_at_terminal, unproved_actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.planning import check_plan
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.record.history import History, history_of

Donewhen = Callable[..., subprocess.CompletedProcess[str]]


class Shop:
    """A project whose jobs each make a file of their own."""

    def __init__(self, root: Path, *, big: bool = False) -> None:
        self.workspace: Workspace = create_project(root, "Shop", form="big" if big else "small")
        self.root = self.workspace.root

    def job(self, name: str, *depends_on: str, agreed: bool = True, **more: Any) -> Job:
        criterion = f"It is there\n  check: file /{name}.txt"
        job = add_job(
            self.workspace, name, outputs=[f"/{name}.txt"], criteria=[criterion], depends_on=depends_on, **more
        )
        if agreed:
            self.agree(job)
        return self.workspace.job(job.id)

    def agree(self, *jobs: Job) -> None:
        for proposal in agreement_proposals(self.workspace, [self.workspace.job(job.id) for job in jobs]):
            agree(self.workspace, proposal, Approval(person_at_terminal()))

    def start(self, job: Job) -> bool:
        return start_job(self.workspace, job.id, unproved_actor()).started

    def done(self, name: str, *depends_on: str) -> Job:
        job = self.job(name, *depends_on)
        assert self.start(job)
        (self.root / f"{name}.txt").write_text(f"The result of {name}.\n")
        assert complete(self.workspace, job.id, unproved_actor()).done
        return job

    def decide(self, job: Job, kind: DecisionKind, value: Any = None) -> None:
        decision = Decision(kind, "We talked about it.", value)
        assert decide(self.workspace, self.workspace.job(job.id), decision, Approval(person_at_terminal())).counts

    def history(self, name: str) -> History:
        return history_of(name, self.workspace.ledger.read(name).entries, Policy())

    def problems(self) -> list[tuple[str, str]]:
        found = check_plan(self.workspace, survey_jobs(self.workspace), Policy())
        return [(problem.code, problem.message) for problem in found]

    def errors(self) -> list[str]:
        return [
            f"{finding.code} {finding.message}"
            for finding in audit_workspace(self.workspace).findings
            if finding.severity == "error"
        ]


@pytest.fixture
def shop(repository: Path) -> Shop:
    return Shop(repository)


def at_once(commands: Sequence[Sequence[str]], folder: Path) -> list[tuple[int, str]]:
    """Run all of these at the same time: the exit status and the output of each."""
    processes = [
        subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands
    ]
    outputs = [process.communicate()[0] for process in processes]
    return [(process.returncode, output) for process, output in zip(processes, outputs, strict=True)]


# Many at once


@pytest.mark.parametrize("big", [False, True], ids=["small form", "big form"])
def test_eight_jobs_started_at_once_are_all_started_and_the_project_is_whole(tmp_path: Path, big: bool) -> None:
    shop = Shop(tmp_path, big=big)
    more = {"workstream": "Stream"} if big else {}
    jobs = [shop.job(f"job{number}", **more) for number in range(8)]
    project = shop.workspace.project()
    results = at_once([["-m", "donewhen", "start", job.id] for job in jobs], shop.root)
    assert [status for status, _ in results] == [0] * 8, results
    after = shop.workspace.project()
    assert (after.id, after.title, after.status) == (project.id, project.title, "in_progress")
    assert after.document.body == project.document.body
    assert [shop.workspace.job(job.id).status for job in jobs] == ["in_progress"] * 8
    assert [entry.type for entry in shop.workspace.ledger.read(project.id).entries].count("started") == 1
    assert shop.errors() == []
    shown = json.loads((shop.workspace.base / "outputs" / "dashboard.json").read_text())
    assert shown["counts"] == {"planned": 0, "in_progress": 8, "blocked": 0, "done": 0, "cancelled": 0}


EVALUATE = """
import sys
from pathlib import Path
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.plan.workspace import find_workspace
workspace = find_workspace(Path.cwd())
for place in list(workspace.places()):
    evaluate_and_record(workspace, place.id, unproved_actor(), collecting=sys.argv[1] == "truth")
"""


def test_two_scorers_and_two_truth_checks_at_once_lose_no_job(shop: Shop) -> None:
    jobs = [shop.job(f"job{number}", agreed=False) for number in range(15)]
    shop.agree(*jobs)
    for number in range(0, 15, 2):
        (shop.root / f"job{number}.txt").write_text("made\n")
    kept = {job.id: job.document.body for job in jobs}
    results = at_once([["-c", EVALUATE, kind] for kind in ("reward", "truth", "reward", "truth")], shop.root)
    assert [status for status, _ in results] == [0] * 4, results
    after = {job.id: shop.workspace.job(job.id) for job in jobs}
    assert {name: job.document.body for name, job in after.items()} == kept
    shown = [after[job.id].document.fields["truth_last_status"] for job in jobs]
    assert shown == ["pass" if number % 2 == 0 else "fail" for number in range(15)]
    assert {job.iteration for job in after.values()} == {0}
    assert shop.errors() == []


# Elsewhere


def test_a_fresh_clone_of_a_finished_project_passes_its_own_checks(
    shop: Shop, tmp_path: Path, git: Callable[..., str], donewhen: Donewhen
) -> None:
    above = shop.done("above")
    below = shop.done("below", above.id)
    assert shop.workspace.project().status == "done"
    git(shop.root, "add", "-A")
    git(shop.root, "commit", "-qm", "done")
    clone = tmp_path / "elsewhere" / "clone"
    git(tmp_path, "clone", "-q", str(shop.root), str(clone))
    for arguments in (["plan-check"], ["audit"]):
        checked = donewhen(arguments, clone)
        assert checked.returncode == 0, checked.stdout
    again = donewhen(["complete", below.id], clone)
    completed = shop.history(below.id).completed
    assert completed is not None
    assert again.returncode == 0, again.stdout
    assert f"<promise>{below.id}-DONE</promise>\nreceipt: {completed.hash}" in again.stdout
    assert git(clone, "status", "--porcelain") == ""


# One that can't be read

BROKEN: dict[str, Callable[[Job], object]] = {
    "broken YAML": lambda job: job.path.write_text("---\nstatus: [\n---\n"),
    "bytes that are no text": lambda job: job.path.write_bytes(b"---\n\xff\xfe\x00\n---\n"),
    "an unknown status": lambda job: job.path.write_text(
        job.path.read_text().replace("status: planned", "status: wip")
    ),
    "no plan beside another file": lambda job: job.path.rename(job.path.with_name("plan.md.orig")),
    "a folder as plan": lambda job: (job.path.unlink(), job.path.mkdir()),
    "a link to nowhere": lambda job: (job.path.unlink(), job.path.symlink_to("/nowhere")),
}


@pytest.mark.parametrize("views", ["with views", "without views"])
@pytest.mark.parametrize("breaks", BROKEN.values(), ids=list(BROKEN))
def test_one_unreadable_job_stops_nobody_else(shop: Shop, breaks: Callable[[Job], object], views: str) -> None:
    first, other, broken = shop.job("first"), shop.job("other"), shop.job("broken", agreed=False)
    assert shop.start(first)
    breaks(broken)
    if views == "without views":
        shutil.rmtree(shop.workspace.base / "outputs")
    (shop.root / "first.txt").write_text("made\n")
    result = complete(shop.workspace, first.id, unproved_actor())
    assert result.done
    assert result.cascade == ()
    assert shop.start(other)
    (shop.root / "first.txt").write_text("better\n")
    assert shop.start(first)
    assert complete(shop.workspace, first.id, unproved_actor()).done
    (problem,) = shop.problems()
    assert problem[0] in ("document", "field")
    assert {job.id for job in survey_jobs(shop.workspace).jobs} == {first.id, other.id}


def test_a_folder_without_its_plan_is_a_broken_job_only_if_it_has_a_file(shop: Shop) -> None:
    job, left = shop.job("job"), shop.job("left", agreed=False)
    left.path.unlink()
    (left.path.parent / "outputs").mkdir(exist_ok=True)
    assert shop.problems() == []
    assert {one.id for one in survey_jobs(shop.workspace).jobs} == {job.id}
    (left.path.parent / "outputs" / "result.txt").write_text("made\n")
    ((code, message),) = shop.problems()
    assert (code, "plan file is missing" in message) == ("document", True)


def test_every_command_about_another_job_works_beside_one_that_cannot_be_read(shop: Shop, donewhen: Donewhen) -> None:
    job, broken = shop.job("job"), shop.job("broken")
    broken.path.write_text("---\nstatus: [\n---\n")
    expected = {
        ("status",): 1,
        ("ready",): 0,
        ("plan-check",): 1,
        ("start", job.id): 0,
        ("run", job.id): 1,
        ("why", job.id): 1,
        ("reward", job.id): 1,
        ("truth-eval", job.id): 1,
        ("next", job.id): 0,
        ("complete", job.id): 1,
        ("block", job.id, "--reason", "Later."): 0,
    }
    found = {words: donewhen(list(words), shop.root) for words in expected}
    for words, done in found.items():
        assert done.returncode <= 1, (words, done.stdout, done.stderr)
    plan = f"{broken.path.relative_to(shop.root)}"
    assert plan in found["plan-check",].stdout
    assert found["ready",].returncode == 0
    assert job.id in found["ready",].stdout
    assert shop.history(job.id).status == "blocked"


def test_a_job_below_one_that_cannot_be_read_is_refused_with_a_reason(shop: Shop) -> None:
    above = shop.done("above")
    below = shop.job("below", above.id)
    assert shop.start(below)
    (shop.root / "below.txt").write_text("made\n")
    above.path.write_text("---\nstatus: [\n---\n")
    result = complete(shop.workspace, below.id, unproved_actor())
    assert not result.done
    assert result.evaluation is not None
    assert "dependency" in [gate.gate for gate in result.evaluation.gates if not gate.passed]


# A changes


def test_when_a_changes_b_and_c_are_invalidated_and_the_chain_is_shown(shop: Shop) -> None:
    first = shop.done("a")
    second = shop.done("b", first.id)
    third = shop.done("c", second.id)
    aside = shop.done("d")
    (shop.root / "a.txt").write_text("other\n")
    found = [message for code, message in shop.problems() if code == "done_invalid"]
    assert [message.split()[0] for message in found] == [second.id, third.id]
    assert f"{third.id} → {second.id}" in found[1]
    assert shop.start(first)
    result = complete(shop.workspace, first.id, unproved_actor())
    assert result.done
    assert [job.id for job in result.invalidated] == [second.id, third.id]
    assert result.invalidated[1].chain == (third.id, second.id)
    states = [shop.workspace.job(job.id).status for job in (first, second, third, aside)]
    assert states == ["done", "in_progress", "in_progress", "done"]
    assert [shop.history(job.id).completed for job in (second, third)] == [None, None]
    assert shop.workspace.project().status == "in_progress"
    assert shop.errors() == []


def test_when_a_is_completed_again_unchanged_nothing_is_invalidated(shop: Shop) -> None:
    first = shop.done("a")
    second = shop.done("b", first.id)
    assert shop.start(first)
    result = complete(shop.workspace, first.id, unproved_actor())
    assert result.done
    assert result.invalidated == ()
    assert shop.workspace.job(second.id).status == "done"


# Budget


def test_99_iterations_typed_before_the_agreement_are_not_adopted(shop: Shop) -> None:
    job = shop.job("job", agreed=False)
    job.path.write_text(job.path.read_text().replace("iteration: 0", "iteration: 99", 1))
    (shop.root / "job.txt").write_text("made\n")
    shop.agree(job)
    assert shop.workspace.job(job.id).iteration == 0
    assert shop.history(job.id).iteration == 0
    result = complete(shop.workspace, job.id, unproved_actor())
    assert not result.done
    assert shop.workspace.job(job.id).iteration <= 1


def test_99_typed_over_a_lower_count_is_tampered_with_and_not_believed_either_way(shop: Shop) -> None:
    job = shop.job("job")
    assert shop.start(job)
    (shop.root / "job.txt").write_text("made\n")
    job.path.write_text(job.path.read_text().replace("iteration: 0", "iteration: 99", 1))
    result = complete(shop.workspace, job.id, unproved_actor())
    assert not result.done
    assert shop.history(job.id).iteration == 1


def test_after_an_auto_block_a_job_starts_and_completes_again_only_after_a_decision(shop: Shop) -> None:
    job = shop.job("job")
    assert shop.start(job)
    for _ in range(4):
        assert not complete(shop.workspace, job.id, unproved_actor()).done
    assert shop.workspace.job(job.id).status == "blocked"
    (shop.root / "job.txt").write_text("made\n")
    refused = start_job(shop.workspace, job.id, unproved_actor())
    assert [reason.code for reason in refused.reasons] == ["budget_exceeded"]
    assert "donewhen decide" in (refused.next or "")
    assert not complete(shop.workspace, job.id, unproved_actor()).done
    assert shop.workspace.job(job.id).status == "blocked"
    shop.decide(job, "raise_budget", 12)
    assert shop.start(job)
    assert shop.workspace.job(job.id).status == "in_progress"


# Nothing was done


@pytest.mark.parametrize("big", [False, True], ids=["small form", "big form"])
def test_a_project_whose_jobs_are_all_cancelled_is_not_done(tmp_path: Path, donewhen: Donewhen, big: bool) -> None:
    shop = Shop(tmp_path, big=big)
    more = {"workstream": "Stream"} if big else {}
    jobs = [shop.job(name, **more) for name in ("one", "two")]
    for job in jobs:
        shop.decide(job, "cancel")
    said = [donewhen(words, shop.root).stdout for words in (["plan-check"], ["status"], ["complete", jobs[0].id])]
    assert not any("<promise>" in text for text in said)
    assert shop.workspace.project().status != "done"
    assert shop.history(shop.workspace.project().id).completed is None
    assert find_workspace(shop.root).job(jobs[0].id).status == "cancelled"
