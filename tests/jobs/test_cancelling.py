"""What cancelling a job means for others is said before it is decided, and is what happens."""

from __future__ import annotations

from tests.jobs.conftest import PERSON, Bench

from donewhen.jobs.board.validity import ValidityChecker
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.lifecycle.cancelling import effects_of_cancelling


def test_a_job_on_which_nothing_depends_is_cancelled_without_a_word(bench: Bench) -> None:
    job = bench.job("Alone")
    bench.job("Beside")
    assert effects_of_cancelling(bench.workspace, job) == ()


def test_a_done_job_says_what_becomes_of_its_promise_and_of_what_builds_on_it(bench: Bench) -> None:
    first = bench.done("First")
    second = bench.done("Second", depends_on=[first.id])
    third = bench.job("Third", depends_on=[second.id], started=False)
    aside = bench.done("Aside")
    effects = " ".join(effects_of_cancelling(bench.workspace, first))
    assert f"{first.id} is done" in effects
    assert f"no longer valid: {second.id}." in effects
    assert f"can't be completed: {third.id}." in effects
    assert aside.id not in effects
    # That is what happens.
    decide(bench.workspace, first, Decision("cancel", "No longer wanted"), PERSON)
    validities = ValidityChecker(bench.workspace, approval_policy(bench.workspace))
    states = [validities.of(job.id).state for job in (first, second, third, aside)]
    assert states == ["cancelled", "invalid", "open", "done"]
    assert not bench.start(third).started


def test_an_open_job_names_only_those_that_wait_for_it(bench: Bench) -> None:
    first = bench.job("First")
    second = bench.job("Second", depends_on=[first.id], started=False)
    effects = " ".join(effects_of_cancelling(bench.workspace, first))
    assert second.id in effects
    assert "is done" not in effects


def test_a_circle_of_jobs_ends(bench: Bench) -> None:
    first = bench.job("First", started=False)
    second = bench.job("Second", depends_on=[first.id], started=False)
    bench.edit(first, "depends_on: []", f"depends_on: [{second.id}]")
    assert second.id in " ".join(effects_of_cancelling(bench.workspace, first))
