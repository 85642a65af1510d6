"""What was done has to stay true: one test for each way in which a promise could outlive the work, and for honest work
that goes on with the files of others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.jobs.conftest import Ticking
from tests.spec.test_rewards import ADA, BOT, WRITTEN, Project
from tests.spec.test_rewards_plan import codes, typed

from donewhen.cli import main
from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.board.validity import ValidityChecker
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.gates.evidence_status import collect_evidence, sign_off
from donewhen.jobs.ledger.gate_program import this_gate
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.planning import check_plan
from donewhen.jobs.lifecycle.promise import Promise, PromiseCheck, verify_promise, verify_promises
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.workspace = Workspace(tmp_path, "small", Ticking())
    return project


def wanting(shop: Project, word: str, path: str = "/a.txt", **options: Any) -> Job:
    """An agreed and started job that has to write a word into a file."""
    return shop.add(f"It says {word} somewhere.\n  check: file {path} matches /{word}/", outputs=[path], **options)


def write(shop: Project, text: str, path: str = "a.txt") -> None:
    (shop.workspace.root / path).write_text(f"{text}\n")


def finished(shop: Project, job: Job) -> Completion:
    result = shop.complete(job)
    assert result.done, result.evaluation and result.evaluation.reasons
    return result


def verified(shop: Project, promise: Promise | None) -> PromiseCheck:
    assert promise is not None
    return verify_promise(shop.workspace, promise.text, approval_policy(shop.workspace))


def project_promise(shop: Project, result: Completion) -> Promise:
    (promise,) = result.cascade
    assert promise.id == shop.workspace.project().id
    assert verified(shop, promise).real
    return promise


# The promise of a project or workstream


def test_the_promise_of_a_project_falls_with_the_output_of_a_job(shop: Project) -> None:
    job = wanting(shop, "price")
    write(shop, "the price list")
    promise = project_promise(shop, finished(shop, job))
    (shop.workspace.root / "a.txt").unlink()
    found = verified(shop, promise)
    assert not found.real
    assert found.why == f"no longer true: {job.id} is no longer done (its output a.txt is gone)"
    write(shop, "the price list")
    assert verified(shop, promise).real


def test_the_promise_of_a_project_falls_with_a_check_that_fails_again(shop: Project) -> None:
    write(shop, "exit 0", "check.sh")
    job = shop.add("It works as agreed.\n  check: run sh check.sh")
    shop.output(job)
    promise = project_promise(shop, finished(shop, job))
    write(shop, "exit 1", "check.sh")
    assert verified(shop, promise).real, "other files have moved on; nobody has looked"
    collect_evidence(shop.workspace, shop.read(job), BOT)
    assert not verified(shop, promise).real


def test_the_promise_of_a_project_falls_with_its_own_criterion(shop: Project) -> None:
    project = shop.workspace.project().path
    text = project.read_text()
    before, heading, after = text.partition("# Acceptance Criteria\n")
    assert heading
    project.write_text(f"{before}{heading}\n- AC-9: The notes are there.\n  check: file /NOTES.md\n{after}")
    job = wanting(shop, "price")
    write(shop, "the price list")
    write(shop, "some notes", "NOTES.md")
    promise = project_promise(shop, finished(shop, job))
    (shop.workspace.root / "NOTES.md").unlink()
    found = verified(shop, promise)
    assert (found.real, found.why) == (False, "no longer true: AC-9 fails now (/NOTES.md: file not found)")


def big(tmp_path: Path) -> tuple[Workspace, list[Job]]:
    """A project with a workstream of two agreed jobs, the first with its work done."""
    workspace = create_project(tmp_path, "Demo", form="big")
    jobs = [
        add_job(
            workspace,
            title,
            criteria=[f"It says {title}.\n  check: file /{title}.txt"],
            outputs=[f"/{title}.txt"],
            workstream="shop",
        )
        for title in ("one", "two")
    ]
    for job in jobs:
        for proposal in agreement_proposals(workspace, [workspace.job_at(job.path)]):
            agree(workspace, proposal, ADA)
        assert start_job(workspace, job.id, BOT).started
    (workspace.root / "one.txt").write_text("one and only\n")
    return workspace, jobs


def test_a_workstream_is_not_done_while_the_ledger_has_an_open_job_without_a_folder(tmp_path: Path) -> None:
    workspace, (one, two) = big(tmp_path)
    shutil.rmtree(two.folder)
    result = complete(workspace, one.id, BOT)
    assert result.done and result.cascade == ()


def test_a_workstream_is_done_with_its_jobs_and_its_promise_falls_with_them(tmp_path: Path) -> None:
    workspace, (one, two) = big(tmp_path)
    (workspace.root / "two.txt").write_text("two at last\n")
    assert complete(workspace, one.id, BOT).cascade == ()
    result = complete(workspace, two.id, BOT)
    policy = approval_policy(workspace)
    assert [promise.id[:2] for promise in result.cascade] == ["WS", "PJ"]
    assert all(verify_promise(workspace, promise.text, policy).real for promise in result.cascade)
    (workspace.root / "one.txt").unlink()
    assert not any(verify_promise(workspace, promise.text, policy).real for promise in result.cascade)


def named(shop: Project, name: str) -> Job:
    """An agreed job whose id and folder have names of their own."""
    job = add_job(shop.workspace, "Login", criteria=["It is there.\n  check: file /login.txt"], outputs=["/login.txt"])
    folder = job.folder.rename(job.folder.parent / "login")
    path = folder / job.path.name
    path.write_text(path.read_text().replace(job.id, name))
    job = shop.workspace.job_at(path)
    assert job.id == name
    shop.agree(job)
    return job


def test_a_job_with_a_name_of_its_own_counts_for_the_project(shop: Project) -> None:
    login, job = named(shop, "LOGIN-1"), wanting(shop, "price")
    write(shop, "the price list")
    assert finished(shop, job).cascade == ()
    shutil.rmtree(login.folder)
    assert shop.complete(job).cascade == (), "deleting it does not make it done"
    assert codes(shop) == ["job_missing"]


def test_the_promise_of_a_job_with_a_name_of_its_own_can_be_verified(shop: Project) -> None:
    login = named(shop, "LOGIN-1")
    assert shop.start(login).started
    write(shop, "user and password", "login.txt")
    result = finished(shop, login)
    assert verified(shop, result.promise) == PromiseCheck(
        "LOGIN-1", True, "the ledger has this completion", this_gate()
    )
    assert [promise.id for promise in result.cascade] == [shop.workspace.project().id]


# Several jobs with one output


def test_an_output_that_was_set_back_to_what_an_earlier_job_made_is_no_longer_true(shop: Project) -> None:
    first = wanting(shop, "one")
    write(shop, "one")
    finished(shop, first)
    second = shop.add("It is written.\n  check: file /a.txt", outputs=["/a.txt"])
    write(shop, "one two")
    made = finished(shop, second)
    project_promise(shop, made)
    assert codes(shop) == []
    write(shop, "one")
    assert not verified(shop, made.promise).real
    assert codes(shop) == ["output_changed"]
    last = wanting(shop, "three", "/b.txt", depends_on=[second.id], started=False)
    assert not shop.start(last).started


def test_a_later_job_may_not_take_away_what_an_earlier_one_was_checked_for(shop: Project) -> None:
    first, second = wanting(shop, "price"), wanting(shop, "footer")
    write(shop, "the price list")
    made = finished(shop, first)
    write(shop, "the price list with a footer")
    project_promise(shop, finished(shop, second))
    assert verified(shop, made.promise).real
    write(shop, "footer only")
    again = finished(shop, second)
    assert again.cascade == ()
    found = verified(shop, made.promise)
    assert (found.real, found.why) == (
        False,
        "no longer true: AC-1 was checked again and fails: /price/ does not match",
    )
    assert codes(shop) == ["done_untrue"]


def test_a_job_may_go_on_with_the_output_of_the_job_that_it_depends_on(shop: Project) -> None:
    first = wanting(shop, "price")
    write(shop, "the price list")
    made = finished(shop, first)
    second = wanting(shop, "footer", depends_on=[first.id])
    write(shop, "the price list with a footer")
    result = finished(shop, second)
    assert second.iteration == 0
    project_promise(shop, result)
    assert verified(shop, made.promise).real and codes(shop) == []
    third = wanting(shop, "end", depends_on=[second.id])
    write(shop, "the price list with a footer, the end")
    finished(shop, third)
    assert all(verified(shop, promise).real for promise in (made.promise, result.promise)) and codes(shop) == []


def test_a_job_may_not_spoil_the_output_of_the_job_that_it_depends_on(shop: Project) -> None:
    first = wanting(shop, "price")
    write(shop, "the price list")
    finished(shop, first)
    second = wanting(shop, "footer", depends_on=[first.id])
    write(shop, "footer only")
    result = shop.complete(second)
    assert not result.done and result.evaluation is not None
    assert "dependency_invalid" in {reason.code for reason in result.evaluation.reasons}


@pytest.mark.parametrize(
    "before, after", [("price\n\nend\n", "price\r\n\r\nend\r\n"), ("price\r\nend\r\n", "price\nend\n")]
)
def test_other_line_ends_are_no_other_content(shop: Project, before: str, after: str) -> None:
    job = wanting(shop, "price")
    file = shop.workspace.root / "a.txt"
    file.write_bytes(before.encode())
    result = finished(shop, job)
    file.write_bytes(after.encode())
    assert verified(shop, result.promise).real and codes(shop) == []
    file.write_bytes(after.encode() + b"more")
    assert not verified(shop, result.promise).real and codes(shop) == ["output_changed"]


def test_binary_content_is_compared_byte_by_byte(shop: Project) -> None:
    job = wanting(shop, "price")
    file = shop.workspace.root / "a.txt"
    file.write_bytes(b"price\0\n")
    result = finished(shop, job)
    file.write_bytes(b"price\0\r\n")
    assert not verified(shop, result.promise).real


def test_a_job_may_not_change_what_the_job_that_it_depends_on_was_built_on(shop: Project) -> None:
    write(shop, "the specification", "spec.md")
    first = wanting(shop, "price", inputs=["/spec.md"])
    write(shop, "the price list")
    finished(shop, first)
    second = wanting(shop, "spec", "/spec.md", depends_on=[first.id])
    write(shop, "another spec", "spec.md")
    result = shop.complete(second)
    assert not result.done, "its promise would be false at once"


def test_who_began_with_the_output_of_another_was_later_whatever_the_clocks_say(shop: Project) -> None:
    first = wanting(shop, "price")
    write(shop, "the price list")
    made = finished(shop, first)
    second = wanting(shop, "footer", started=False)
    assert shop.start(second).started
    shop.workspace = Workspace(shop.workspace.root, "small", Ticking())
    write(shop, "the price list with a footer")
    project_promise(shop, finished(shop, second))
    assert verified(shop, made.promise).real and codes(shop) == []


def test_other_line_ends_are_no_other_content_of_a_shared_output(shop: Project) -> None:
    first = wanting(shop, "price")
    write(shop, "the price list")
    made = finished(shop, first)
    promise = project_promise(shop, finished(shop, extending(shop, first)))
    (shop.workspace.root / "a.txt").write_bytes(b"the price list with a footer\r\n")
    assert verified(shop, made.promise).real and verified(shop, promise).real and codes(shop) == []


def extending(shop: Project, first: Job) -> Job:
    second = wanting(shop, "footer", depends_on=[first.id])
    write(shop, "the price list with a footer")
    return second


def test_a_file_check_reads_lines_whatever_their_ends(shop: Project) -> None:
    job = shop.add("It has a line.\n  check: file /a.txt matches /^one$/", outputs=["/a.txt"])
    (shop.workspace.root / "a.txt").write_bytes(b"zero\r\none\r\ntwo\r\n")
    assert verified(shop, finished(shop, job).promise).real


@pytest.mark.parametrize("how", ["command", "person"])
def test_what_a_command_or_a_person_has_shown_is_shown_again_before_the_project_is_done(
    shop: Project, how: str
) -> None:
    write(shop, "grep -q price a.txt", "check.sh")
    check = "run sh check.sh" if how == "command" else "manual"
    first = shop.add(f"The price list is friendly.\n  check: {check}", outputs=["/a.txt"])
    write(shop, "the price list")
    if how == "person":
        sign_off(shop.workspace, shop.read(first), "AC-1", "I have read it.", ADA)
    finished(shop, first)
    second = wanting(shop, "footer")
    write(shop, "footer only")
    result = finished(shop, second)
    assert result.cascade == ()
    assert [text.partition(":")[0] for text in result.unmet] == [f"AC-1 of {first.id} is not met any more"]
    write(shop, "the price list with a footer")
    if how == "person":
        sign_off(shop.workspace, shop.read(first), "AC-1", "I have read it again.", ADA)
    project_promise(shop, finished(shop, second))


def test_the_promise_of_a_project_ends_with_a_job_that_is_done_with_other_content(shop: Project) -> None:
    job = wanting(shop, "price")
    write(shop, "the price list")
    before = project_promise(shop, finished(shop, job))
    write(shop, "the price list, second edition")
    after = project_promise(shop, finished(shop, job))
    assert not verified(shop, before).real and after.receipt != before.receipt


def test_a_project_that_is_done_is_not_checked_again_with_every_repetition(shop: Project) -> None:
    log = shop.workspace.root.with_name("ran.log")
    write(shop, f"echo ran >> '{log}'", "check.sh")
    first = shop.add("The price list is friendly.\n  check: run sh check.sh", outputs=["/a.txt"])
    write(shop, "the price list")
    finished(shop, first)
    second = wanting(shop, "footer", depends_on=[first.id])
    write(shop, "the price list with a footer")
    project_promise(shop, finished(shop, second))
    runs = log.read_text()
    write(shop, "something else", "other.txt")
    assert shop.complete(second).repeated and shop.complete(first).repeated
    assert log.read_text() == runs


# The agreed terms decide


def test_a_check_that_was_loosened_afterwards_does_not_make_a_job_true_again(shop: Project) -> None:
    job, result = failing_again(shop)
    promise = result.cascade[0]
    shop.edit(job, "check: run sh check.sh", "check: run true")
    assert verified(shop, result.promise).why == "no longer true: its agreement is void"
    assert not verified(shop, promise).real
    assert codes(shop) == ["voided"]
    assert not shop.start(shop.add(depends_on=[job.id], started=False)).started


def test_a_criterion_of_the_project_that_was_loosened_afterwards_ends_its_promise(shop: Project) -> None:
    project = shop.workspace.project().path
    before, heading, after = project.read_text().partition("# Acceptance Criteria\n")
    project.write_text(f"{before}{heading}\n- AC-9: The notes are there.\n  check: file /NOTES.md\n{after}")
    job = wanting(shop, "price")
    write(shop, "the price list")
    write(shop, "some notes", "NOTES.md")
    promise = project_promise(shop, finished(shop, job))
    project.write_text(project.read_text().replace("file /NOTES.md", "file /a.txt"))
    found = verified(shop, promise)
    assert (found.real, found.why) == (False, "no longer true: the agreement of the project is void")


# Ids


def test_an_id_is_that_of_one_job_whatever_the_names_of_folders_end_with(shop: Project) -> None:
    login = named(shop, "login")
    other = add_job(shop.workspace, "Add login", criteria=["It is there.\n  check: file /a.txt"], outputs=["/a.txt"])
    shop.agree(other)
    assert shop.workspace.job("login").id == "login"
    assert shop.start(other).started
    write(shop, "the price list")
    assert finished(shop, other).cascade == (), "the other job is open"
    assert shop.start(login).started and shop.field(login, "status") == "in_progress"
    write(shop, "user and password", "login.txt")
    result = finished(shop, login)
    project_promise(shop, result)
    shutil.rmtree(login.folder)
    assert not verified(shop, result.cascade[0]).real


def test_a_folder_with_the_name_of_a_deleted_job_is_not_that_job(shop: Project) -> None:
    job = named(shop, "ALPHA-1")
    folder = job.folder.rename(job.folder.with_name("ALPHA-1"))
    other = named(shop, "BETA-1")
    assert shop.start(other).started
    shutil.rmtree(folder)
    other = shop.workspace.job_at(other.folder.rename(folder) / "plan.md")
    write(shop, "user and password", "login.txt")
    assert finished(shop, other).cascade == ()
    assert codes(shop) == ["job_missing"]


def test_a_cancelled_job_may_be_deleted(shop: Project) -> None:
    job, gone = wanting(shop, "price"), shop.add()
    decide(shop.workspace, gone, Decision("cancel", "Nobody needs it."), ADA)
    shutil.rmtree(gone.folder)
    write(shop, "the price list")
    project_promise(shop, finished(shop, job))
    assert codes(shop) == []


def test_many_promises_of_a_text_read_each_chain_once(shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    promises = []
    for word in ("one", "two", "three"):
        job = wanting(shop, word)
        write(shop, f"one two three and {word}")
        promises.append(finished(shop, job).promise)
    made: list[ValidityChecker] = []
    build = ValidityChecker.__init__
    monkeypatch.setattr(
        ValidityChecker,
        "__init__",
        lambda self, *given, **options: (made.append(self), build(self, *given, **options))[1],
    )
    text = "\n".join(promise.text for promise in promises if promise is not None)
    assert all(check.real for check in verify_promises(shop.workspace, text, approval_policy(shop.workspace)))
    assert len(made) == 1


# Checks that fail again


def failing_again(shop: Project) -> tuple[Job, Completion]:
    write(shop, "exit 0", "check.sh")
    job = shop.add("It works as agreed.\n  check: run sh check.sh")
    shop.output(job)
    result = finished(shop, job)
    write(shop, "exit 1", "check.sh")
    collect_evidence(shop.workspace, shop.read(job), BOT)
    return job, result


def test_a_check_that_failed_again_counts_until_it_passes_again(shop: Project) -> None:
    job, result = failing_again(shop)
    why = "no longer true: AC-1 was checked again and fails: exit status 1"
    assert verified(shop, result.promise).why == why
    write(shop, "exit 1 # a comment", "check.sh")
    assert verified(shop, result.promise).why == why, "another file is no other result"
    assert codes(shop) == ["done_untrue"]
    write(shop, "exit 0", "check.sh")
    collect_evidence(shop.workspace, shop.read(job), BOT, again=True)
    assert verified(shop, result.promise).real and codes(shop) == []


def test_nothing_is_built_on_a_job_whose_check_failed_again(shop: Project) -> None:
    job, _ = failing_again(shop)
    assert not shop.start(shop.add(depends_on=[job.id], started=False)).started


def test_another_command_that_fails_says_nothing_about_the_job(shop: Project) -> None:
    job = wanting(shop, "price")
    write(shop, "the price list")
    result = finished(shop, job)
    assert main(["run", job.id, "--project", str(shop.workspace.root), "--", "sh", "-c", "exit 1"]) == 1
    assert verified(shop, result.promise).real and codes(shop) == []


def test_what_the_agent_wrote_as_evidence_does_not_decide_later(shop: Project) -> None:
    job = wanting(shop, "price")
    evidence = job.folder / "artifacts" / "verification.md"
    evidence.write_text("I ran everything twice.\n")
    write(shop, "the price list")
    result = finished(shop, job)
    evidence.unlink()
    assert verified(shop, result.promise).real and codes(shop) == []
    assert shop.complete(job).repeated


# Texts with several promises


def test_every_promise_of_a_text_is_verified(shop: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = wanting(shop, "price")
    write(shop, "the price list")
    result = finished(shop, job)
    assert result.promise is not None
    fake = Promise("WI-20260214-002", result.promise.receipt)
    text = f"{result.promise.text}\n{fake.text}\n<promise>PJ-20260214-001-DONE</promise>\n"
    checks = verify_promises(shop.workspace, text, approval_policy(shop.workspace))
    assert [(check.id, check.real) for check in checks] == [
        (job.id, True), ("WI-20260214-002", False), ("PJ-20260214-001", False)]  # fmt: skip
    file = tmp_path / "said.txt"
    file.write_text(text)
    capsys.readouterr()
    assert main(["promise", "verify", str(file), "--project", str(shop.workspace.root), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert [promise["real"] for promise in said["data"]["promises"]] == [True, False, False]
    assert (said["data"]["id"], said["data"]["real"]) == ("WI-20260214-002", False)
    assert len(said["findings"]) == 2


def test_a_receipt_belongs_to_the_promise_before_it(shop: Project) -> None:
    job = wanting(shop, "price")
    write(shop, "the price list")
    promise = finished(shop, job).promise
    assert promise is not None
    text = f"<promise>{job.id}-DONE</promise>\n{promise.text}"
    checks = verify_promises(shop.workspace, text, approval_policy(shop.workspace))
    assert [check.real for check in checks] == [False, True]


# The check of the plan


@pytest.mark.parametrize("how", ["deleted", "hidden"])
def test_a_job_of_the_ledger_without_a_folder_is_found(shop: Project, how: str) -> None:
    job = wanting(shop, "price")
    assert codes(shop) == []
    if how == "deleted":
        shutil.rmtree(job.folder)
    else:
        job.folder.rename(job.folder.with_name(f".{job.folder.name}"))
    assert codes(shop) == ["job_missing"]


def test_a_project_that_is_typed_done_against_the_ledger_is_found(shop: Project) -> None:
    job = wanting(shop, "price")
    other = shop.add()
    write(shop, "the price list")
    finished(shop, job)
    shop.output(other)
    finished(shop, other)
    assert codes(shop) == []
    typed(job, shop.workspace.project().path, completed_at="2026-01-01T00:00:00Z")
    assert codes(shop) == ["tampered"]


def test_a_dependency_that_is_a_workstream_or_a_workstream_that_does_not_exist_is_found(tmp_path: Path) -> None:
    workspace, (one, two) = big(tmp_path)
    stream = two.folder.parent.parent
    typed(two, stream / "plan.md", depends_on=["WS-20260214-009"])
    found = check_plan(workspace, survey_jobs(workspace), approval_policy(workspace))
    assert [problem.code for problem in found] == ["dependency_dangling"]
    assert found[0].message.endswith("depends on WS-20260214-009, which does not exist.")
    workstream = id_in(stream.name)
    typed(two, stream / "plan.md", depends_on=[workstream])
    typed(one, depends_on=[workstream])
    messages = [
        problem.message for problem in check_plan(workspace, survey_jobs(workspace), approval_policy(workspace))
    ]
    assert f"{one.id} depends on {workstream}, which is no job: name jobs." in messages


def test_lists_show_that_a_done_job_is_no_longer_done(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    job = wanting(shop, "price")
    write(shop, "the price list")
    finished(shop, job)
    last = wanting(shop, "end", "/b.txt", depends_on=[job.id], started=False)

    def said(verb: str) -> dict[str, Any]:
        capsys.readouterr()
        main([verb, "--project", str(shop.workspace.root), "--json"])
        data: dict[str, Any] = json.loads(capsys.readouterr().out)["data"]
        return data

    assert said("ready")["ready"] == [last.id]
    (shop.workspace.root / "a.txt").unlink()
    assert [row["state"] for row in said("status")["jobs"]] == ["no_longer_done", "waiting"]
    assert said("ready")["ready"] == []


# What can be agreed to


@pytest.mark.parametrize(
    "path",
    [
        "/.donewhen/note.txt",
        "/jobs/notes/lessons-learned.md",
        "/jobs/plan.md",
        "/out/",
        "/out",
        "plan.md",
    ],
)
def test_an_output_that_can_not_show_the_work_is_not_agreed_to(shop: Project, path: str) -> None:
    (shop.workspace.root / "out").mkdir()
    job = shop.add(agreed=False, outputs=[path])
    *_, proposal = agreement_proposals(shop.workspace, [job])
    assert [problem.code for problem in proposal.problems] == ["output_unusable"]


@pytest.mark.parametrize(
    "path", ["/out/a.txt", "/out/*.txt", "notes/mine.md", "/jobs.md", "/app/[id]/page.tsx", "/src/plan.md"]
)
def test_other_outputs_are_agreed_to(shop: Project, path: str) -> None:
    job = shop.add(agreed=False, outputs=[path])
    *_, proposal = agreement_proposals(shop.workspace, [job])
    assert proposal.problems == ()


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"criteria": ["It says yes. [check: run pytest]\u200b"]}, "The criterion AC-1"),
        ({"criteria": ["It says yes.\n  check: file /a\u202e.txt"]}, "The criterion AC-1"),
        ({"criteria": ["It says yes.\u2028  check: run pytest"]}, "A line of the acceptance criteria"),
        ({"criteria": ["It says yes.\x85It says more."]}, "A line of the acceptance criteria"),
        ({"outputs": ["/a\u2066b.txt"]}, "The field outputs"),
        ({"inputs": ["/a\u00adb.txt"]}, "The field inputs"),
        ({"commands": ["sh check\u200b.sh"]}, "The field truth_required_commands"),
    ],
    ids=["criterion", "check", "line separator", "next line", "output", "input", "command"],
)
def test_a_contract_with_a_character_that_can_not_be_seen_is_not_agreed_to(
    shop: Project, given: dict[str, Any], what: str
) -> None:
    job = add_job(shop.workspace, "Parser", **{"criteria": [WRITTEN], **given})
    *_, proposal = agreement_proposals(shop.workspace, [job])
    (problem,) = proposal.problems
    assert problem.code == "hidden_character" and problem.message.startswith(what)
    assert problem.where.rpartition(":")[2].isdigit()


def test_a_file_check_may_name_a_path_with_spaces(shop: Project) -> None:
    job = shop.add('It is priced.\n  check: file "/my list.txt" matches /price/', outputs=["/my list.txt"])
    write(shop, "the price list", "my list.txt")
    finished(shop, job)
    assert [str(criterion.check and criterion.check.normal) for criterion in shop.read(job).criteria] == [
        'file "/my list.txt" matches /price/'
    ]


def test_a_pattern_as_output_needs_a_file_and_stays_true_with_all_of_them(shop: Project) -> None:
    job = wanting(shop, "price", "/dist/main.js", started=False)
    job = shop.edit(job, "- /dist/main.js", "- /dist/*")
    shop.agree(job)
    assert shop.start(job).started
    refused = shop.complete(job).evaluation
    assert refused is not None and "/dist/* is missing." in [reason.message for reason in refused.reasons]
    (shop.workspace.root / "dist").mkdir()
    write(shop, "the price of everything", "dist/main.js")
    write(shop, "some more of that", "dist/more.js")
    (shop.workspace.root / "dist/.gitkeep").touch()
    result = finished(shop, job)
    assert verified(shop, result.promise).real
    (shop.workspace.root / "dist/more.js").unlink()
    assert verified(shop, result.promise).why == "no longer true: its output dist/more.js is gone"


def test_a_script_of_the_project_is_not_hidden_by_the_name_of_a_script_of_the_tool(
    shop: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop.workspace.root / "scripts").mkdir()
    write(shop, "raise SystemExit(1)", "scripts/plan_check.py")
    hidden = shop.add(agreed=False, commands=["python3 scripts/plan_check.py"])
    *_, proposal = agreement_proposals(shop.workspace, [hidden])
    (problem,) = proposal.problems
    assert problem.code == "command" and "./scripts/plan_check.py" in problem.message
    job = shop.add(commands=["python3 ./scripts/plan_check.py"])
    shop.output(job)
    assert not shop.complete(job).done
    write(shop, "raise SystemExit(0)", "scripts/plan_check.py")
    finished(shop, job)


@pytest.mark.parametrize("name", ["PJ-20260214-009", "WS-20260214-009"])
def test_a_job_can_not_have_the_id_of_a_project_or_workstream(shop: Project, name: str) -> None:
    job = add_job(shop.workspace, "Login", criteria=["It is there.\n  check: file /login.txt"])
    path = job.folder.rename(job.folder.parent / "login") / job.path.name
    path.write_text(path.read_text().replace(job.id, name))
    assert codes(shop) == ["field"]
    with pytest.raises(DonewhenError, match="the id of a project or workstream"):
        shop.workspace.job_at(path)
