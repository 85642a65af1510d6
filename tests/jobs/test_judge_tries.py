"""A judge can't be worn down: an agent that tries one version after the other ends up with a person."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import Court

from donewhen.jobs.judge.judge_evidence import count_refusals
from donewhen.jobs.plan.job import Job
from sentences import assert_sentences


@pytest.fixture
def court(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Court:
    return Court(repository, git, monkeypatch)


def tries(court: Court, job: Job, votes: str, *versions: str) -> str:
    """Let the judge see these versions, as `donewhen run` does, which costs no iteration; the state after the last."""
    court.votes = votes
    for version in versions:
        court.write("report.md", f"version {version}\n")
        court.collect(job)
    return court.standing(court.read(job)).state


def test_a_pass_after_too_many_versions_is_left_to_a_person(court: Court) -> None:
    job = court.job()
    assert tries(court, job, "fff", "a", "b", "c", "d") == "failed"
    assert count_refusals(court.entries(job), court.requirement(job)) == 4
    assert tries(court, job, "ppp", "e") == "needs_human"
    assert_sentences(court.standing(court.read(job)).why[0])
    assert court.read(job).iteration == 0
    assert court.complete(job).promise is None
    court.overrule(job, "pass")
    assert court.complete(job).promise is not None


def test_as_many_versions_as_the_job_may_take_tries_are_no_reason(court: Court) -> None:
    job = court.job()
    assert job.max_iterations == 3
    tries(court, job, "fff", "a", "b", "c")
    assert tries(court, job, "ppp", "d") == "passed"


def test_the_same_version_counts_once_and_what_the_judge_left_open_counts(court: Court) -> None:
    job = court.job()
    tries(court, job, "fff", "a", "b", "a", "b")
    assert count_refusals(court.entries(job), court.requirement(job)) == 2
    tries(court, job, "ppf", "c", "d")
    assert count_refusals(court.entries(job), court.requirement(job)) == 4


def test_what_a_person_says_lets_an_agent_begin_anew(court: Court) -> None:
    job = court.job()
    tries(court, job, "fff", "a", "b", "c", "d", "e")
    court.overrule(job, "fail")
    assert count_refusals(court.entries(job), court.requirement(job)) == 0
    assert tries(court, job, "ppp", "f") == "passed"
