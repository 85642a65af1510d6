"""May an agent stop, as far as its jobs go? Done, blocked with a reason, waiting, out of budget or cancelled: yes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect
from donewhen.adapters.command_hooks import respond_to_event
from donewhen.cli import main
from donewhen.completion import JobChecker, ReasonCode, TaskCompletionContext, TaskCompletionResult
from donewhen.completion.checking import run_check
from donewhen.completion.from_settings import checks_for
from donewhen.config import GuardSettings, load
from donewhen.filesystem import HostFilesystem, InMemoryFilesystem
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.ledger.approval import Approval, Policy, person_at_terminal, unproved_actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.setting_aside import record_unverified_stop, set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.record.history import history_of
from donewhen.runtime import Session
from sentences import assert_sentences


class Shop:
    """A project with jobs that an agent works on."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = create_project(root, "Shop")

    def job(self, title: str = "Report", *, started: bool = True, depends_on: tuple[str, ...] = ()) -> Job:
        """An agreed job that is done when its own file is there."""
        made = add_job(
            self.workspace,
            title,
            outputs=[f"/{title}.txt"],
            criteria=[f"It is written\n  check: file /{title}.txt"],
            depends_on=depends_on,
        )
        for proposal in agreement_proposals(self.workspace, [made]):
            agree(self.workspace, proposal, Approval(person_at_terminal()))
        if started:
            assert start_job(self.workspace, made.id, unproved_actor()).started
        return self.workspace.job(made.id)

    def finished(self, title: str = "Report") -> Job:
        job = self.job(title)
        (self.root / f"{title}.txt").write_text("three good pages\n")
        assert complete(self.workspace, job.id, unproved_actor()).done
        return job

    def edit(self, job: Job, old: str, new: str) -> None:
        text = job.path.read_text()
        assert old in text
        job.path.write_text(text.replace(old, new, 1))

    def history(self, job: Job) -> Any:
        return history_of(job.id, self.workspace.ledger.read(job.id).entries, Policy())

    def types(self, job: Job) -> list[str]:
        return [entry.type for entry in self.workspace.ledger.read(job.id).entries]

    def context(self) -> TaskCompletionContext:
        return TaskCompletionContext(session=Session(), filesystem=HostFilesystem(self.root))

    def check(self, **options: Any) -> TaskCompletionResult:
        return run_check(JobChecker(**options), self.context())

    def hook(self, **more: object) -> dict[str, Any]:
        event = {"session_id": "s", "cwd": str(self.root), "hook_event_name": "Stop", "stop_hook_active": False}
        return respond_to_event("stop", ClaudeCodeDialect(), json.dumps(event | more), {}, self.root)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    (tmp_path / ".git").mkdir()
    return Shop(tmp_path)


# In progress


def test_an_agent_with_a_job_in_progress_hears_what_is_missing_and_the_next_commands(shop: Shop) -> None:
    job = shop.job()
    result = shop.check()
    assert (result.complete, result.code) == (False, ReasonCode.JOB_NOT_DONE)
    assert result.feedback is not None
    assert "\n" not in result.feedback
    assert job.id in result.feedback
    assert_sentences(result.feedback)
    for command in (f"donewhen complete {job.id}", f"donewhen block {job.id}", f"donewhen ask {job.id}"):
        assert command in result.feedback


def test_when_every_gate_is_open_only_completing_is_left(shop: Shop) -> None:
    job = shop.job()
    (shop.root / "Report.txt").write_text("three good pages\n")
    collect_evidence(shop.workspace, job, unproved_actor())
    feedback = shop.check().feedback or ""
    assert f"donewhen complete {job.id}" in feedback
    assert_sentences(feedback)


def test_looking_runs_nothing_counts_nothing_and_writes_nothing(shop: Shop) -> None:
    job = shop.job()
    before = {path: path.read_bytes() for path in shop.root.rglob("*") if path.is_file() and path.suffix != ".sqlite"}
    for _ in range(5):
        assert shop.check().complete is False
    after = {path: path.read_bytes() for path in before}
    assert after == before
    assert shop.history(job).iteration == 0
    assert shop.types(job) == ["agreed", "started"]


