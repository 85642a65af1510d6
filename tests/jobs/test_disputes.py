"""An agent that disagrees with a refusal: people decide, criterion by criterion, and it may rest meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import ADA, BOT, CHECKED, JUDGED, Court

from donewhen.completion import JobChecker, TaskCompletionContext
from donewhen.completion.checking import run_check
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.lifecycle.setting_aside import record_dispute
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job
from donewhen.runtime import Session
from sentences import assert_sentences

SAYS_43 = "It says 43.\n  check: file /report.md matches /43/"
SAYS_44 = "It says 44.\n  check: file /report.md matches /44/"


@pytest.fixture
def court(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Court:
    return Court(repository, git, monkeypatch)


def disputed(court: Court, job: Job, reason: str = "the check is wrong") -> Entry:
    return record_dispute(court.workspace, job.id, BOT.by, reason)


def may_stop(court: Court) -> str | None:
    context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(court.root))
    found = run_check(JobChecker(), context)
    return found.feedback if found.complete else None


def test_a_dispute_names_what_is_open_and_lets_the_agent_rest(court: Court) -> None:
    job = court.job(SAYS_43, "It is there.\n  check: file /report.md")
    court.complete(job)
    entry = disputed(court, job, " 42 is right ")
    assert entry.data["decision"] == "dispute"
    assert entry.data["reason"] == "42 is right"
    assert entry.data["value"] == {"criteria": ["AC-1"]}
    assert court.history(job).status == court.read(job).status == "blocked"
    assert may_stop(court) is not None


def test_only_a_refusal_can_be_disputed(court: Court) -> None:
    job = court.job(SAYS_43)
    with pytest.raises(UsageError) as caught:
        disputed(court, job)
    assert_sentences(caught.value)
    court.complete(job)
    start_job(court.workspace, job.id, BOT.by)
    with pytest.raises(UsageError) as caught:
        disputed(court, job)
    assert_sentences(caught.value)


def test_a_job_that_is_done_or_cancelled_can_not_be_disputed(court: Court) -> None:
    done = court.job(JUDGED)
    assert court.complete(done).done
    with pytest.raises(UsageError) as caught:
        disputed(court, done)
    assert_sentences(caught.value)
    job = court.job(SAYS_43, title="Other")
    court.complete(job)
    decide(court.workspace, court.read(job), Decision("cancel", "not needed"), ADA)
    with pytest.raises(UsageError) as caught:
        disputed(court, job)
    assert_sentences(caught.value)


def test_a_dispute_needs_a_reason(court: Court) -> None:
    job = court.job(SAYS_43)
    court.complete(job)
    with pytest.raises(UsageError) as caught:
        disputed(court, job, "  ")
    assert_sentences(caught.value)


def test_what_is_no_criterion_can_not_be_disputed(court: Court) -> None:
    job = court.job(JUDGED)
    court.votes = "fff"
    court.complete(job)
    court.overrule(job, "pass")
    with pytest.raises(UsageError) as caught:
        disputed(court, job)
    assert_sentences(caught.value)


def test_a_sign_off_that_is_missing_was_refused_by_nobody(court: Court) -> None:
    """It would wait for people in a queue in which it never stands."""
    job = court.job("Signed.\n  check: manual")
    court.complete(job)
    with pytest.raises(UsageError) as caught:
        disputed(court, job)
    assert_sentences(caught.value)
    assert job.id in caught.value.next_step
    assert court.history(job).waiting is None


def test_beside_a_sign_off_only_the_rest_is_disputed(court: Court) -> None:
    job = court.job("Signed.\n  check: manual", SAYS_43)
    court.complete(job)
    assert disputed(court, job).data["value"] == {"criteria": ["AC-2"]}


def test_a_dispute_waits_until_every_criterion_is_answered(court: Court) -> None:
    job = court.job(SAYS_43, SAYS_44)
    court.complete(job)
    disputed(court, job)
    assert [item.criterion for item in court.queue()] == ["AC-1", "AC-2"] or court.kinds() == ["disputed", "disputed"]
    court.overrule(job, "pass", name="AC-1")
    assert [item.criterion for item in court.queue()] == ["AC-2"]
    assert court.history(job).status == "blocked"
    assert may_stop(court) is not None
    court.overrule(job, "pass", name="AC-2")
    assert court.queue() == []
    assert court.history(job).waiting is None
    assert court.read(job).status == "in_progress"
    assert court.complete(job).done


def test_an_agents_own_word_answers_no_dispute(court: Court) -> None:
    job = court.job(SAYS_43)
    court.complete(job)
    disputed(court, job)
    court.overrule(job, "pass", BOT)
    assert court.kinds() == ["disputed"]
    assert court.history(job).waiting is not None


def test_a_persons_fail_sends_the_agent_back_to_work(court: Court) -> None:
    job = court.job(SAYS_43)
    court.complete(job)
    disputed(court, job)
    court.overrule(job, "fail", reason="it must say 43")
    assert court.queue() == []
    assert may_stop(court) is None
    assert court.codes(job) == {"criterion_failed"}


def test_an_agent_that_goes_on_working_waits_no_longer(court: Court) -> None:
    job = court.job(SAYS_43)
    court.complete(job)
    disputed(court, job)
    court.write("report.md", "43\n")
    assert court.complete(job).done
    assert court.queue() == []


def test_a_verdict_of_the_judge_can_be_disputed(court: Court) -> None:
    court.votes = "fff"
    job = court.job(CHECKED, JUDGED)
    court.complete(job)
    assert disputed(court, job).data["value"] == {"criteria": ["AC-2"]}
    (item,) = court.queue()
    assert item.kind == "disputed"
    assert item.said is not None and item.said.verdict == "fail"
    assert item.why == "The agent says: the check is wrong"
