"""What follows from a change: jobs below are not done any more, and what stands above is never done too early."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.board.validity import ValidityChecker
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor, recorded_status
from donewhen.jobs.lifecycle import invalidation
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.invalidation import find_invalid_jobs, invalidate_jobs
from donewhen.jobs.lifecycle.promise import verify_promise
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import rewrite_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.parents import chain_name, parent_plans

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
ANYBODY = Policy()
SAYS_YES = "It says yes.\n  check: file outputs/primary.md matches /yes/"


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


@pytest.fixture
def mall(tmp_path: Path) -> Workspace:
    """The form with workstreams."""
    return create_project(tmp_path, "Mall", form="big")


def made(shop: Workspace, title: str, **about: object) -> Job:
    job = add_job(shop, title, criteria=[SAYS_YES], **about)  # type: ignore[arg-type]
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, ADA)
    return job


def put_out(job: Job, text: str = "yes\n") -> None:
    (job.folder / "outputs" / "primary.md").write_text(text)


def finished(shop: Workspace, job: Job, text: str = "yes\n") -> Completion:
    assert start_job(shop, job.id, BOT).started
    put_out(job, text)
    result = complete(shop, job.id, BOT)
    assert result.done
    return result


def a_line(shop: Workspace, *titles: str) -> list[Job]:
    """Jobs of which each depends on the one before; all done."""
    jobs: list[Job] = []
    for title in titles:
        jobs.append(made(shop, title, depends_on=[jobs[-1].id] if jobs else []))
        finished(shop, jobs[-1])
    return jobs


def status(shop: Workspace, path: Path) -> Value:
    """The status of a job by its plan; that of a project or workstream is only in the record."""
    if shop.is_parent_plan(path):
        return recorded_status(shop.ledger.read(chain_name(shop, path)).entries) or "planned"
    return shop.read(path).fields["status"]


def statuses(shop: Workspace, *jobs: Job) -> list[Value]:
    return [status(shop, job.path) for job in jobs]


def errors(shop: Workspace) -> list[str]:
    return [
        f"{finding.where}: {finding.message}"
        for finding in audit_workspace(shop).findings
        if finding.severity == "error"
    ]


def real(shop: Workspace, result: Completion) -> bool:
    assert result.promise is not None
    return verify_promise(shop, result.promise.text, approval_policy(shop)).real


# Below


def test_a_change_goes_all_the_way_down_and_the_chain_is_shown(shop: Workspace) -> None:
    a, b, c = a_line(shop, "A", "B", "C")
    result = finished(shop, a, "yes, better\n")
    changed = shop.where(a.folder / "outputs" / "primary.md")
    assert [(job.id, job.chain) for job in result.invalidated] == [(b.id, (b.id,)), (c.id, (c.id, b.id))]
    assert all(changed in job.why for job in result.invalidated)
    assert statuses(shop, a, b, c) == ["done", "in_progress", "in_progress"]
    for job in result.invalidated:
        last = shop.ledger.read(job.id).entries[-1]
        assert last == job.entry
        assert (last.type, last.data["chain"], last.data["why"]) == ("invalidated", list(job.chain), job.why)
        assert shop.read(shop.place(job.id).path).fields["completed_at"] == ""
    assert shop.job(b.id).iteration == 0
    assert errors(shop) == []


def test_a_promise_does_not_outlive_its_invalidation(shop: Workspace) -> None:
    a, b = made(shop, "A"), None
    finished(shop, a)
    b = made(shop, "B", depends_on=[a.id])
    before = finished(shop, b)
    assert real(shop, before)
    finished(shop, a, "yes, better\n")
    assert not real(shop, before)
    assert real(shop, finished(shop, b))


def test_a_plan_that_says_otherwise_keeps_nobody_from_being_invalidated(shop: Workspace) -> None:
    a, b = a_line(shop, "A", "B")
    b.path.write_bytes(rewrite_fields(shop.read(b.path), {"status": "in_progress", "completed_at": ""}))
    result = finished(shop, a, "yes, better\n")
    assert [job.id for job in result.invalidated] == [b.id]
    assert shop.ledger.read(b.id).entries[-1].type == "invalidated"


def test_the_same_output_again_invalidates_nobody(shop: Workspace) -> None:
    a, b = a_line(shop, "A", "B")
    put_out(a, "yes\n")
    assert start_job(shop, a.id, BOT).started
    result = complete(shop, a.id, BOT)
    assert (result.done, result.invalidated) == (True, ())
    assert statuses(shop, a, b) == ["done", "done"]


def test_a_first_completion_has_nobody_to_invalidate(shop: Workspace) -> None:
    a = made(shop, "A")
    assert finished(shop, a).invalidated == ()


def test_only_those_below_are_touched(shop: Workspace) -> None:
    a, b = a_line(shop, "A", "B")
    beside = made(shop, "Beside")
    finished(shop, beside)
    open_one = made(shop, "Open", depends_on=[b.id])
    result = finished(shop, a, "yes, better\n")
    assert [job.id for job in result.invalidated] == [b.id]
    assert statuses(shop, beside, open_one) == ["done", "planned"]


def test_an_invalidated_job_is_honestly_done_again_with_the_same_output(shop: Workspace) -> None:
    a, b = a_line(shop, "A", "B")
    finished(shop, a, "yes, better\n")
    refused = complete(shop, b.id, BOT)
    assert refused.evaluation is not None
    assert {reason.code.value for reason in refused.evaluation.reasons} == {"upstream_changed"}
    assert refused.evaluation.next == f"donewhen start {b.id}"
    assert start_job(shop, b.id, BOT).started
    assert complete(shop, b.id, BOT).done


def test_a_job_in_the_middle_waits_for_the_one_above_before_it_is_done_again(shop: Workspace) -> None:
    a, b, c = a_line(shop, "A", "B", "C")
    finished(shop, a, "yes, better\n")
    waiting = start_job(shop, c.id, BOT)
    assert [reason.code.value for reason in waiting.reasons] == ["dependency_open"]
    finished(shop, b)
    assert start_job(shop, c.id, BOT).started


def test_what_was_changed_by_hand_is_found_and_only_recorded_when_asked(shop: Workspace) -> None:
    a, b, c = a_line(shop, "A", "B", "C")
    put_out(a, "yes, secretly\n")
    seen = survey_jobs(shop)
    found = find_invalid_jobs(shop, ANYBODY, seen)
    assert [(item.id, item.chain, item.entry, item.own_output) for item in found] == [
        (a.id, (a.id,), None, True),
        (b.id, (b.id,), None, False),
        (c.id, (c.id, b.id), None, False),
    ]
    assert statuses(shop, b, c) == ["done", "done"]
    recorded = invalidate_jobs(shop, ANYBODY, BOT)
    assert [(item.id, item.chain) for item in recorded] == [
        (item.id, item.chain) for item in found if not item.own_output
    ]
    assert statuses(shop, a, b, c) == ["done", "in_progress", "in_progress"]
    assert invalidate_jobs(shop, ANYBODY, BOT) == ()
    assert [item.id for item in find_invalid_jobs(shop, ANYBODY, survey_jobs(shop))] == [a.id]


def test_the_look_at_all_jobs_and_the_files_themselves_give_the_same_answer(shop: Workspace) -> None:
    a, b, c = a_line(shop, "A", "B", "C")
    assert find_invalid_jobs(shop, ANYBODY, survey_jobs(shop)) == ()
    put_out(b, "yes, secretly\n")
    for _ in ("cold", "warm"):
        seen = survey_jobs(shop)
        read = ValidityChecker(shop, ANYBODY)
        assert {job.id: (job.chain[1:], job.why) for job in find_invalid_jobs(shop, ANYBODY, seen)} == {
            item.id: (found.chain, found.why) for item in (a, b, c) if (found := read.of(item.id)).state == "invalid"
        }
    assert [(job.id, job.own_output) for job in find_invalid_jobs(shop, ANYBODY, seen)] == [(b.id, True), (c.id, False)]


def test_a_file_that_says_done_without_a_completion_is_left_to_others(shop: Workspace) -> None:
    a = made(shop, "A")
    a.path.write_bytes(rewrite_fields(a.document, {"status": "done"}))
    before = shop.ledger.read(a.id)
    assert find_invalid_jobs(shop, ANYBODY, survey_jobs(shop)) == ()
    assert invalidate_jobs(shop, ANYBODY, BOT) == ()
    assert shop.ledger.read(a.id) == before


def test_somebody_who_was_quicker_is_not_invalidated_twice(shop: Workspace) -> None:
    a, b = a_line(shop, "A", "B")
    put_out(a, "yes, secretly\n")
    before = b.path.read_bytes()
    assert [job.id for job in invalidate_jobs(shop, ANYBODY, BOT)] == [b.id]
    # As if it had been killed between the ledger and the plan: the file still says done.
    b.path.write_bytes(before)
    entries = len(shop.ledger.read(b.id).entries)
    assert invalidate_jobs(shop, ANYBODY, BOT) == ()
    assert len(shop.ledger.read(b.id).entries) == entries


def test_somebody_who_was_quicker_between_the_look_and_the_lock_is_noticed(
    shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = a_line(shop, "A", "B")
    put_out(a, "yes, secretly\n")
    seen = find_invalid_jobs(shop, ANYBODY, survey_jobs(shop))
    invalidate_jobs(shop, ANYBODY, Actor("other"))
    monkeypatch.setattr(invalidation, "_invalid_jobs", lambda *_: seen)
    assert invalidate_jobs(shop, ANYBODY, BOT) == ()
    assert [entry.type for entry in shop.ledger.read(b.id).entries].count("invalidated") == 1


# Above


def test_the_last_job_completes_the_project_with_a_promise_of_its_own(shop: Workspace) -> None:
    a, b = made(shop, "A"), made(shop, "B")
    assert finished(shop, a).cascade == ()
    assert status(shop, shop.project_file) == "in_progress"
    result = finished(shop, b)
    project = shop.project()
    assert [item.id for item in result.cascade] == [project.id]
    promise = result.cascade[0]
    assert promise.text == f"<promise>{project.id}-DONE</promise>\nreceipt: {promise.receipt}"
    entry = shop.ledger.read(project.id).entries[-1]
    assert (entry.type, entry.hash) == ("completed", promise.receipt)
    assert entry.data["jobs"] == {a.id: "done", b.id: "done"}
    assert project.status == "done"
    assert verify_promise(shop, promise.text, approval_policy(shop)).real
    assert errors(shop) == []


def test_workstreams_are_completed_before_their_project(mall: Workspace) -> None:
    a, b = made(mall, "A", workstream="North"), made(mall, "B", workstream="South")
    north, south = (next(parent_plans(mall, item)) for item in (a, b))
    assert list(parent_plans(mall, a)) == [a.folder.parent.parent / "plan.md", mall.project_file]
    assert start_job(mall, a.id, BOT).started
    assert [status(mall, item) for item in (north, south, mall.project_file)] == [
        "in_progress",
        "planned",
        "in_progress",
    ]
    put_out(a)
    first = complete(mall, a.id, BOT)
    assert [promise.id for promise in first.cascade] == [chain_name(mall, north)]
    assert [status(mall, item) for item in (north, south, mall.project_file)] == ["done", "planned", "in_progress"]
    second = finished(mall, b)
    assert [one.id for one in second.cascade] == [chain_name(mall, south), mall.project().id]
    assert all(verify_promise(mall, one.text, approval_policy(mall)).real for one in (*first.cascade, *second.cascade))
    assert errors(mall) == []


def test_a_workstream_waits_for_all_of_its_jobs(mall: Workspace) -> None:
    a, b = made(mall, "A", workstream="North"), made(mall, "B", workstream="North")
    assert finished(mall, a).cascade == ()
    assert status(mall, next(parent_plans(mall, a))) == "in_progress"
    assert len(finished(mall, b).cascade) == 2


def test_a_workstream_without_an_id_goes_by_its_folder(mall: Workspace) -> None:
    a = made(mall, "A", workstream="North")
    path = next(parent_plans(mall, a))
    path.write_text(path.read_text().replace(f"id: {mall.read(path).fields['id']}\n", "", 1))
    assert chain_name(mall, path) == path.parent.name


def test_a_start_reopens_everything_above(mall: Workspace) -> None:
    a = made(mall, "A", workstream="North")
    done = finished(mall, a)
    north = next(parent_plans(mall, a))
    assert len(done.cascade) == 2
    assert start_job(mall, a.id, BOT).started
    for path in (north, mall.project_file):
        assert status(mall, path) == "in_progress"
        last = mall.ledger.read(chain_name(mall, path)).entries[-1]
        assert (last.type, last.data["job"]) == ("invalidated", a.id)
    assert not any(
        verify_promise(mall, one.text, approval_policy(mall)).real for one in (*done.cascade, done.promise) if one
    )
    again = complete(mall, a.id, BOT)
    assert [promise.id for promise in again.cascade] == [promise.id for promise in done.cascade]
    assert errors(mall) == []


def test_an_invalidated_job_reopens_its_project_too(shop: Workspace) -> None:
    a, _ = a_line(shop, "A", "B")
    assert status(shop, shop.project_file) == "done"
    assert finished(shop, a, "yes, better\n").cascade == ()
    assert status(shop, shop.project_file) == "in_progress"


def test_a_done_job_that_is_refused_reopens_its_project(shop: Workspace) -> None:
    a, b = a_line(shop, "A", "B")
    put_out(a, "yes, secretly\n")
    assert not complete(shop, b.id, BOT).done
    assert statuses(shop, b) == ["in_progress"]
    assert status(shop, shop.project_file) == "in_progress"


def test_a_project_of_which_everything_was_cancelled_is_not_done(shop: Workspace) -> None:
    a, b = made(shop, "A"), made(shop, "B")
    start_job(shop, a.id, BOT)
    for item in (a, b):
        decide(shop, shop.job(item.id), Decision("cancel", "no"), ADA)
        complete(shop, item.id, BOT)
    assert status(shop, shop.project_file) == "in_progress"
    assert all(entry.type != "completed" for entry in shop.ledger.read(shop.project().id).entries)


@pytest.mark.parametrize("begun", [False, True], ids=["planned", "in progress"])
def test_one_done_and_the_rest_cancelled_is_done(shop: Workspace, begun: bool) -> None:
    a, b = made(shop, "A"), made(shop, "B")
    if begun:
        start_job(shop, b.id, BOT)
    decide(shop, shop.job(b.id), Decision("cancel", "no"), ADA)
    assert [promise.id for promise in finished(shop, a).cascade] == [shop.project().id]
    assert status(shop, shop.project_file) == "done"


@pytest.mark.parametrize("wanted", [True, False], ids=["a cancelled one is wanted", "the done one is cancelled"])
def test_a_decision_opens_a_project_that_was_done_without_it(shop: Workspace, wanted: bool) -> None:
    a, b = made(shop, "A"), made(shop, "B")
    decide(shop, shop.job(b.id), Decision("cancel", "no"), ADA)
    promise = finished(shop, a).cascade[0]
    assert status(shop, shop.project_file) == "done"
    if wanted:
        decide(shop, shop.job(b.id), Decision("rescope", "yes"), ADA)
    else:
        decide(shop, shop.job(a.id), Decision("cancel", "no"), ADA)
    assert status(shop, shop.project_file) == "in_progress"
    assert not verify_promise(shop, promise.text, approval_policy(shop)).real
    assert errors(shop) == []


def test_cancelling_the_last_open_job_lets_the_project_be_completed(shop: Workspace) -> None:
    a, b = made(shop, "A"), made(shop, "B")
    finished(shop, a)
    decide(shop, shop.job(b.id), Decision("cancel", "no"), ADA)
    result = complete(shop, a.id, BOT)
    assert result.repeated
    assert [promise.id for promise in result.cascade] == [shop.project().id]


def test_a_job_that_was_only_typed_done_or_cancelled_holds_the_project_back(shop: Workspace) -> None:
    a, b = made(shop, "A"), made(shop, "B")
    b.path.write_bytes(rewrite_fields(b.document, {"status": "cancelled"}))
    assert finished(shop, a).cascade == ()
    assert status(shop, shop.project_file) == "in_progress"


def test_a_project_whose_agreement_was_voided_is_not_completed(shop: Workspace) -> None:
    a = made(shop, "A")
    start_job(shop, a.id, BOT)
    put_out(a)
    text = shop.project_file.read_text()
    shop.project_file.write_text(text.replace("## Acceptance Criteria\n", "## Acceptance Criteria\n\n- It sells.\n"))
    for proposal in agreement_proposals(shop, []):
        agree(shop, proposal, ADA)
    shop.project_file.write_text(shop.project_file.read_text().replace("- It sells.\n", ""))
    assert not complete(shop, a.id, BOT).done
    assert status(shop, shop.project_file) == "in_progress"


def test_one_unreadable_job_keeps_no_other_from_its_promise(shop: Workspace) -> None:
    a, b = made(shop, "A"), made(shop, "B")
    b.path.write_text("---\nnot: [closed\n")
    result = finished(shop, a)
    assert result.promise is not None
    assert result.cascade == ()


def test_done_by_two_processes_at_once_the_project_is_completed_once(shop: Workspace) -> None:
    jobs = [made(shop, title) for title in ("A", "B")]
    for job in jobs:
        start_job(shop, job.id, BOT)
        put_out(job)
    running = [
        subprocess.Popen([sys.executable, "-m", "donewhen", "complete", job.id], cwd=shop.root, stdout=subprocess.PIPE)
        for job in jobs
    ]
    said = [item.communicate()[0].decode() for item in running]
    assert [item.returncode for item in running] == [0, 0]
    project = shop.project()
    completed = [entry for entry in shop.ledger.read(project.id).entries if entry.type == "completed"]
    assert (project.status, len(completed)) == ("done", 1)
    assert sum(f"<promise>{project.id}-DONE</promise>\nreceipt: {completed[0].hash}" in line for line in said) == 1
