"""A person who sees it otherwise than the gate: on record with their name, about just the work that they saw."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import ADA, BEN, BOT, CHECKED, JUDGED, WRITTEN, Court

from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.judge.person_overrides import has_override, newest_override, override_gate, subject_of
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.ledger import LedgerError
from donewhen.jobs.ledger.signing import create_key_file, open_key
from donewhen.jobs.lifecycle.promise import verify_promise
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job
from donewhen.judging.labels import read_label_log
from donewhen.review.verdicts import record_verdict
from sentences import assert_sentences


@pytest.fixture
def court(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Court:
    return Court(repository, git, monkeypatch)


# What a word does


def test_a_persons_pass_completes_what_the_judge_left_open(court: Court) -> None:
    court.votes = "ppf"
    job = court.job(JUDGED)
    assert court.codes(job) == {"needs_human"}
    assert court.overrule(job, "pass").counts
    standing = court.standing(job)
    assert (standing.state, standing.why) == ("passed", ("ada (person) says pass: I looked at it",))
    done = court.complete(job)
    assert done.promise is not None
    assert verify_promise(court.workspace, done.promise.text, approval_policy(court.workspace)).real
    assert court.entries(job)[-1].data["judged"]["AC-1"]["person"] == "ada"
    assert court.asked == 3


def test_a_persons_fail_is_a_failure_with_their_name(court: Court) -> None:
    job = court.job(JUDGED)
    court.overrule(job, "fail", reason="no sources")
    found = court.complete(job)
    assert found.evaluation is not None
    messages = [reason.message for reason in found.evaluation.reasons]
    assert "AC-1 (The report convinces.) is not met: ada (person) says fail: no sources." in messages


def test_a_word_without_a_reason_is_told_without_one(court: Court) -> None:
    job = court.job(JUDGED)
    court.overrule(job, "fail", reason="  ")
    assert court.standing(job).why == ("ada (person) says fail",)


@pytest.mark.parametrize(
    ("criteria", "commands"),
    [((CHECKED,), ()), (("It says 43.\n  check: file /report.md matches /43/",), ())],
    ids=["command", "file"],
)
def test_a_person_may_overrule_every_check_that_is_not_by_hand(
    court: Court, criteria: tuple[str, ...], commands: tuple[str, ...]
) -> None:
    job = court.job(*criteria, commands=commands)
    court.write("check.sh", "exit 1\n")
    assert court.codes(job) == {"criterion_failed"}
    court.overrule(job, "pass")
    assert court.standing(job).state == "passed"
    assert court.complete(job).done


def test_a_person_may_fail_what_a_check_has_passed(court: Court) -> None:
    job = court.job(WRITTEN)
    court.overrule(job, "fail")
    assert court.codes(job) == {"criterion_failed"}


def test_what_is_checked_by_hand_is_signed_off_not_overruled(court: Court) -> None:
    job = court.job("Signed.\n  check: manual")
    with pytest.raises(UsageError) as caught:
        court.overrule(job, "pass")
    assert_sentences(caught.value)


def test_the_last_word_holds(court: Court) -> None:
    job = court.job(JUDGED)
    court.overrule(job, "fail")
    court.overrule(job, "pass", BEN)
    assert court.standing(job).why == ("ben (person) says pass: I looked at it",)


# How long it holds


def test_after_the_work_has_changed_a_word_about_it_holds_no_longer(court: Court) -> None:
    court.votes = "ppf"
    job = court.job(JUDGED)
    court.complete(job)
    court.overrule(job, "pass")
    court.write("report.md", "something else\n")
    assert court.standing(job).state == "stale"
    assert court.codes(job) == {"needs_human"}
    court.write("report.md", "42 lines were parsed.\n")
    assert court.standing(job).state == "passed"


def test_a_word_on_a_command_holds_for_the_outputs_as_they_were(court: Court) -> None:
    job = court.job(CHECKED)
    court.write("check.sh", "exit 1\n")
    court.collect(job)
    court.overrule(job, "pass")
    court.write("report.md", "something else\n")
    assert court.standing(job).state in ("failed", "stale")


def test_a_word_on_a_command_holds_for_all_that_the_command_looks_at(court: Court) -> None:
    court.write("app.py", "good = 1\n")
    court.commit()
    job = court.job(CHECKED)
    court.write("check.sh", "exit 1\n")
    court.collect(job)
    court.overrule(job, "pass")
    assert court.standing(job).state == "passed"
    court.write("app.py", "bad = 1\n")
    assert court.codes(job) == {"criterion_failed"}
    court.write("app.py", "good = 1\n")
    assert court.standing(job).state == "passed"


def test_other_words_of_a_criterion_are_another_criterion(court: Court) -> None:
    job = court.job(JUDGED)
    court.overrule(job, "pass")
    job = court.edit(job, "The report convinces.", "The report convinces everybody.")
    assert court.standing(job).state == "missing"


def test_another_judge_or_other_guidance_does_not_undo_a_word(court: Court) -> None:
    """A word is about the work, not about who else has judged it."""
    job = court.job(JUDGED)
    court.overrule(job, "pass")
    court.settings("sampler = [{ temperature = 0.1 }]")
    assert court.standing(job).state == "passed"


def test_a_label_in_a_tracked_file_does_not_undo_the_word_that_made_it(court: Court) -> None:
    court.votes = "ppf"
    for name in ("reviews.jsonl", "reviewed.jsonl"):
        court.write(f"missions/reports/{name}", "")
    court.commit()
    job = court.job(CHECKED, JUDGED)
    court.complete(job)
    length = len(court.entries(job))
    (item,) = court.queue()
    assert record_verdict(court.workspace, item, "pass", ADA).counts
    assert read_label_log(court.folder)
    assert court.complete(job).done
    assert [entry.type for entry in court.entries(job)[length:]] == ["overridden", "completed"]


def test_what_was_changed_while_a_person_looked_is_not_overruled(court: Court) -> None:
    job = court.job(JUDGED)
    seen = court.question(job).subject
    court.write("report.md", "quickly exchanged\n")
    length = len(court.entries(job))
    with pytest.raises(UsageError) as caught:
        override_gate(court.workspace, court.read(job), "AC-1", "pass", "fine", ADA, seen=seen)
    assert_sentences(caught.value)
    assert len(court.entries(job)) == length


# Whose word


def test_an_agents_word_is_on_record_and_has_no_effect(court: Court) -> None:
    court.votes = "ppf"
    job = court.job(JUDGED)
    court.complete(job)
    said = court.overrule(job, "pass", BOT)
    assert (said.counts, said.entry.type, said.entry.by.kind) == (False, "overridden", "agent")
    assert court.standing(job).state == "needs_human"
    assert court.codes(job) == {"needs_human"}
    assert read_label_log(court.folder) == ()


def test_an_agents_word_takes_nothing_back(court: Court) -> None:
    job = court.job(JUDGED)
    court.overrule(job, "fail")
    court.overrule(job, "pass", BOT)
    assert court.standing(job).state == "failed"


def test_an_agents_word_ends_nobodys_waiting(court: Court) -> None:
    job = court.job(JUDGED)
    set_job_aside(court.workspace, job.id, BOT.by, question="Which format?")
    court.overrule(job, "pass", BOT)
    assert court.history(job).waiting is not None
    assert court.history(job).status == "blocked"


def test_a_verdict_is_no_answer_to_a_question(court: Court) -> None:
    job = court.job(JUDGED)
    set_job_aside(court.workspace, job.id, BOT.by, question="Which format?")
    court.overrule(job, "pass")
    assert court.history(job).waiting is not None
    assert court.history(job).status == "blocked"


def keyed(path: Path) -> Approval:
    public, sign = open_key(path, "pass phrase")
    return Approval(Actor(public.partition(":")[2][:12], "key"), public, sign)


def test_a_key_counts_where_keys_were_agreed_to_and_nowhere_else(court: Court, tmp_path: Path) -> None:
    public = create_key_file(tmp_path / "key", "pass phrase")
    job = court.job(JUDGED)
    by = keyed(tmp_path / "key")
    assert not court.overrule(job, "fail", by).counts
    assert court.standing(job).state == "missing"
    court.write("donewhen.toml", f'[approval]\nkeys = ["{public}"]\n')
    court.agree(job)
    said = court.overrule(job, "fail", by)
    assert said.counts
    assert court.standing(job).state == "failed"
    assert "(key) says fail" in court.standing(job).why[0]


def forge(court: Court, job: Job, number: int) -> None:
    """Make an agent's word a person's, in the file."""
    path = court.workspace.folder / "ledger" / f"{job.id}.jsonl"
    lines = path.read_text().splitlines()
    forged = json.loads(lines[number])
    assert (forged["type"], forged["by"]["kind"]) == ("overridden", "agent")
    forged["by"] = {"name": "ada", "kind": "person"}
    lines[number] = json.dumps(forged)
    path.write_text("\n".join(lines) + "\n")


def test_a_word_that_somebody_made_a_persons_in_the_file_breaks_the_chain(court: Court) -> None:
    court.votes = "ppf"
    job = court.job(JUDGED)
    court.complete(job)
    court.overrule(job, "pass", BOT)
    court.complete(job)
    forge(court, job, -2)
    assert "record_broken" in court.codes(job)


def test_nothing_is_added_to_a_chain_whose_last_word_was_forged(court: Court) -> None:
    job = court.job(JUDGED)
    court.overrule(job, "pass", BOT)
    forge(court, job, -1)
    with pytest.raises(LedgerError) as caught:
        court.complete(job)
    assert_sentences(caught.value)
    assert court.read(job).status == "in_progress"


# Done, and then looked at


def test_what_a_person_does_not_accept_is_not_done_any_more(court: Court) -> None:
    job = court.job(JUDGED)
    done = court.complete(job)
    assert done.promise is not None
    court.overrule(job, "fail")
    assert court.read(job).status == "in_progress"
    assert not verify_promise(court.workspace, done.promise.text, approval_policy(court.workspace)).real
    assert court.codes(job) == {"criterion_failed"}
    assert court.history(court.read(job)).completed is None
    court.overrule(job, "pass")
    assert court.complete(job).done


def test_an_agents_fail_or_a_persons_pass_leave_a_done_job_as_it_is(court: Court) -> None:
    job = court.job(JUDGED)
    assert court.complete(job).done
    court.overrule(job, "fail", BOT)
    court.overrule(job, "pass")
    assert court.complete(job).repeated


# The parts


def test_a_criterion_that_nobody_has_spoken_of_has_no_word(court: Court) -> None:
    job = court.job(JUDGED, WRITTEN)
    court.overrule(job, "pass", name="AC-2")
    entries, policy = court.entries(job), approval_policy(court.workspace)
    requirement = court.requirement(job)
    assert not has_override(entries, requirement)
    assert newest_override(entries, job.id, requirement, "sha256:0", policy) is None
    other = court.requirement(job, "AC-2")
    subject = subject_of(court.workspace, job, other, entries)
    assert newest_override(entries, job.id, other, subject, policy) is entries[-1]
    assert newest_override(entries, job.id, other, "sha256:0", policy) is None


def test_starting_again_keeps_a_word_about_the_same_work(court: Court) -> None:
    job = court.job(WRITTEN)
    court.overrule(job, "fail")
    assert start_job(court.workspace, job.id, BOT.by).started
    assert court.standing(job).state == "failed"
