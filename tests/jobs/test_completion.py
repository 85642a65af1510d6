"""The one door to done: open exactly when every gate is, and what is written on either side of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import donewhen
from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.contract.terms import job_terms, terms_hash
from donewhen.jobs.evidence.requirements import Requirement
from donewhen.jobs.gates import evaluation
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.lifecycle import completion
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.lifecycle.promise import verify_promise
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import rewrite_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
SAYS_YES = "It says yes.\n  check: file outputs/primary.md matches /yes/"


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


@pytest.fixture
def job(shop: Workspace) -> Job:
    """A job that is agreed, started, and not done yet."""
    made = made_job(shop, "First")
    assert start_job(shop, made.id, BOT).started
    return made


def made_job(shop: Workspace, title: str, **about: object) -> Job:
    job = add_job(shop, title, criteria=[SAYS_YES], **about)  # type: ignore[arg-type]
    seal(shop, job)
    return job


def seal(shop: Workspace, job: Job) -> None:
    for proposal in agreement_proposals(shop, [shop.job_at(job.path)]):
        agree(shop, proposal, ADA)


def put_out(job: Job, text: str = "yes\n") -> None:
    (job.folder / "outputs" / "primary.md").write_text(text)


def finished(shop: Workspace, job: Job, text: str = "yes\n") -> Completion:
    assert start_job(shop, job.id, BOT).started
    put_out(job, text)
    result = complete(shop, job.id, BOT)
    assert result.done
    return result


def typed(shop: Workspace, path: Path, **fields: Value) -> None:
    """Somebody edits the frontmatter by hand."""
    path.write_bytes(rewrite_fields(shop.read(path), fields))


def entries(shop: Workspace, job: Job, kind: str = "") -> list[Entry]:
    return [entry for entry in shop.ledger.read(job.id).entries if kind in ("", entry.type)]


def fields(shop: Workspace, job: Job) -> dict[str, Value]:
    return dict(shop.read(job.path).fields)


def codes(result: Completion) -> set[str]:
    assert result.evaluation is not None
    return {reason.code.value for reason in result.evaluation.reasons}


def errors(shop: Workspace) -> list[str]:
    return [finding.message for finding in audit_workspace(shop).findings if finding.severity == "error"]


# The promise


def test_the_promise_is_two_lines_that_name_the_job_and_its_entry(shop: Workspace, job: Job) -> None:
    put_out(job)
    result = complete(shop, job.id, BOT)
    assert result.promise is not None
    assert result.promise.text == f"<promise>{job.id}-DONE</promise>\nreceipt: {result.entry.hash}"
    assert result.entry.hash.startswith("sha256:")
    assert entries(shop, job)[-1] == result.entry


def test_a_completion_keeps_what_it_was_made_of(shop: Workspace, job: Job) -> None:
    put_out(job)
    entry = complete(shop, job.id, BOT).entry
    name = shop.where(job.folder / "outputs" / "primary.md")
    assert entry.type == "completed"
    assert set(entry.data["outputs"]) == {name}
    assert entry.data["outputs"][name].startswith("sha256:")
    assert entry.data["gates"] == {"agreement": [], "budget": [], "dependency": [], "truth": [], "reward": []}
    assert entry.data["terms"] == terms_hash(job_terms(shop.job(job.id)))
    assert entry.data["truth_mode"] == "strict"
    assert entry.by == BOT


def test_what_is_done_shows_in_the_plan_and_audits_clean(shop: Workspace, job: Job) -> None:
    put_out(job)
    result = complete(shop, job.id, BOT)
    shown = fields(shop, job)
    assert shown["status"] == result.job.status == "done"
    assert shown["completed_at"]
    assert result.evaluation is not None
    assert shown["reward_last_score"] == result.evaluation.score.total >= 80
    assert shown["truth_last_status"] == "pass"
    assert shown["truth_last_failures"] == []
    assert shown["iteration"] == 0
    assert errors(shop) == []


@pytest.mark.parametrize(
    ("spoil", "gate"),
    [
        ({"reward_target": 10}, "agreement"),
        ({"depends_on": ["WI-20200101-001"]}, "dependency"),
        ({"reward_last_score": 100}, "truth"),
        ({"reward_target": 100}, "reward"),
    ],
    ids=["agreement", "dependency", "truth", "reward"],
)
def test_one_closed_gate_is_enough_to_refuse(shop: Workspace, job: Job, spoil: dict[str, Value], gate: str) -> None:
    put_out(job)
    typed(shop, job.path, **spoil)
    result = complete(shop, job.id, BOT)
    assert (result.done, result.promise, result.entry.type) == (False, None, "refused")
    closed = {name for name, reasons in result.entry.data["gates"].items() if reasons}
    assert closed == {gate}
    assert fields(shop, job)["status"] == "in_progress"


def test_the_budget_gate_is_enough_to_refuse(shop: Workspace, job: Job) -> None:
    for _ in range(4):
        complete(shop, job.id, BOT)
    put_out(job)
    result = complete(shop, job.id, BOT)
    assert {name for name, reasons in result.entry.data["gates"].items() if reasons} == {"budget"}
    assert codes(result) == {"budget_exceeded"}


def test_a_stored_score_and_a_stored_truth_are_never_trusted(shop: Workspace, job: Job) -> None:
    typed(shop, job.path, reward_last_score=100, truth_last_status="pass", status="done", completed_at="2026-01-01")
    result = complete(shop, job.id, BOT)
    assert not result.done
    assert {"criterion_failed", "record_tampered", "output_missing"} <= codes(result)
    shown = fields(shop, job)
    assert shown["reward_last_score"] == result.entry.data["score"] < 80
    assert (shown["truth_last_status"], shown["status"]) == ("fail", "in_progress")


def test_evidence_that_is_stale_is_made_anew_by_completing(shop: Workspace, job: Job) -> None:
    put_out(job)
    assert evaluate_and_record(shop, job.id, BOT, collecting=True).evaluation.passed
    put_out(job, "no\n")
    result = complete(shop, job.id, BOT)
    assert (result.done, codes(result)) == (False, {"criterion_failed", "score_too_low"})
    put_out(job)
    asked: list[Requirement] = []
    assert complete(shop, job.id, BOT, on_progress=asked.append).done
    assert [item.name for item in asked] == ["AC-1"]


def test_a_command_that_is_not_there_is_a_refusal_and_not_a_crash(shop: Workspace) -> None:
    job = made_job(shop, "Script", commands=["./check.sh"])
    start_job(shop, job.id, BOT)
    put_out(job)
    result = complete(shop, job.id, BOT)
    assert not result.done
    assert "command_not_passed" in codes(result)
    assert result.job.iteration == 1


# Refusals


def test_a_refusal_counts_and_is_projected_with_its_next_step(shop: Workspace, job: Job) -> None:
    result = complete(shop, job.id, BOT)
    shown = fields(shop, job)
    assert (shown["iteration"], shown["status"], shown["completed_at"]) == (1, "in_progress", "")
    assert shown["truth_last_status"] == "fail"
    assert result.evaluation is not None
    assert shown["truth_last_failures"] == [reason.message for reason in result.evaluation.truth.reasons] != []
    assert_sentences(shown["reward_last_next_action"])
    assert result.entry.data["next"] == f"donewhen why {job.id}"
    assert errors(shop) == []


def test_a_job_that_was_never_started_stays_planned_when_it_is_refused(shop: Workspace) -> None:
    job = made_job(shop, "Early")
    assert complete(shop, job.id, BOT).job.status == "planned"


def test_completing_a_job_that_was_never_started_or_agreed_costs_no_iteration(shop: Workspace, job: Job) -> None:
    proposed, early = add_job(shop, "Proposed", criteria=[SAYS_YES]), made_job(shop, "Early")
    for each, code in ((proposed, "not_agreed_yet"), (early, "not_started")):
        for _ in range(each.max_iterations + 2):
            result = complete(shop, each.id, BOT)
            assert code in codes(result)
            assert (result.done, result.job.iteration, result.job.status) == (False, 0, "planned")
    # The same refusal of a job that was started counts.
    assert complete(shop, job.id, BOT).job.iteration == 1


def test_loosening_what_was_agreed_still_costs_an_iteration(shop: Workspace, job: Job) -> None:
    put_out(job)
    typed(shop, job.path, reward_target=1)
    result = complete(shop, job.id, BOT)
    assert "agreement_voided" in codes(result)
    assert result.job.iteration == 1


def test_the_budget_is_spent_by_the_try_that_exceeds_it(shop: Workspace, job: Job) -> None:
    seen = []
    for _ in range(4):
        result = complete(shop, job.id, BOT)
        seen.append((result.job.iteration, result.job.status, result.entry.data.get("auto_blocked", False)))
    assert seen == [
        (1, "in_progress", False),
        (2, "in_progress", False),
        (3, "in_progress", False),
        (4, "blocked", True),
    ]


def test_good_work_after_the_budget_is_refused_until_somebody_who_may_has_decided(shop: Workspace, job: Job) -> None:
    for _ in range(4):
        complete(shop, job.id, BOT)
    put_out(job)
    assert complete(shop, job.id, BOT).job.status == "blocked"
    decide(shop, shop.job(job.id), Decision("raise_budget", "more", 9), Approval(BOT))
    assert codes(complete(shop, job.id, BOT)) == {"budget_exceeded"}
    decide(shop, shop.job(job.id), Decision("raise_budget", "more", 9), ADA)
    assert complete(shop, job.id, BOT).done


def test_a_cancelled_job_is_not_completed_whatever_it_shows(shop: Workspace, job: Job) -> None:
    decide(shop, job, Decision("cancel", "not wanted"), ADA)
    put_out(job)
    result = complete(shop, job.id, BOT)
    assert not result.done
    assert GateCode.CANCELLED.value in codes(result)
    assert fields(shop, job)["status"] == "cancelled"


def test_refusals_never_turn_a_cancelled_job_into_another(shop: Workspace, job: Job) -> None:
    decide(shop, job, Decision("cancel", "not wanted"), ADA)
    for _ in range(5):
        complete(shop, job.id, BOT)
    assert fields(shop, job)["status"] == "cancelled"


def test_a_gate_that_breaks_refuses_and_costs_no_try(
    shop: Workspace, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_out(job)

    def broken(_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.delenv("DONEWHEN_DEBUG", raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "truth_gate", broken)
        for _ in range(6):
            result = complete(shop, job.id, BOT)
    assert codes(result) == {"gate_error"}
    assert (result.done, result.job.iteration, result.job.status) == (False, 0, "in_progress")
    assert "auto_blocked" not in result.entry.data
    assert complete(shop, job.id, BOT).done


# Again


def test_a_job_that_is_done_gets_the_same_promise_again_without_a_trace(shop: Workspace, job: Job) -> None:
    put_out(job)
    first = complete(shop, job.id, BOT)
    before = (shop.ledger.read(job.id), job.path.read_bytes())
    again = complete(shop, job.id, BOT)
    assert (again.repeated, again.done, again.evaluation) == (True, True, None)
    assert again.promise == first.promise
    assert (shop.ledger.read(job.id), job.path.read_bytes()) == before
    assert not first.repeated


def test_two_that_complete_at_once_get_one_promise(shop: Workspace, job: Job) -> None:
    put_out(job)
    other: list[Completion] = []

    def meanwhile(_: Requirement) -> None:
        if not other:
            other.append(complete(shop, job.id, Actor("other")))

    mine = complete(shop, job.id, BOT, on_progress=meanwhile)
    assert mine.promise == other[0].promise
    assert len(entries(shop, job, "completed")) == 1


@pytest.mark.parametrize(
    "edit",
    [{"reward_last_score": 1}, {"iteration": 7}, {"max_iterations": 50}],
    ids=["score", "iteration", "budget"],
)
def test_a_done_job_that_was_edited_is_looked_at_anew_and_refused(
    shop: Workspace, job: Job, edit: dict[str, Value]
) -> None:
    put_out(job)
    promise = complete(shop, job.id, BOT).promise
    assert promise is not None
    typed(shop, job.path, **edit)
    result = complete(shop, job.id, BOT)
    assert (result.done, result.repeated) == (False, False)
    shown = fields(shop, job)
    assert (shown["status"], shown["completed_at"], shown["iteration"]) == ("in_progress", "", 1)
    assert not verify_promise(shop, promise.text, approval_policy(shop)).real


def test_a_job_that_was_never_started_is_not_completed(shop: Workspace) -> None:
    job = made_job(shop, "Quick")
    put_out(job)
    result = complete(shop, job.id, BOT)
    assert not result.done
    assert result.evaluation is not None
    assert [reason.code for reason in result.evaluation.reasons] == ["not_started"]
    assert fields(shop, job)["status"] == "planned"


def test_a_refusal_never_leaves_done_behind(shop: Workspace, job: Job) -> None:
    put_out(job)
    assert complete(shop, job.id, BOT).done
    typed(shop, job.path, reward_last_score=1)
    result = complete(shop, job.id, BOT)
    assert not result.done
    assert fields(shop, job)["status"] != "done"


def test_a_broken_chain_keeps_a_done_job_from_its_promise(shop: Workspace, job: Job) -> None:
    put_out(job)
    complete(shop, job.id, BOT)
    path = shop.folder / "ledger" / f"{job.id}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0].replace(b"agreed", b"Agreed", 1), *lines[1:]]))
    result = complete(shop, job.id, BOT)
    assert not result.done
    assert "record_broken" in codes(result)


def test_a_torn_last_line_keeps_nobody_from_anything(shop: Workspace, job: Job) -> None:
    put_out(job)
    first = complete(shop, job.id, BOT)
    with (shop.folder / "ledger" / f"{job.id}.jsonl").open("ab") as file:
        file.write(b'{"seq": 9')
    assert complete(shop, job.id, BOT).promise == first.promise


# Truth that was switched off


def test_truth_is_off_only_where_that_was_agreed_and_then_it_is_on_record(shop: Workspace) -> None:
    job = add_job(shop, "Trust me", criteria=[SAYS_YES])
    typed(shop, job.path, truth_mode="off", reward_target=40)
    seal(shop, job)
    start_job(shop, job.id, BOT)
    put_out(job, "no\n")
    result = complete(shop, job.id, BOT)
    assert result.done
    assert result.entry.data["truth_mode"] == "off"
    assert result.evaluation is not None
    assert "off" in result.evaluation.truth.note


def test_truth_that_was_switched_off_by_hand_voids_the_agreement(shop: Workspace, job: Job) -> None:
    put_out(job, "no\n")
    typed(shop, job.path, truth_mode="off")
    result = complete(shop, job.id, BOT)
    assert not result.done
    assert "agreement_voided" in codes(result)


def test_an_off_switch_does_not_cover_a_record_that_was_tampered_with(shop: Workspace) -> None:
    job = add_job(shop, "Trust me", criteria=[SAYS_YES])
    typed(shop, job.path, truth_mode="off", reward_target=40)
    seal(shop, job)
    start_job(shop, job.id, BOT)
    put_out(job)
    typed(shop, job.path, started_at="2020-01-01T00:00:00Z")
    assert codes(complete(shop, job.id, BOT)) == {"record_tampered"}


# One door


def _writes_of_done() -> Iterator[str]:
    """Every place in the package that makes a mapping or a call in which `status` is `done`."""
    root = Path(donewhen.__file__).parent
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        owner = {
            child: node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for child in ast.walk(node)
        }
        for node in ast.walk(tree):
            pairs: list[tuple[ast.expr | None, ast.expr]] = []
            if isinstance(node, ast.Dict):
                pairs = list(zip(node.keys, node.values, strict=True))
            elif isinstance(node, ast.Assign):
                pairs = [(target.slice, node.value) for target in node.targets if isinstance(target, ast.Subscript)]
            elif isinstance(node, ast.Call):
                pairs = [(ast.Constant(keyword.arg), keyword.value) for keyword in node.keywords]
            for key, value in pairs:
                named = isinstance(key, ast.Constant) and key.value == "status"
                if named and any(isinstance(item, ast.Constant) and item.value == "done" for item in ast.walk(value)):
                    yield f"{path.relative_to(root).as_posix()} {owner.get(node, '')}"


def test_one_function_in_the_whole_package_writes_done() -> None:
    # The demo's agent ticks off the step of a plan, which is no job.
    about_jobs = [write for write in _writes_of_done() if not write.startswith("demo/story.py")]
    assert about_jobs == ["jobs/lifecycle/completion.py _write_done"]


def test_one_module_mints_promises_and_completions() -> None:
    root = Path(donewhen.__file__).parent
    sources = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    assert sorted(name for name, text in sources.items() if '"completed", data' in text) == [
        "jobs/lifecycle/completion.py"
    ]
    minting = sorted(name for name, text in sources.items() if " promise_of(" in text and "/promise.py" not in name)
    assert minting == ["jobs/lifecycle/agent_loop.py", "jobs/lifecycle/completion.py"]
    assert completion.complete is complete


def test_a_job_that_rests_is_completed_when_its_gates_are_open(shop: Workspace, job: Job) -> None:
    set_job_aside(shop, job.id, BOT, reason="waiting for the API")
    put_out(job)
    assert complete(shop, job.id, BOT).job.status == "done"


def test_a_cancelled_job_whose_plan_says_done_is_cancelled_again_when_it_is_refused(bench: Any) -> None:
    job = bench.job()
    decide(bench.workspace, job, Decision("cancel", "not wanted"), Approval(Actor("ada", "person")))
    text = job.path.read_text()
    assert "status: cancelled" in text
    job.path.write_text(text.replace("status: cancelled", "status: done"))
    result = complete(bench.workspace, job.id, Actor("bot"))
    assert not result.done
    assert bench.workspace.job(job.id).status == "cancelled"