def test_every_job_in_progress_counts_and_the_first_that_is_open_is_told(shop: Shop) -> None:
    done, opened = shop.finished("First"), shop.job("Second")
    result = shop.check()
    assert result.code is ReasonCode.JOB_NOT_DONE
    assert (result.feedback or "").startswith(opened.id)
    assert done.id not in (result.feedback or "")


def test_a_job_that_was_invalidated_is_in_progress_again(shop: Shop) -> None:
    above = shop.finished("Above")
    below = shop.job("Below", depends_on=(above.id,))
    (shop.root / "Below.txt").write_text("three good pages\n")
    assert complete(shop.workspace, below.id, unproved_actor()).done
    assert shop.check().complete is True
    (shop.root / "Above.txt").write_text("three other pages\n")
    result = shop.check(jobs=[below.id])
    assert result.code is ReasonCode.JOB_NOT_DONE
    assert above.id in (result.feedback or "") or "Above.txt" in (result.feedback or "")


# Legal stops


def test_done_is_a_reason_to_stop(shop: Shop) -> None:
    job = shop.finished()
    result = shop.check(jobs=[job.id])
    assert (result.complete, result.code) == (True, None)
    assert job.id in (result.feedback or "")
    assert_sentences(result.feedback)


def test_blocked_with_a_reason_is_a_reason_to_stop(shop: Shop) -> None:
    job = shop.job()
    set_job_aside(shop.workspace, job.id, unproved_actor(), reason="The API is down.")
    for options in ({}, {"jobs": [job.id]}):
        assert shop.check(**options).complete is True
    assert "The API is down." in (shop.check(jobs=[job.id]).feedback or "")


def test_a_question_to_a_person_is_a_reason_to_stop(shop: Shop) -> None:
    job = shop.job()
    set_job_aside(shop.workspace, job.id, unproved_actor(), question="Which colour?")
    result = shop.check(jobs=[job.id])
    assert result.complete is True
    assert "Which colour?" in (result.feedback or "")


def test_a_job_that_was_blocked_once_and_is_worked_on_again_holds_again(shop: Shop) -> None:
    job = shop.job()
    set_job_aside(shop.workspace, job.id, unproved_actor(), reason="The API is down.")
    assert start_job(shop.workspace, job.id, unproved_actor()).started
    assert shop.check().code is ReasonCode.JOB_NOT_DONE
    assert shop.check(jobs=[job.id]).code is ReasonCode.JOB_NOT_DONE


def test_out_of_budget_is_a_reason_to_stop_until_somebody_decides(shop: Shop) -> None:
    job = shop.job()
    for _ in range(4):
        assert not complete(shop.workspace, job.id, unproved_actor()).done
    result = shop.check(jobs=[job.id])
    assert result.complete is True
    assert "budget" in (result.feedback or "")
    more = Decision("raise_budget", "once more", 9)
    decide(shop.workspace, shop.workspace.job(job.id), more, Approval(unproved_actor()))
    assert shop.check(jobs=[job.id]).complete is True
    decide(shop.workspace, shop.workspace.job(job.id), more, Approval(person_at_terminal()))
    assert shop.check(jobs=[job.id]).code is ReasonCode.JOB_NOT_DONE


def test_cancelled_by_a_person_is_a_reason_to_stop_and_by_the_agent_it_is_none(shop: Shop) -> None:
    job = shop.job()
    cancel = Decision("cancel", "not wanted")
    decide(shop.workspace, job, cancel, Approval(unproved_actor()))
    assert shop.check().code is ReasonCode.JOB_NOT_DONE
    decide(shop.workspace, shop.workspace.job(job.id), cancel, Approval(person_at_terminal()))
    assert shop.check().complete is True
    text = shop.check(jobs=[job.id]).feedback
    assert job.id in text
    assert_sentences(text)


# None in progress, named ones, none at all


def test_no_job_in_progress_is_complete_and_says_so_unless_one_is_required(shop: Shop) -> None:
    shop.job(started=False)
    result = shop.check()
    assert (result.complete, result.code) == (True, None)
    assert_sentences(result.feedback)
    required = shop.check(require_job=True)
    assert required.code is ReasonCode.NO_JOB
    assert "donewhen start WI-" in (required.feedback or "")


