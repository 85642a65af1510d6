"""The gate that asks whether a job may be tried once more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from donewhen.jobs.gates.budget_gate import budget_gate
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.record.history import History
from sentences import assert_sentences

MakeFacts = Callable[..., Facts]
MakeHistory = Callable[..., History]
MakeJob = Callable[..., Job]


@pytest.mark.parametrize("iteration", [0, 2, 3])
def test_up_to_and_including_the_budget_the_gate_is_open(
    make_facts: MakeFacts, make_history: MakeHistory, iteration: int
) -> None:
    found = budget_gate(make_facts(history=make_history(iteration=iteration)))
    assert (found.gate, found.passed, found.next) == ("budget", True, None)
    assert found.note == f"iteration {iteration} of 3"


@pytest.mark.parametrize("iteration", [4, 99])
def test_beyond_the_budget_the_gate_is_closed(make_facts: MakeFacts, make_history: MakeHistory, iteration: int) -> None:
    found = budget_gate(make_facts(history=make_history(iteration=iteration)))
    (reason,) = found.reasons
    assert (found.gate, reason.code) == ("budget", GateCode.BUDGET_EXCEEDED)
    assert str(iteration) in reason.message
    assert_sentences(reason.message)
    assert reason.where == "jobs/WI-20260214-001-parser/plan.md"
    assert found.next == f'donewhen decide WI-20260214-001 --raise-budget {iteration + 1} --reason "…"'


@pytest.mark.parametrize(("stakes", "budget"), [("low", 2), ("normal", 3), ("high", 5), ("critical", 7)])
def test_the_budget_is_that_of_the_stakes(
    make_facts: MakeFacts, make_history: MakeHistory, make_job: MakeJob, stakes: str, budget: int
) -> None:
    job = make_job(stakes=stakes, max_iterations="")
    assert budget_gate(make_facts(job, history=make_history(iteration=budget))).passed
    assert not budget_gate(make_facts(job, history=make_history(iteration=budget + 1))).passed


def test_the_iterations_are_those_of_the_ledger_and_not_of_the_plan(
    make_facts: MakeFacts, make_history: MakeHistory, make_job: MakeJob
) -> None:
    job = make_job(iteration=0)
    assert not budget_gate(make_facts(job, history=make_history(iteration=4))).passed
    assert budget_gate(make_facts(make_job(iteration=9), history=make_history(iteration=1))).passed


def test_after_an_auto_block_the_gate_stays_closed_within_a_budget_that_was_typed_higher(
    make_facts: MakeFacts, make_history: MakeHistory, make_job: MakeJob
) -> None:
    blocked = make_history(iteration=4, auto_blocked=True)
    found = budget_gate(make_facts(make_job(max_iterations=9), history=blocked))
    (reason,) = found.reasons
    assert reason.code == GateCode.BUDGET_EXCEEDED
    assert_sentences(reason.message)
    assert found.next == 'donewhen decide WI-20260214-001 --raise-budget 10 --reason "…"'


def test_a_raised_budget_opens_the_gate_again(
    make_facts: MakeFacts, make_history: MakeHistory, make_job: MakeJob
) -> None:
    decided = make_history(iteration=4, auto_blocked=True, decided_since_block=True)
    found = budget_gate(make_facts(make_job(max_iterations=9), history=decided))
    assert (found.passed, found.note) == (True, "iteration 4 of 9")


def test_any_decision_since_the_block_gives_another_try(make_facts: MakeFacts, make_history: MakeHistory) -> None:
    """Rescoping, splitting, other stakes or another target are decisions, too: the number need not be raised."""
    decided = make_history(iteration=4, auto_blocked=True, decided_since_block=True)
    assert budget_gate(make_facts(history=decided)).passed


def test_a_decision_that_nobody_was_waiting_for_does_not_lift_the_budget(
    make_facts: MakeFacts, make_history: MakeHistory
) -> None:
    early = make_history(iteration=4, auto_blocked=False, decided_since_block=True)
    assert not budget_gate(make_facts(history=early)).passed


def test_a_cancelled_job_may_not_be_tried(make_facts: MakeFacts, make_history: MakeHistory) -> None:
    found = budget_gate(make_facts(history=make_history(status="cancelled")))
    assert [reason.code for reason in found.reasons] == [GateCode.CANCELLED]
    assert_sentences([reason.message for reason in found.reasons])
    assert found.gate == "budget"
    assert found.next == 'donewhen decide WI-20260214-001 --rescope --reason "…"'
