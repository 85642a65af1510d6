"""A budget is spent when any of its dimensions is reached: exactly, and under threads."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator

import pytest

from donewhen.foundation.errors import ExitCode
from donewhen.runtime import Budget, BudgetExceededError, BudgetTracker, Dimension, TokenUsage
from donewhen.testing import ManualClock
from sentences import assert_sentences

DIMENSIONS: list[Dimension] = ["input_tokens", "output_tokens", "total_tokens", "cost_usd", "seconds"]


@pytest.fixture
def busy_threads() -> Iterator[None]:
    """Let threads interrupt each other as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def use(tracker: BudgetTracker, clock: ManualClock, dimension: Dimension, amount: float) -> None:
    """Use up that much of one dimension."""
    match dimension:
        case "input_tokens" | "total_tokens":
            tracker.record(TokenUsage(input_tokens=int(amount)))
        case "output_tokens":
            tracker.record(TokenUsage(output_tokens=int(amount)))
        case "cost_usd":
            tracker.record(cost_usd=amount)
        case "seconds":
            clock.advance(amount)


def tracker_for(dimension: Dimension, limit: float) -> tuple[BudgetTracker, ManualClock]:
    clock = ManualClock()
    return BudgetTracker(Budget(**{f"max_{dimension}": limit}), clock=clock), clock


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_budget_is_not_spent_before_its_limit(dimension: Dimension) -> None:
    tracker, clock = tracker_for(dimension, 100)
    use(tracker, clock, dimension, 99)
    assert tracker.exhausted() is None
    assert tracker.used(dimension) == 99
    assert tracker.remaining(dimension) == 1
    tracker.check()


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_budget_is_spent_when_its_limit_is_reached_exactly(dimension: Dimension) -> None:
    tracker, clock = tracker_for(dimension, 100)
    use(tracker, clock, dimension, 99)
    use(tracker, clock, dimension, 1)
    assert tracker.exhausted() == dimension
    assert tracker.remaining(dimension) == 0
    with pytest.raises(BudgetExceededError) as caught:
        tracker.check()
    assert caught.value.dimension == dimension


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_budget_stays_spent_beyond_its_limit_and_nothing_is_left(dimension: Dimension) -> None:
    tracker, clock = tracker_for(dimension, 100)
    use(tracker, clock, dimension, 250)
    assert tracker.exhausted() == dimension
    assert tracker.used(dimension) == 250
    assert tracker.remaining(dimension) == 0


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_dimension_without_a_limit_is_counted_and_never_spent(dimension: Dimension) -> None:
    other: Dimension = "seconds" if dimension != "seconds" else "cost_usd"
    tracker, clock = tracker_for(other, 1_000_000_000)
    use(tracker, clock, dimension, 1000)
    assert tracker.used(dimension) == 1000
    assert tracker.remaining(dimension) is None
    assert tracker.exhausted() is None


def test_the_total_is_input_and_output_together():
    tracker, _ = tracker_for("total_tokens", 10)
    tracker.record(TokenUsage(input_tokens=6, output_tokens=3))
    assert tracker.exhausted() is None
    tracker.record(TokenUsage(output_tokens=1))
    assert tracker.exhausted() == "total_tokens"


def test_cached_tokens_are_part_of_the_input_and_not_counted_twice():
    usage = TokenUsage(input_tokens=10, output_tokens=2, cached_tokens=8)
    assert usage.total_tokens == 12
    tracker, _ = tracker_for("total_tokens", 13)
    tracker.record(usage)
    assert tracker.exhausted() is None
    assert tracker.usage.cached_tokens == 8


def test_input_does_not_count_against_output_nor_output_against_input():
    tracker = BudgetTracker(Budget(max_input_tokens=10, max_output_tokens=10), clock=ManualClock())
    tracker.record(TokenUsage(input_tokens=9, output_tokens=9))
    assert tracker.exhausted() is None
    assert (tracker.remaining("input_tokens"), tracker.remaining("output_tokens")) == (1, 1)


def test_one_spent_dimension_is_enough():
    tracker = BudgetTracker(Budget(max_input_tokens=1000, max_cost_usd=0.5, max_seconds=99), clock=ManualClock())
    tracker.record(TokenUsage(input_tokens=1), cost_usd=0.5)
    assert tracker.exhausted() == "cost_usd"


def test_of_several_spent_dimensions_the_first_is_named():
    clock = ManualClock()
    budget = Budget(max_input_tokens=5, max_output_tokens=5, max_total_tokens=8, max_cost_usd=5, max_seconds=5)
    tracker = BudgetTracker(budget, clock=clock)
    named = []
    for spend in (
        lambda: clock.advance(5),
        lambda: tracker.record(cost_usd=5),
        lambda: tracker.record(TokenUsage(4, 4)),
        lambda: tracker.record(TokenUsage(output_tokens=1)),
        lambda: tracker.record(TokenUsage(input_tokens=1)),
    ):
        spend()
        named.append(tracker.exhausted())
    assert named == ["seconds", "cost_usd", "total_tokens", "output_tokens", "input_tokens"]