def test_a_folder_without_jobs_is_complete_and_says_so_unless_one_is_required_or_named(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(tmp_path))
    found = JobChecker().check(context)
    assert (found.complete, found.code) == (True, None)
    assert_sentences(found.feedback)
    for checker in (JobChecker(require_job=True), JobChecker(jobs=["WI-20260214-001"])):
        result = checker.check(context)
        assert (result.complete, result.code) == (False, ReasonCode.NO_JOB)
        assert "donewhen init" in (result.feedback or "")


def test_a_named_job_counts_before_it_was_started_and_others_do_not(shop: Shop) -> None:
    named, other = shop.job("Named", started=False), shop.job("Other")
    result = shop.check(jobs=[named.id])
    assert result.code is ReasonCode.JOB_NOT_DONE
    assert other.id not in (result.feedback or "")
    set_job_aside(shop.workspace, named.id, unproved_actor(), reason="Later.")
    assert shop.check(jobs=[named.id]).complete is True


def test_all_named_jobs_have_to_rest(shop: Shop) -> None:
    first, second = shop.finished("First"), shop.job("Second")
    assert shop.check(jobs=[first.id, second.id]).code is ReasonCode.JOB_NOT_DONE
    set_job_aside(shop.workspace, second.id, unproved_actor(), question="Which?")
    result = shop.check(jobs=[first.id, second.id])
    assert result.complete is True
    assert first.id in (result.feedback or "")
    assert second.id in (result.feedback or "")


def test_a_named_job_that_does_not_exist_is_an_error_and_no_pass(shop: Shop) -> None:
    assert shop.check(jobs=["WI-20200101-001"]).code is ReasonCode.GATE_ERROR


def test_one_string_is_not_a_list_of_jobs() -> None:
    with pytest.raises(TypeError, match="list"):
        JobChecker(jobs="WI-20260214-001")


def test_the_root_may_be_given_and_is_otherwise_that_of_the_filesystem_or_the_current_folder(
    shop: Shop, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.job()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / ".git").mkdir()
    there = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(elsewhere))
    assert JobChecker().check(there).complete is True
    assert JobChecker(root=str(shop.root)).check(there).complete is False
    in_memory = TaskCompletionContext(session=Session(), filesystem=InMemoryFilesystem())
    monkeypatch.chdir(shop.root)
    assert JobChecker().check(in_memory).complete is False


# An agent that would rather not be asked


def _typed(status: str) -> Callable[[Shop, Job], None]:
    return lambda shop, job: shop.edit(job, "status: in_progress", f"status: {status}")


ESCAPES: dict[str, Callable[[Shop, Job], None]] = {
    "typed done": _typed("done"),
    "typed planned": _typed("planned"),
    "typed blocked": _typed("blocked"),
    "typed cancelled": _typed("cancelled"),
    "the plan broken": lambda shop, job: job.path.write_text("---\nstatus: [\n---\n"),
    "an unknown status": _typed("finished"),
    "the plan deleted": lambda shop, job: job.path.unlink(),
    "the job's folder deleted": lambda shop, job: shutil.rmtree(job.folder),
    "the project file deleted": lambda shop, job: shop.workspace.project_file.unlink(),
    "all jobs deleted": lambda shop, job: shutil.rmtree(shop.root / "jobs"),
}


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=list(ESCAPES))
def test_editing_the_plan_away_does_not_free_an_agent(shop: Shop, escape: Callable[[Shop, Job], None]) -> None:
    job = shop.job()
    escape(shop, job)
    assert shop.check().complete is False


def test_a_broken_plan_file_is_a_broken_gate_for_whoever_is_named(shop: Shop) -> None:
    job = shop.job()
    job.path.write_text("---\nstatus: [\n---\n")
    result = shop.check(jobs=[job.id])
    assert result.code is ReasonCode.GATE_ERROR
    assert "plan.md" in (result.feedback or "")


def test_somebody_elses_broken_plan_that_was_never_started_holds_nobody(shop: Shop) -> None:
    shop.job("Other", started=False).path.write_text("---\nstatus: [\n---\n")
    assert shop.check().complete is True


# In the hooks


def test_the_setting_asks_for_the_jobs_in_progress(shop: Shop) -> None:
    (shop.root / "donewhen.toml").write_text("[stop]\njobs = true\n")
    settings = load(shop.root)
    assert settings.stop.jobs is True
    assert settings.stop.has_checks is True
    ((name, checker),) = checks_for(settings.stop, "donewhen.toml")
    assert_sentences(name)
    assert isinstance(checker, JobChecker)
    assert (checker.jobs, checker.root, checker.require_job) == ((), None, False)


