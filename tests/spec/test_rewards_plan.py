"""One test for each rule of the rewards specification about plans as a whole, and about work that was done and is no
longer: in our own words, against the product as it is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.spec.test_rewards import ADA, BOT, WRITTEN, Project

from donewhen.cli import main
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.lifecycle.completion import Completion
from donewhen.jobs.lifecycle.planning import check_plan
from donewhen.jobs.lifecycle.project_criteria import sign_off_project
from donewhen.jobs.lifecycle.promise import verify_promise
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import parse_document, rewrite_fields
from donewhen.jobs.plan.job import Job


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    return Project(tmp_path)


def done(shop: Project, *criteria: str, **options: Any) -> Job:
    job = shop.add(*criteria, **options)
    shop.output(job)
    assert shop.complete(job).done
    return shop.read(job)


def typed(job: Job, path: Path | None = None, **fields: Any) -> None:
    """Fields as somebody types them into a plan file."""
    path = path or job.path
    path.write_bytes(rewrite_fields(parse_document(path.read_bytes(), path.name), fields))


def codes(shop: Project) -> list[str]:
    found = check_plan(shop.workspace, survey_jobs(shop.workspace), approval_policy(shop.workspace))
    return sorted({problem.code for problem in found})


def plan_check(shop: Project, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    status = main(["plan-check", "--project", str(shop.workspace.root), "--json"])
    return status, [finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]]


# The check of the plan


def test_a_plan_of_good_jobs_has_no_problem(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    done(shop)
    shop.add()
    shop.add(agreed=False)
    assert plan_check(shop, capsys) == (0, [])


def test_a_done_job_whose_output_is_gone_is_found(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    job = done(shop)
    output = job.folder / "outputs" / "primary.md"
    before = output.read_bytes()
    output.unlink()
    assert plan_check(shop, capsys) == (1, ["output_changed"])
    output.write_bytes(before)
    assert codes(shop) == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"truth_last_status": "fail"}, "done_untrue"),
        ({"truth_last_status": "unknown"}, "done_untrue"),
        ({"truth_last_failures": ["AC-1 is not met."]}, "done_untrue"),
        ({"reward_last_score": 79}, "done_below_target"),
        ({"reward_last_score": ""}, "done_below_target"),
    ],
    ids=["failed", "unknown", "failures", "score", "no score"],
)
def test_a_done_job_whose_recorded_result_is_bad_is_found(shop: Project, fields: dict[str, Any], code: str) -> None:
    job = done(shop)
    typed(job, **fields)
    assert code in codes(shop)
    # Without a ledger, too, as in a workspace of another tool.
    other = add_job(shop.workspace, "Other", criteria=[WRITTEN])
    typed(other, status="done", truth_last_status="pass", reward_last_score=80)
    assert codes(shop) == sorted({code, "tampered", "unsealed"})
    typed(other, **fields)
    assert code in codes(shop)


def test_work_without_an_agreement_is_found(shop: Project) -> None:
    job = add_job(shop.workspace, "Early", criteria=[WRITTEN])
    assert codes(shop) == []
    typed(job, status="in_progress")
    assert codes(shop) == ["work_not_agreed"]


def test_work_on_a_void_agreement_is_found(shop: Project) -> None:
    job = shop.add()
    assert codes(shop) == []
    shop.edit(job, "check: file outputs/primary.md", "check: manual")
    assert codes(shop) == ["voided"]


@pytest.mark.parametrize(("status", "found"), [("in_progress", True), ("done", True), ("blocked", False)])
def test_a_job_over_its_budget_that_is_not_blocked_is_found(shop: Project, status: str, found: bool) -> None:
    job = add_job(shop.workspace, "Long", criteria=[WRITTEN])
    typed(job, status=status, iteration=4, max_iterations=3)
    assert ("over_budget" in codes(shop)) is found


def test_a_decision_about_the_budget_is_respected(shop: Project) -> None:
    job = shop.add(stakes="low")
    for _ in range(3):
        shop.complete(job)
    assert shop.read(job).status == "blocked"
    assert codes(shop) == []
    decide(shop.workspace, shop.read(job), Decision("raise_budget", "go on", 9), ADA)
    assert shop.start(job).started
    assert codes(shop) == []


def test_a_project_that_is_typed_done_over_open_jobs_is_found(shop: Project) -> None:
    job = add_job(shop.workspace, "Open", criteria=[WRITTEN])
    plan = shop.workspace.project_file
    typed(job, plan, status="done")
    assert codes(shop) == ["done_too_early"]
    typed(job, status="cancelled")
    assert codes(shop) == ["done_too_early"], "all jobs cancelled is not done"
    typed(job, plan, status="in_progress")
    assert codes(shop) == []


def test_a_project_that_was_done_and_got_another_job_is_not_done(shop: Project) -> None:
    done(shop)
    assert shop.workspace.project().status == "done"
    assert codes(shop) == []
    typed(shop.add(agreed=False), status="blocked")
    typed(shop.add(agreed=False), shop.workspace.project_file, status="done")
    assert "done_too_early" in codes(shop)


def test_a_workstream_that_is_typed_done_over_open_jobs_is_found(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Big", form="big")
    shop = Project.__new__(Project)
    shop.workspace = workspace
    job, other = (add_job(workspace, "Parser", criteria=[WRITTEN], workstream=name) for name in ("Backend", "Frontend"))
    first, second = (item.folder.parent.parent for item in (job, other))
    assert codes(shop) == []
    typed(job, first / "plan.md", status="done")
    assert codes(shop) == ["done_too_early"]
    typed(job, first / "plan.md", status="planned")
    typed(job, second / "plan.md", kind="epic")
    assert codes(shop) == ["unknown_format"]


@pytest.mark.parametrize("field", ["kind", "schema"])
@pytest.mark.parametrize("where", ["job", "project"])
def test_an_unknown_kind_or_schema_is_found(shop: Project, field: str, where: str) -> None:
    job = shop.add()
    path = job.path if where == "job" else shop.workspace.project_file
    typed(job, path, **{field: "theworkshop.plan.v9"})
    assert codes(shop) == ["unknown_format"]
    typed(job, path, **{field: ""})
    assert codes(shop) == []


# Done stays true where it counts


@pytest.mark.parametrize("spoil", ["gone", "changed"])
def test_nothing_is_completed_over_a_done_job_whose_output_is_not_what_it_was(shop: Project, spoil: str) -> None:
    first = done(shop)
    second = shop.add(depends_on=[first.id])
    shop.output(second)
    output = first.folder / "outputs" / "primary.md"
    before = output.read_bytes()
    if spoil == "gone":
        output.unlink()
    else:
        output.write_text("Something else.\n")
    refused = shop.complete(second)
    assert not refused.done and refused.evaluation is not None
    assert "dependency_invalid" in {reason.code for reason in refused.evaluation.reasons}
    output.write_bytes(before)
    result = shop.complete(second)
    assert result.done
    assert [promise.id for promise in result.cascade] == [shop.workspace.project().id]


def test_no_project_promise_is_given_over_an_output_that_is_gone(shop: Project) -> None:
    first, second = done_in_open_project(shop)
    (first.folder / "outputs" / "primary.md").unlink()
    shop.output(second)
    result = shop.complete(second)
    assert result.done and result.cascade == ()
    assert shop.workspace.project().status == "in_progress"


def done_in_open_project(shop: Project) -> tuple[Job, Job]:
    """A done job, and one that is in progress beside it."""
    second = shop.add()
    return done(shop), second


def with_project_criterion(shop: Project, check: str) -> None:
    plan = shop.workspace.project_file
    text = plan.read_text()
    assert "## Acceptance Criteria" in text or "# Acceptance Criteria" in text
    heading = "Acceptance Criteria\n"
    at = text.index(heading) + len(heading)
    plan.write_text(f"{text[:at]}\n- AC-9: The shop opens.\n  check: {check}\n{text[at:]}")


def test_the_criteria_of_the_project_are_checked_before_its_promise(shop: Project) -> None:
    with_project_criterion(shop, "run sh open.sh")
    script = shop.workspace.root / "open.sh"
    script.write_text("exit 1\n")
    job = done_with(shop)
    assert job.done and job.cascade == ()
    assert len(job.unmet) == 1
    assert job.unmet[0].startswith("AC-9 of the project (The shop opens) is not met: exit status 1")
    assert shop.workspace.project().status == "in_progress"
    script.write_text("exit 0\n")
    again = shop.complete(job.job)
    assert again.repeated and again.unmet == ()
    assert [promise.id for promise in again.cascade] == [shop.workspace.project().id]
    assert shop.workspace.project().status == "done"


def done_with(shop: Project) -> Completion:
    job = shop.add()
    shop.output(job)
    return shop.complete(job)


def test_a_file_check_of_the_project_decides_too(shop: Project) -> None:
    with_project_criterion(shop, "file /summary.md")
    result = done_with(shop)
    assert result.cascade == () and "AC-9" in result.unmet[0]
    (shop.workspace.root / "summary.md").write_text("All of it.\n")
    assert [promise.id for promise in shop.complete(result.job).cascade] == [shop.workspace.project().id]


def test_a_criterion_of_the_project_that_cant_be_checked_keeps_no_promise_of_a_job_back(shop: Project) -> None:
    with_project_criterion(shop, "file ../../elsewhere.md")
    result = done_with(shop)
    assert result.done and result.promise is not None and result.cascade == ()
    assert "is not inside the job or the project" in result.unmet[0]
    assert shop.complete(result.job).promise == result.promise


def test_a_manual_criterion_of_the_project_waits_for_a_person(shop: Project) -> None:
    with_project_criterion(shop, "manual")
    result = done_with(shop)
    assert result.cascade == ()
    assert result.unmet == ("AC-9 of the project (The shop opens) is not met: nobody has signed it off yet",)
    sign_off_project(shop.workspace, "AC-9", "So I say.", Approval(BOT))
    assert "does not count" in shop.complete(result.job).unmet[0]
    assert sign_off_project(shop.workspace, "AC-9", "I was there.", ADA).counts
    assert [promise.id for promise in shop.complete(result.job).cascade] == [shop.workspace.project().id]


def test_a_project_criterion_without_a_check_is_met_by_the_jobs(shop: Project) -> None:
    result = done_with(shop)
    assert [promise.id for promise in result.cascade] == [shop.workspace.project().id]


def test_a_repeated_completion_says_what_is_no_longer_true(shop: Project) -> None:
    job = done(shop)
    assert shop.complete(job).repeated
    output = job.folder / "outputs" / "primary.md"
    output.unlink()
    result = shop.complete(job)
    assert not result.done and not result.repeated
    assert result.no_longer_true == f"its output {shop.workspace.where(output)} is gone"


def test_an_output_that_was_changed_is_judged_anew(shop: Project) -> None:
    job = done(shop)
    first = shop.complete(job).promise
    shop.output(job, "The log has 13 lines.\n")
    result = shop.complete(job)
    assert result.done and not result.repeated
    assert result.no_longer_true.endswith("changed after it was done")
    assert result.promise != first


def check(shop: Project, result: Completion) -> tuple[bool, str]:
    assert result.promise is not None
    checked = verify_promise(shop.workspace, result.promise.text, approval_policy(shop.workspace))
    return checked.real, checked.why


def test_a_promise_is_no_longer_true_without_its_output(shop: Project) -> None:
    result = done_with(shop)
    assert check(shop, result)[0]
    output = result.job.folder / "outputs" / "primary.md"
    output.write_text("Something else.\n")
    assert check(shop, result) == (
        False,
        f"no longer true: its output {shop.workspace.where(output)} changed after it was done",
    )
    output.unlink()
    assert check(shop, result) == (False, f"no longer true: its output {shop.workspace.where(output)} is gone")


def test_a_promise_is_no_longer_true_when_a_check_that_is_run_again_fails(shop: Project) -> None:
    script = shop.workspace.root / "check.sh"
    script.write_text("exit 0\n")
    job = shop.add("It works.\n  check: run sh check.sh")
    shop.output(job)
    result = shop.complete(job)
    assert result.done
    script.write_text("exit 1\n")
    real, why = check(shop, result)
    assert real and "it was true when it was completed" in why, "other files have moved on"
    collect_evidence(shop.workspace, shop.read(job), BOT)
    assert check(shop, result) == (False, "no longer true: AC-1 was checked again and fails: exit status 1")
    again = shop.complete(job)
    assert not again.done
    assert again.no_longer_true == "AC-1 was checked again and fails: exit status 1"


def test_work_that_moved_on_was_true_at_a_commit(shop: Project) -> None:
    root = shop.workspace.root

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
        return subprocess.run(
            ["git", *who, *arguments], cwd=root, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q", "-b", "main")
    (root / "check.sh").write_text("exit 0\n")
    (root / "other.py").write_text("one = 1\n")
    git("add", "-A")
    git("commit", "-qm", "Begin")
    job = shop.add("It works.\n  check: run sh check.sh")
    shop.output(job)
    result = shop.complete(job)
    git("add", "-A")
    git("commit", "-qm", "Done")
    commit = git("rev-parse", "--short", "HEAD")
    (root / "other.py").write_text("one = 2\n")
    git("commit", "-qam", "Go on")
    assert check(shop, result) == (True, f"the ledger has this completion; it was true at commit {commit}")
    assert shop.complete(job).repeated
    assert codes(shop) == []
