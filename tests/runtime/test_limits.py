"""One rule decides whether a completion check is skipped, and runs inside a run share its limits."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from donewhen.runtime import Budget, BudgetTracker, Bypass, Deadline, Dimension, Limits, TokenUsage
from donewhen.testing import ManualClock
from sentences import assert_sentences


def test_a_run_without_limits_is_always_checked():
    assert Limits().bypass() is None


def test_a_deadline_bypasses_the_check_from_the_moment_it_expires():
    clock = ManualClock()
    limits = Limits(deadline=Deadline.after(10, clock=clock))
    clock.advance(9)
    assert limits.bypass() is None
    clock.advance(1)
    assert limits.bypass() == Bypass("deadline")


SPENDING: list[tuple[Dimension, Budget, Callable[[BudgetTracker, ManualClock], None]]] = [
    ("input_tokens", Budget(max_input_tokens=2), lambda tracker, clock: tracker.record(TokenUsage(input_tokens=1))),
    ("output_tokens", Budget(max_output_tokens=2), lambda tracker, clock: tracker.record(TokenUsage(output_tokens=1))),
    ("total_tokens", Budget(max_total_tokens=4), lambda tracker, clock: tracker.record(TokenUsage(1, 1))),
    ("cost_usd", Budget(max_cost_usd=0.5), lambda tracker, clock: tracker.record(cost_usd=0.25)),
    ("seconds", Budget(max_seconds=10), lambda tracker, clock: clock.advance(5)),
]


@pytest.mark.parametrize(("dimension", "budget", "use_half"), SPENDING, ids=[one[0] for one in SPENDING])
def test_a_budget_bypasses_the_check_when_any_dimension_reaches_its_limit(
    dimension: Dimension, budget: Budget, use_half: Callable[[BudgetTracker, ManualClock], None]
) -> None:
    clock = ManualClock()
    tracker = BudgetTracker(budget, clock=clock)
    limits = Limits(tracker=tracker)
    assert limits.bypass() is None
    use_half(tracker, clock)
    assert limits.bypass() is None
    use_half(tracker, clock)
    assert limits.bypass() == Bypass("budget", dimension)
    use_half(tracker, clock)
    assert limits.bypass() == Bypass("budget", dimension)


def test_when_both_are_spent_the_deadline_is_named():
    clock = ManualClock()
    limits = Limits(Deadline.after(1, clock=clock), BudgetTracker(Budget(max_seconds=1), clock=clock))
    clock.advance(1)
    assert limits.bypass() == Bypass("deadline")


def test_either_limit_is_enough():
    clock = ManualClock()
    tracker = BudgetTracker(Budget(max_total_tokens=1), clock=clock)
    limits = Limits(Deadline.after(1000, clock=clock), tracker)
    assert limits.bypass() is None
    tracker.record(TokenUsage(1))
    assert limits.bypass() == Bypass("budget", "total_tokens")
    limits = Limits(Deadline.after(0, clock=clock), BudgetTracker(Budget(max_seconds=1000), clock=clock))
    assert limits.bypass() == Bypass("deadline")


def test_a_bypass_reads_as_a_sentence_part():
    assert_sentences(Bypass("deadline"))
    assert_sentences(Bypass("budget", "cost_usd"))


def test_a_budget_becomes_a_tracker_of_its_own():
    budget = Budget(max_total_tokens=5)
    limits, others = Limits.of(None, budget), Limits.of(None, budget)
    assert limits.tracker is not None
    assert limits.tracker.budget is budget
    limits.tracker.record(TokenUsage(5))
    assert limits.bypass() == Bypass("budget", "total_tokens")
    assert others.bypass() is None


def test_a_tracker_is_shared_between_runs():
    tracker = BudgetTracker(Budget(max_total_tokens=5))
    first, second = Limits.of(None, tracker), Limits.of(None, tracker)
    assert first.tracker is second.tracker is tracker


def test_a_deadline_is_taken_as_it_is():
    deadline = Deadline.after(timedelta(hours=1))
    assert Limits.of(deadline, None).deadline is deadline
    assert Limits.of(deadline, None).tracker is None


def test_outside_of_any_run_there_are_no_limits():
    assert Limits.of(None, None) == Limits(None, None)


def test_a_run_that_names_no_limits_shares_those_around_it():
    tracker = BudgetTracker(Budget(max_total_tokens=1))
    limits = Limits(Deadline.after(1000), tracker)
    with limits.around():
        inner = Limits.of(None, None)
        assert inner is limits
        tracker.record(TokenUsage(1))
        assert inner.bypass() == Bypass("budget", "total_tokens")


def test_limits_are_shared_only_while_the_run_lasts():
    with Limits(Deadline.after(1000)).around():
        pass
    assert Limits.of(None, None) == Limits()


def test_a_run_that_fails_takes_its_limits_with_it():
    with pytest.raises(KeyboardInterrupt), Limits(Deadline.after(1000)).around():
        raise KeyboardInterrupt
    assert Limits.of(None, None) == Limits()


def test_a_run_inside_a_run_inside_a_run_shares_the_nearest_limits():
    outer, inner = Limits(Deadline.after(1000)), Limits(Deadline.after(10))
    with outer.around():
        with inner.around():
            assert Limits.of(None, None) is inner
        assert Limits.of(None, None) is outer


@pytest.mark.parametrize("kind", ["deadline", "budget", "tracker"])
def test_a_run_that_names_a_limit_works_under_its_own(kind: str) -> None:
    deadline, budget = Deadline.after(5), Budget(max_seconds=5)
    tracker = BudgetTracker(budget)
    with Limits(Deadline.after(1000)).around():
        match kind:
            case "deadline":
                assert Limits.of(deadline, None).deadline is deadline
            case "budget":
                inner = Limits.of(None, budget)
                assert inner.tracker is not None
                assert inner.tracker.budget is budget
            case _:
                assert Limits.of(None, tracker).tracker is tracker


def test_a_run_that_names_only_a_deadline_does_not_escape_a_spent_budget_around_it():
    spent = BudgetTracker(Budget(max_total_tokens=1))
    spent.record(TokenUsage(1))
    with Limits(tracker=spent).around():
        assert Limits.of(Deadline.after(1000), None).bypass() == Bypass("budget", "total_tokens")


def test_a_run_that_names_only_a_budget_does_not_escape_an_expired_deadline_around_it():
    with Limits(deadline=Deadline.after(0)).around():
        assert Limits.of(None, Budget(max_total_tokens=5)).bypass() == Bypass("deadline")


def test_a_thread_that_runs_in_the_same_context_shares_the_limits_and_another_does_not():
    limits = Limits(Deadline.after(1000))
    found: dict[str, Limits] = {}

    def look(name: str) -> None:
        found[name] = Limits.of(None, None)

    with limits.around():
        inside = threading.Thread(target=contextvars.copy_context().run, args=(look, "inside"))
    outside = threading.Thread(target=contextvars.Context().run, args=(look, "outside"))
    for thread in (inside, outside):
        thread.start()
        thread.join(30)
    assert found["inside"] is limits
    assert found["outside"] == Limits()


# --- limits around limits


def test_a_run_works_under_its_own_limits_and_those_around_it():
    clock = ManualClock()
    outer = Limits(Deadline.after(10, clock=clock))
    with outer.around():
        inner = Limits.of(Deadline.after(100, clock=clock), None)
    assert inner.bypass() is None
    clock.advance(10)
    assert inner.bypass() == Bypass("deadline")
    assert outer.bypass() == Bypass("deadline")


def test_a_spent_inner_limit_does_not_end_the_run_around_it():
    clock = ManualClock()
    outer = Limits(Deadline.after(100, clock=clock))
    with outer.around():
        inner = Limits.of(Deadline.after(10, clock=clock), None)
    clock.advance(10)
    assert inner.bypass() == Bypass("deadline")
    assert outer.bypass() is None


def test_what_an_inner_run_uses_is_counted_around_it_as_well():
    around, own = BudgetTracker(Budget(max_total_tokens=100)), BudgetTracker(Budget(max_total_tokens=10))
    with Limits(tracker=around).around():
        inner = Limits.of(None, own)
    inner.record(TokenUsage(4, 1), cost_usd=0.25)
    assert own.usage == around.usage == TokenUsage(4, 1)
    assert (own.used("cost_usd"), around.used("cost_usd")) == (0.25, 0.25)
    inner.record(TokenUsage(5))
    assert inner.bypass() == Bypass("budget", "total_tokens")
    assert Limits(tracker=around).bypass() is None


def test_what_the_outer_run_uses_is_not_counted_inside():
    own = BudgetTracker(Budget(max_total_tokens=10))
    outer = Limits(tracker=BudgetTracker(Budget(max_total_tokens=100)))
    with outer.around():
        Limits.of(None, own)
    outer.record(TokenUsage(5))
    assert own.usage == TokenUsage()


def test_a_tracker_that_is_shared_with_the_run_around_counts_once():
    shared = BudgetTracker(Budget(max_total_tokens=100))
    with Limits(tracker=shared).around():
        inner = Limits.of(None, shared)
        with inner.around():
            innermost = Limits.of(Deadline.after(1000), shared)
    innermost.record(TokenUsage(1), cost_usd=0.5)
    assert shared.usage == TokenUsage(1)
    assert shared.used("cost_usd") == 0.5


def test_recording_without_a_budget_is_no_error_and_spends_nothing():
    for limits in (Limits(), Limits(Deadline.after(1000))):
        limits.record(TokenUsage(10**9), cost_usd=10**6)
        assert limits.bypass() is None


def test_somebody_counts_when_there_is_a_budget_here_or_around():
    assert Limits().counts is False
    assert Limits(Deadline.after(1)).counts is False
    outer = Limits(tracker=BudgetTracker(Budget(max_seconds=1)))
    assert outer.counts is True
    with outer.around():
        assert Limits.of(Deadline.after(1), None).counts is True


def test_the_time_left_is_that_of_the_nearest_deadline():
    clock = ManualClock()
    assert Limits().remaining_seconds() is None
    near, far = Deadline.after(10, clock=clock), Deadline.after(100, clock=clock)
    for outside, inside in ((near, far), (far, near)):
        with Limits(outside).around():
            assert Limits.of(inside, None).remaining_seconds() == 10
    with Limits(near).around():
        assert Limits.of(None, Budget(max_total_tokens=1)).remaining_seconds() == 10
    clock.advance(30)
    assert Limits(near).remaining_seconds() == 0


def test_the_money_left_is_the_least_that_any_budget_has():
    assert Limits().remaining_usd() is None
    assert Limits(tracker=BudgetTracker(Budget(max_seconds=1))).remaining_usd() is None
    for outside, inside in ((1.0, 5.0), (5.0, 1.0)):
        with Limits(tracker=BudgetTracker(Budget(max_cost_usd=outside))).around():
            limits = Limits.of(None, Budget(max_cost_usd=inside))
        assert limits.remaining_usd() == 1.0
        limits.record(TokenUsage(), cost_usd=0.25)
        assert limits.remaining_usd() == 0.75
    with Limits(tracker=BudgetTracker(Budget(max_cost_usd=3.0))).around():
        assert Limits.of(None, Budget(max_seconds=5)).remaining_usd() == 3.0