def test_without_the_setting_jobs_hold_nobody(shop: Shop) -> None:
    shop.job()
    assert GuardSettings().has_checks is False
    (shop.root / "donewhen.toml").write_text("[stop]\njobs = false\n")
    assert shop.hook() == {}


def test_the_hook_holds_while_a_job_is_open_and_lets_go_when_it_rests(shop: Shop) -> None:
    (shop.root / "donewhen.toml").write_text("[stop]\njobs = true\n")
    job = shop.job()
    answer = shop.hook()
    assert answer["decision"] == "block"
    assert f"donewhen complete {job.id}" in answer["reason"]
    set_job_aside(shop.workspace, job.id, unproved_actor(), question="Which?")
    assert "decision" not in shop.hook(stop_hook_active=True)


def test_the_hook_says_gate_error_when_the_project_cannot_be_read(shop: Shop) -> None:
    (shop.root / "donewhen.toml").write_text("[stop]\njobs = true\n")
    shop.workspace.project_file.write_text("---\nstatus: [\n---\n")
    answer = shop.hook()
    assert answer["decision"] == "block"
    assert "gate_error" in answer["reason"]


def test_after_the_cap_an_unverified_entry_stands_in_the_ledger_of_each_job_in_progress(shop: Shop) -> None:
    (shop.root / "donewhen.toml").write_text("[stop]\njobs = true\nmax_stalled = 2\n")
    job, resting, planned = shop.job("One"), shop.job("Two"), shop.job("Three", started=False)
    set_job_aside(shop.workspace, resting.id, unproved_actor(), reason="Later.")
    assert [shop.hook(stop_hook_active=bool(turn)).get("decision") for turn in range(2)] == ["block", "block"]
    assert "unverified" not in shop.types(job)
    last = shop.hook(stop_hook_active=True)
    assert "decision" not in last
    entry = shop.workspace.ledger.read(job.id).entries[-1]
    assert entry.type == "unverified"
    assert entry.by.kind == "agent"
    assert job.id in entry.data["why"]
    assert shop.history(job).iteration == 0
    assert [shop.types(one).count("unverified") for one in (job, resting, planned)] == [1, 0, 0]


def test_an_unverified_stop_neither_completes_nor_frees_the_job(shop: Shop) -> None:
    job = shop.job()
    record_unverified_stop(shop.root, "let go")
    assert shop.workspace.job(job.id).status == "in_progress"
    assert shop.check().code is ReasonCode.JOB_NOT_DONE
    (shop.root / "Report.txt").write_text("three good pages\n")
    assert complete(shop.workspace, job.id, unproved_actor()).done


def _cut_last_character(lines: list[str]) -> list[str]:
    return [lines[0], lines[1][:-1], *lines[2:]]


DAMAGED = {
    "a byte changed": lambda lines: [lines[0], lines[1].replace("started_at", "started_aT", 1), *lines[2:]],
    "a line removed": lambda lines: [lines[0], *lines[2:]],
    "another version": lambda lines: [lines[0], lines[1].replace('"v":2', '"v":3'), *lines[2:]],
    "cut": _cut_last_character,
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED.keys())
@pytest.mark.parametrize("later", [False, True], ids=["at the end", "inside"])
def test_damage_to_the_ledger_releases_nobody(
    shop: Shop, damage: Callable[[list[str]], list[str]], later: bool
) -> None:
    job = shop.job()
    if later:
        (shop.root / "Report.txt").write_text("three good pages\n")
        assert main(["run", job.id, "--project", str(shop.root)]) == 0
    chain = shop.workspace.folder / "ledger" / f"{job.id}.jsonl"
    before = chain.read_text().splitlines()
    assert json.loads(before[1])["type"] == "started"
    chain.write_text("\n".join(damage(before)) + "\n")
    assert not shop.check().complete


def test_an_old_job_whose_record_was_damaged_after_it_was_done_holds_nobody(shop: Shop) -> None:
    job = shop.finished()
    chain = shop.workspace.folder / "ledger" / f"{job.id}.jsonl"
    chain.write_text(chain.read_text() + "nonsense\n")
    assert shop.check().complete
