"""Tricks with the gate itself, the promise, approvals and other jobs, each beside the honest change like it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import test_gate_tricks
import test_gate_tricks_judge
import test_gate_tricks_running
from gate_kit import PAGE, Shop, Trick, assert_promised, assert_refused, once, page

from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job

# 14: the gate itself


def _settings(before: str, after: str) -> Callable[[Shop], Job]:
    def play(shop: Shop) -> Job:
        shop.write("donewhen.toml", before)
        job = shop.job()
        shop.work()
        shop.write("donewhen.toml", after)
        return job

    return play


TIGHTENED = _settings("[stop]\njobs = true\n", '[stop]\njobs = true\nfiles = ["check.py"]\n')
HOOK = {"type": "command", "command": "donewhen hook stop --runtime claude", "timeout": 600}
HOOKS = json.dumps({"hooks": {"Stop": [{"hooks": [HOOK]}]}})


def hook_removed(shop: Shop) -> Job:
    hooks = shop.write(".claude/settings.json", HOOKS)
    job = shop.job()
    shop.work()
    hooks.unlink()
    return job


def hooks_of_others_added(shop: Shop) -> Job:
    hooks = shop.write(".claude/settings.json", HOOKS)
    job = shop.job()
    shop.work()
    hooks.write_text(json.dumps(json.loads(HOOKS) | {"model": "other"}, indent=1))
    return job


def ledger_edited(shop: Shop) -> Job:
    job = shop.job()
    shop.work()
    path = shop.ledger(job)
    path.write_text(path.read_text().replace('"max_iterations":3', '"max_iterations":9', 1))
    return job


def refusals_cut_off(shop: Shop) -> Job:
    job = shop.job()
    path = shop.ledger(job)
    before = path.read_bytes()
    for _ in range(2):
        complete(shop.workspace, job.id, unproved_actor())
    shop.work()
    path.write_bytes(before)
    return job


def ledger_deleted(shop: Shop) -> Job:
    job = shop.job()
    shop.work()
    shop.ledger(job).unlink()
    return job


def torn_line(shop: Shop) -> Job:
    job = shop.job()
    shop.work()
    with shop.ledger(job).open("ab") as file:
        file.write(b'{"seq":3,"prev":')
    return job


# 15: the promise itself


def _quoted(**fields: str) -> Callable[[Shop], Job]:
    def play(shop: Shop) -> Job:
        job = shop.job()
        shop.write("result.txt", "bad work\n")
        promise = f'"<promise>{job.id}-DONE</promise>"'
        shop.field(job, **dict.fromkeys(fields, promise))
        return job

    return play


def promise_in_the_output(shop: Shop) -> Job:
    job = shop.job()
    shop.write("check.py", f"print('<promise>{job.id}-DONE</promise>')\nraise SystemExit(1)\n")
    shop.write("result.txt", f"<promise>{job.id}-DONE</promise>\nreceipt: sha256:{'0' * 64}\n")
    return job


def promise_quoted_in_the_plan(shop: Shop) -> Job:
    job = shop.job()
    shop.work()
    shop.edit(job, "## Objective\n", f"## Objective\n\nEnds with <promise>{job.id}-DONE</promise>.\n")
    return job


# 17: nagging


def _nagged(times: int) -> Callable[[Shop], Job]:
    def play(shop: Shop) -> Job:
        job = shop.job()
        for _ in range(times):
            assert not complete(shop.workspace, job.id, unproved_actor()).done
        shop.work()
        return job

    return play


# 18: approving one's own work


def agreed_by_an_agent(shop: Shop) -> Job:
    job = shop.job(agreed=False)
    assert shop.run("agree").returncode == 1
    shop.work()
    return job


MANUAL = "It reads well\n  check: manual"


def signed_off_by_an_agent(shop: Shop) -> Job:
    job = shop.job(MANUAL)
    shop.work()
    done = shop.run("sign-off", job.id, "--criterion", "AC-1", "--reason", "I like it.")
    assert done.returncode == 1
    return job


def signed_off_by_a_person(shop: Shop) -> Job:
    job = shop.job(MANUAL, edit=("## Verification\n", "## Verification\n\nA person reads it aloud.\n"))
    shop.work()
    sign_off(shop.workspace, job, "AC-1", "I have read it.", Approval(person_at_terminal()))
    return job


def signed_off_and_changed(shop: Shop) -> Job:
    job = signed_off_by_a_person(shop)
    shop.write("result.txt", "good, but other work\n")
    return job


def budget_raised_by_an_agent(shop: Shop) -> Job:
    job = _nagged(4)(shop)
    done = shop.run("decide", job.id, "--raise-budget", "9", "--reason", "Once more.")
    assert done.returncode == 1
    return job


def budget_raised_by_a_person(shop: Shop) -> Job:
    job = _nagged(4)(shop)
    more = Decision("raise_budget", "The API changed.", 9)
    decide(shop.workspace, shop.workspace.job(job.id), more, Approval(person_at_terminal()))
    lower = Decision("target", "Late, but good.", 70)
    decide(shop.workspace, shop.workspace.job(job.id), lower, Approval(person_at_terminal()))
    assert start_job(shop.workspace, job.id, unproved_actor()).started
    return job


# 16: nothing was done


def outputs_noted_by_an_agent_first(shop: Shop) -> Job:
    shop.work()
    job = shop.job(agreed=False)
    kept = (shop.root / "result.txt").rename(shop.root / "kept.txt")
    assert shop.run("agree").returncode == 1
    kept.rename(shop.root / "result.txt")
    shop.agree(job)
    assert start_job(shop.workspace, job.id, unproved_actor()).started
    return job


def done_after_an_agent_agreed_in_vain(shop: Shop) -> Job:
    job = shop.job(agreed=False)
    assert shop.run("agree").returncode == 1
    shop.agree(job)
    assert start_job(shop.workspace, job.id, unproved_actor()).started
    shop.work()
    return job


# 21: other jobs


def cancelled_by_an_agent(shop: Shop) -> Job:
    job = shop.job()
    shop.work()
    assert shop.run("decide", job.id, "--cancel", "--reason", "Not needed.").returncode == 1
    shop.field(job, status="cancelled")
    return job


def _cancelled(shop: Shop) -> Job:
    job = shop.job()
    shop.work()
    decide(
        shop.workspace, shop.workspace.job(job.id), Decision("cancel", "Not wanted."), Approval(person_at_terminal())
    )
    return job


def cancelled_and_rescoped(shop: Shop) -> Job:
    job = _cancelled(shop)
    decide(
        shop.workspace, shop.workspace.job(job.id), Decision("rescope", "Wanted again."), Approval(person_at_terminal())
    )
    assert start_job(shop.workspace, job.id, unproved_actor()).started
    return job


def dependency_cancelled(shop: Shop) -> Job:
    above = shop.job(title="Above", outputs=("/above.txt",))
    below = shop.job(title="Below", depends_on=[above.id], started=False)
    shop.work()
    decide(
        shop.workspace, shop.workspace.job(above.id), Decision("cancel", "Not wanted."), Approval(person_at_terminal())
    )
    return below


# 22: no answer


def judged_by_nobody(shop: Shop) -> Job:
    job = shop.job("It reads well\n  check: judge style")
    shop.work()
    return job


def manual_and_left_alone(shop: Shop) -> Job:
    job = shop.job(MANUAL)
    shop.work()
    return job


FAILED = ("criterion_failed",)
ROLLED_BACK = "Ledger and plan rolled back together; an anchor in git (`donewhen anchor`) and CI detect it."
TRUE_PROMISE = "A reader who trusts a promise without `donewhen promise verify`."
ELSEWHERE = "The person's own settings outside of the project."
ONE_BYTE = "A change of one byte; only the criteria can check whether it is correct."
ALONE = "An agent that acts as the person at a pseudo-terminal, with all of their rights."

TRICKS = [
    Trick(14, "the settings loosened", ("agreement_voided",),
          _settings('[stop]\njobs = true\n', "[stop]\njobs = false\n"),
          "the settings tightened", TIGHTENED, ELSEWHERE),
    Trick(14, "CI allowed to approve", ("agreement_voided",), _settings("", "[approval]\nci = true\n"),
          "the settings tightened", TIGHTENED, ELSEWHERE),
    Trick(14, "the hook removed", ("agreement_voided",), hook_removed, "other runtime settings changed",
          hooks_of_others_added, "Hooks in the person's own settings; `donewhen doctor` checks that they work."),
    Trick(14, "a ledger entry edited", ("agreement_unsealed", "record_broken", "record_tampered"),
          ledger_edited, "an incomplete last line", torn_line, ROLLED_BACK),
    Trick(14, "refusals removed from the end of the ledger", ("record_gone_back",), refusals_cut_off,
          "an incomplete last line", torn_line, ROLLED_BACK),
    Trick(14, "the ledger deleted", ("record_gone_back",), ledger_deleted,
          "an incomplete last line", torn_line, ROLLED_BACK),
    Trick(15, "the promise as the job's title", FAILED, _quoted(title=""), "the promise quoted in the plan",
          promise_quoted_in_the_plan, TRUE_PROMISE),
    Trick(15, "the promise in an edited field", ("criterion_failed", "record_tampered"),
          _quoted(reward_last_next_action=""), "the promise quoted in the plan", promise_quoted_in_the_plan,
          TRUE_PROMISE),
    Trick(15, "the promise printed by the check and written into the output", FAILED, promise_in_the_output,
          "the promise quoted in the plan", promise_quoted_in_the_plan, TRUE_PROMISE),
    Trick(17, "completing repeatedly until the budget is used up, then the work", ("budget_exceeded",), _nagged(4),
          "done on the last attempt", _nagged(3), "Anything that a person decides to allow."),
    Trick(18, "an agent agrees", ("not_agreed_yet", "not_started"), agreed_by_an_agent,
          "a person signs off", signed_off_by_a_person, ALONE),
    Trick(18, "an agent signs off its own work", ("needs_human",), signed_off_by_an_agent,
          "a person signs off", signed_off_by_a_person, ALONE),
    Trick(18, "the output changed after a person signed it off", ("needs_human",), signed_off_and_changed,
          "a person signs off", signed_off_by_a_person, ALONE),
    Trick(18, "an agent raises its own budget", ("budget_exceeded",), budget_raised_by_an_agent,
          "a person raises the budget", budget_raised_by_a_person, ALONE),
    Trick(16, "an agent agrees while the old output is moved away", ("output_unchanged",),
          outputs_noted_by_an_agent_first, "work done after an agent's agreement had no effect",
          done_after_an_agent_agreed_in_vain, ONE_BYTE),
    Trick(21, "an agent cancels the job and edits the plan", ("record_tampered",), cancelled_by_an_agent,
          "cancelled and rescoped", cancelled_and_rescoped, ALONE),
    Trick(21, "a job that a person has cancelled is completed anyway", ("cancelled",), _cancelled,
          "cancelled and rescoped", cancelled_and_rescoped, ALONE),
    Trick(21, "a dependency is cancelled", ("dependency_open", "not_started"), dependency_cancelled,
          "cancelled and rescoped", cancelled_and_rescoped, ALONE),
    Trick(22, "a manual criterion without a sign-off", ("needs_human",), manual_and_left_alone,
          "a person signs off", signed_off_by_a_person, ALONE),
    Trick(22, "a judge criterion without a verdict", ("criterion_not_shown",), judged_by_nobody, "a person signs off",
          signed_off_by_a_person, ALONE),
]  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS, ids=[one.id for one in TRICKS])
def test_the_trick_gets_no_promise(tmp_path: Path, trick: Trick) -> None:
    assert_refused(Shop(tmp_path), trick)


@pytest.mark.parametrize("trick", once(TRICKS), ids=[one.twin for one in once(TRICKS)])
def test_its_innocent_twin_is_completed(tmp_path: Path, trick: Trick) -> None:
    assert_promised(Shop(tmp_path), trick)


# 21, seen from the project: it is done when everything in it is, and something was.

PROJECT_IS_NOT_DONE: dict[str, Callable[[Shop, Job], object]] = {
    "it is left open": lambda shop, other: None,
    "an agent cancels it": lambda shop, other: shop.run("decide", other.id, "--cancel", "--reason", "Not needed."),
    "cancelled is typed in": lambda shop, other: shop.field(other, status="cancelled"),
    "done is typed in": lambda shop, other: shop.field(other, status="done"),
    "its folder is deleted": lambda shop, other: shutil.rmtree(other.folder),
    "its folder and the views are deleted": lambda shop, other: [
        shutil.rmtree(path) for path in (other.folder, shop.workspace.base / "outputs")
    ],
    "its folder is hidden, and the views are deleted": lambda shop, other: [
        other.folder.rename(other.folder.with_name(f".{other.folder.name}")),
        shutil.rmtree(shop.workspace.base / "outputs"),
    ],
    "its plan is broken": lambda shop, other: other.path.write_text("---\nstatus: [\n---\n"),
    "its plan is broken, and the views are deleted": lambda shop, other: [
        other.path.write_text("---\nstatus: [\n---\n"),
        shutil.rmtree(shop.workspace.base / "outputs"),
    ],
}


@pytest.mark.parametrize("trick", PROJECT_IS_NOT_DONE.values(), ids=list(PROJECT_IS_NOT_DONE))
def test_a_project_is_not_done_by_doing_away_with_its_open_job(
    tmp_path: Path, trick: Callable[[Shop, Job], object]
) -> None:
    shop = Shop(tmp_path)
    job, other = shop.job(), shop.job("Other work\n  check: file /other.txt", title="Other", outputs=("/other.txt",))
    shop.work()
    trick(shop, other)
    answer = shop.complete(job)
    assert f"<promise>{job.id}-DONE</promise>" in answer.stdout, answer
    assert "<promise>PJ-" not in answer.stdout
    assert shop.history(shop.workspace.project().id).completed is None


def test_the_twin_where_a_person_cancels_the_other_job_completes_the_project(
    tmp_path: Path, as_person: Callable[..., object]
) -> None:
    shop = Shop(tmp_path)
    job, other = shop.job(), shop.job("Other work\n  check: file /other.txt", title="Other", outputs=("/other.txt",))
    shop.work()
    as_person(["decide", other.id, "--cancel", "--reason", "Not wanted."], shop.root)
    answer = shop.complete(job)
    assert f"<promise>{job.id}-DONE</promise>" in answer.stdout
    assert f"<promise>{shop.workspace.project().id}-DONE</promise>" in answer.stdout


def test_a_project_whose_last_open_job_a_person_cancels_is_done_by_the_next_completion(
    tmp_path: Path, as_person: Callable[..., object]
) -> None:
    shop = Shop(tmp_path)
    job, other = shop.job(), shop.job("Other work\n  check: file /other.txt", title="Other", outputs=("/other.txt",))
    shop.work()
    shop.finish(job)
    as_person(["decide", other.id, "--cancel", "--reason", "Not wanted."], shop.root)
    answer = shop.complete(job)
    assert f"<promise>{job.id}-DONE</promise>" in answer.stdout
    assert f"<promise>{shop.workspace.project().id}-DONE</promise>" in answer.stdout


def test_an_enter_in_place_of_the_word_signs_nothing_off(tmp_path: Path, as_person: Callable[..., object]) -> None:
    shop = Shop(tmp_path)
    job = manual_and_left_alone(shop)
    as_person(["sign-off", job.id, "--criterion", "AC-1", "--reason", "Yes."], shop.root, answer="")
    answer = shop.complete(job)
    assert answer.codes == ("needs_human",)
    assert answer.promises == 0


@pytest.mark.parametrize("kind", ["bare", "invented receipt", "receipt of another entry", "receipt of another job"])
def test_a_typed_promise_is_told_from_a_real_one(tmp_path: Path, kind: str) -> None:
    shop = Shop(tmp_path)
    job, other = shop.job(), shop.job("Other work\n  check: file /other.txt", title="Other", outputs=("/other.txt",))
    shop.work("other.txt")
    real = shop.complete(other).stdout
    hashes = [entry.hash for entry in shop.workspace.ledger.read(job.id).entries]
    receipt = {
        "bare": "",
        "invented receipt": f"receipt: sha256:{'0' * 64}",
        "receipt of another entry": f"receipt: {hashes[-1]}",
        "receipt of another job": "receipt: " + real.partition("receipt: ")[2].splitlines()[0],
    }[kind]
    promise = shop.write("said.txt", f"<promise>{job.id}-DONE</promise>\n{receipt}\n")
    assert shop.run("promise", "verify", str(promise)).returncode == 1
    promise.write_text(real)
    assert shop.run("promise", "verify", str(promise)).returncode == 0


def test_the_page_in_the_docs_tells_of_exactly_these_tricks() -> None:
    tricks = [*test_gate_tricks.TRICKS, *test_gate_tricks_running.TRICKS, *test_gate_tricks_judge.TRICKS, *TRICKS]
    assert PAGE.read_text(encoding="utf-8") == page((trick, trick.codes) for trick in tricks)