@pytest.mark.parametrize(("price", "calls", "limit"), [(0.1, 10, 1.0), (0.01, 100, 1.0), (0.7, 3, 2.1), (0.05, 6, 0.3)])
def test_cents_that_add_up_to_the_limit_spend_it(price: float, calls: int, limit: float) -> None:
    # 0.1 is not a number a float can hold: adding ten of them must not stop a hair short of one.
    tracker, _ = tracker_for("cost_usd", limit)
    for _ in range(calls - 1):
        tracker.record(cost_usd=price)
    assert tracker.exhausted() is None
    tracker.record(cost_usd=price)
    assert tracker.exhausted() == "cost_usd"
    assert tracker.remaining("cost_usd") == 0


def test_time_runs_from_the_trackers_creation():
    clock = ManualClock()
    clock.advance(500)
    tracker = BudgetTracker(Budget(max_seconds=10), clock=clock)
    assert tracker.used("seconds") == 0
    clock.advance(4)
    assert tracker.remaining("seconds") == 6


def test_a_wall_clock_that_jumps_uses_no_time():
    clock = ManualClock()
    tracker = BudgetTracker(Budget(max_seconds=10), clock=clock)
    clock.jump(86400)
    assert tracker.used("seconds") == 0
    clock.advance(10)
    clock.jump(-86400)
    assert tracker.exhausted() == "seconds"


def test_a_tracker_runs_on_the_machines_clock_unless_told_otherwise():
    tracker = BudgetTracker(Budget(max_seconds=3600))
    assert 0 <= tracker.used("seconds") < 3600
    assert tracker.exhausted() is None


def test_recording_nothing_changes_nothing():
    tracker, _ = tracker_for("total_tokens", 5)
    tracker.record()
    assert tracker.usage == TokenUsage()
    assert tracker.used("cost_usd") == 0


def test_tokens_and_cost_are_recorded_together():
    tracker = BudgetTracker(Budget(max_cost_usd=10), clock=ManualClock())
    tracker.record(TokenUsage(1, 2, 1), cost_usd=0.25)
    tracker.record(TokenUsage(10, 20, 5), cost_usd=0.5)
    assert tracker.usage == TokenUsage(11, 22, 6)
    assert tracker.used("cost_usd") == 0.75
    assert tracker.used("total_tokens") == 33


@pytest.mark.parametrize("cost", [-0.01, math.nan, math.inf, -math.inf])
def test_a_cost_that_can_not_be_is_refused_and_nothing_of_the_call_is_recorded(cost: float) -> None:
    tracker, _ = tracker_for("cost_usd", 1)
    with pytest.raises(ValueError, match="cost_usd"):
        tracker.record(TokenUsage(5, 5), cost_usd=cost)
    assert tracker.usage == TokenUsage()
    assert tracker.used("cost_usd") == 0


def test_use_in_several_threads_is_counted_completely(busy_threads: None) -> None:
    tracker = BudgetTracker(Budget(max_total_tokens=10**9), clock=ManualClock())
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait(30)
        for _ in range(5000):
            tracker.record(TokenUsage(1, 2, 1), cost_usd=0.5)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert tracker.usage == TokenUsage(20_000, 40_000, 20_000)
    assert tracker.used("cost_usd") == 10_000


def test_the_error_says_what_is_spent_and_by_how_much():
    error = BudgetExceededError("output_tokens", 120, 100)
    assert "output_tokens" in str(error)
    assert "120" in str(error)
    assert "100" in str(error)
    assert (error.code, error.exit_code) == ("budget_exhausted", ExitCode.GATE_FAILED)


def test_the_error_says_large_numbers_in_full():
    message = str(BudgetExceededError("total_tokens", 2_345_678, 2_000_000)).replace(",", "").replace("_", "")
    assert "2345678" in message
    assert "2000000" in message


def test_the_error_raised_by_a_check_carries_the_numbers():
    tracker, clock = tracker_for("output_tokens", 100)
    use(tracker, clock, "output_tokens", 120)
    with pytest.raises(BudgetExceededError) as caught:
        tracker.check()
    assert_sentences(caught.value)


def test_a_budget_without_any_limit_is_refused():
    with pytest.raises(ValueError) as caught:
        Budget()
    assert_sentences(caught.value)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("limit", [0, -1, math.nan, math.inf])
def test_a_limit_that_is_no_positive_number_is_refused_by_name(dimension: Dimension, limit: float) -> None:
    with pytest.raises(ValueError, match=f"max_{dimension}"):
        Budget(**{f"max_{dimension}": limit})


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_budget_knows_the_limit_of_each_dimension(dimension: Dimension) -> None:
    budget = Budget(**{f"max_{dimension}": 7})
    assert [budget.limit(one) for one in DIMENSIONS] == [7 if one == dimension else None for one in DIMENSIONS]


def test_budgets_and_usages_are_values_that_can_not_be_changed():
    assert Budget(max_seconds=1) == Budget(max_seconds=1)
    for value, field in ((Budget(max_seconds=1), "max_seconds"), (TokenUsage(1), "input_tokens")):
        with pytest.raises(AttributeError):
            setattr(value, field, 5)


def test_usages_add_up_field_by_field():
    assert TokenUsage(1, 2, 3) + TokenUsage(10, 20, 30) == TokenUsage(11, 22, 33)


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens", "cached_tokens"])
def test_a_negative_usage_is_refused_by_name(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        TokenUsage(**{field: -1})
