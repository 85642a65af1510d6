"""Feedback is bounded, and names the check that failed or hung."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from donewhen.completion import (
    CommandChecker,
    CompositeChecker,
    GuardPolicy,
    GuardState,
    StopGuard,
    TaskCompletionContext,
    TaskCompletionResult,
    arun_check,
    checker,
    run_check,
)
from donewhen.completion.checking import MAX_FEEDBACK
from donewhen.completion.stop_decision import decide_stop
from donewhen.foundation.plain_text import shorten_middle
from donewhen.protocols import ReasonCode
from donewhen.runtime import Session

HUGE = 1_200_000


def context() -> TaskCompletionContext:
    return TaskCompletionContext(session=Session())


class Says:
    def __init__(self, feedback: str, *, complete: bool = False) -> None:
        self.result = TaskCompletionResult(complete, feedback, None if complete else ReasonCode.FILES_MISSING)

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        return self.result


class Hangs:
    """Waits until the test is over, and says nothing."""

    name = "the slow one"

    def __init__(self) -> None:
        self.over = threading.Event()

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        self.over.wait(100)
        return TaskCompletionResult.ok()


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("timeout", [None, 100.0])
def test_huge_feedback_is_cut_in_the_middle(complete: bool, timeout: float | None) -> None:
    result = run_check(Says("start" + "x" * HUGE + "end", complete=complete), context(), timeout=timeout)
    feedback = result.feedback or ""
    assert len(feedback) <= MAX_FEEDBACK
    assert feedback.startswith("start")
    assert feedback.endswith("end")
    assert result.complete is complete
    assert result.code == (None if complete else ReasonCode.FILES_MISSING)


def test_huge_feedback_of_an_async_checker_is_cut_too() -> None:
    @checker
    async def fails(context: TaskCompletionContext) -> TaskCompletionResult:
        return TaskCompletionResult.incomplete("x" * HUGE)

    for checked in (fails, Says("x" * HUGE)):
        result = asyncio.run(arun_check(checked, context()))
        assert len(result.feedback or "") <= MAX_FEEDBACK


def test_feedback_up_to_the_limit_is_unchanged() -> None:
    result = TaskCompletionResult.incomplete("x" * MAX_FEEDBACK)
    says = Says("")
    says.result = result
    assert run_check(says, context()) is result


@pytest.mark.parametrize("count", [2, 39, 41, 60, 100, 200])
def test_every_failing_check_is_named_and_the_limit_holds_however_many_there_are(count: int) -> None:
    checks = [Says(f"check {number:03d} " + "x" * 900) for number in range(count)]
    feedback = run_check(CompositeChecker(checks, collect_all=True), context()).feedback or ""
    assert len(feedback) <= MAX_FEEDBACK
    assert [number for number in range(count) if f"- check {number:03d}" not in feedback] == []


def test_short_feedback_of_several_checks_is_complete() -> None:
    checks = [Says(f"Missing required files: report-{number}.md") for number in range(60)]
    feedback = run_check(CompositeChecker(checks, collect_all=True), context()).feedback or ""
    assert all(f"- Missing required files: report-{number}.md" in feedback for number in range(60))


def test_each_of_several_failing_checks_is_named_however_much_one_of_them_says() -> None:
    checks = [Says("first " + "x" * HUGE), Says("second " + "y" * HUGE), *(Says(f"check {n}") for n in range(10))]
    feedback = run_check(CompositeChecker(checks, collect_all=True), context()).feedback or ""
    assert len(feedback) <= MAX_FEEDBACK
    for name in ("first", "second", *(f"check {number}" for number in range(10))):
        assert f"- {name}" in feedback


def test_a_guard_hands_on_bounded_feedback() -> None:
    decision = StopGuard(Says("x" * HUGE)).decide(context())
    assert len(decision.feedback) <= MAX_FEEDBACK


def test_a_hanging_check_is_named_and_not_the_composite_around_it() -> None:
    hangs = Hangs()
    nested = CompositeChecker([Says("fine", complete=True), CompositeChecker([hangs], collect_all=True)])
    try:
        result = run_check(nested, context(), timeout=0.3)
    finally:
        hangs.over.set()
    assert result.code == ReasonCode.CHECK_TIMEOUT
    assert "the slow one" in (result.feedback or "")
    assert "CompositeChecker" not in (result.feedback or "")


def test_a_hanging_command_is_named(tmp_path: Path) -> None:
    command = CommandChecker(["sleep", "100"], name="sleep 100")
    result = run_check(CompositeChecker([command, Says("never asked")], collect_all=True), context(), timeout=0.5)
    assert "sleep 100" in (result.feedback or "")


def test_a_hanging_check_is_named_for_asynchronous_callers_too() -> None:
    hangs = Hangs()
    try:
        result = asyncio.run(arun_check(CompositeChecker([hangs]), context(), timeout=0.3))
    finally:
        hangs.over.set()
    assert "the slow one" in (result.feedback or "")

    @checker
    async def sleeps(context: TaskCompletionContext) -> bool:
        await asyncio.sleep(100)
        return True

    assert "sleeps" in (asyncio.run(arun_check(sleeps, context(), timeout=0.3)).feedback or "")


def test_checks_one_after_the_other_leave_no_names_behind() -> None:
    hangs = Hangs()
    hangs.over.set()
    assert run_check(hangs, context(), timeout=100).complete
    still = Hangs()
    still.name = "another"
    try:
        result = run_check(CompositeChecker([hangs, still]), context(), timeout=0.3)
    finally:
        still.over.set()
    assert "another" in (result.feedback or "")


@pytest.mark.parametrize(("text", "limit"), [("", 0), ("abc", 3), ("abcd", 4)])
def test_a_short_text_is_not_shortened(text: str, limit: int) -> None:
    assert shorten_middle(text, limit) == text


# The cap


def held(changed: bool, policy: GuardPolicy, count: int, feedback: str = "{}") -> list[bool]:
    state, answers = GuardState(), []
    for number in range(count):
        result = TaskCompletionResult.incomplete(feedback.format("abcdefghijklmnopqrstuvwxyz"[number]))
        decision, state = decide_stop(result, state, policy, changed=changed)
        answers.append(not decision.allow)
    return answers


def test_other_words_without_a_change_reach_the_cap_before_runtimes_do() -> None:
    assert held(False, GuardPolicy(), 8) == [True] * 7 + [False]


def test_other_words_with_changes_are_progress() -> None:
    assert held(True, GuardPolicy(), 20) == [True] * 20


def test_the_same_words_reach_the_cap_earlier_whatever_was_changed() -> None:
    assert held(True, GuardPolicy(), 6, "same") == [True] * 5 + [False]


@pytest.mark.parametrize(("max_stalled", "cap"), [(1, 7), (7, 7), (8, 8), (20, 20)])
def test_a_higher_limit_of_ones_own_counts(max_stalled: int, cap: int) -> None:
    assert held(False, GuardPolicy(max_stalled=max_stalled), cap + 1) == [True] * cap + [False]


def test_a_change_starts_the_count_of_refusals_without_one_anew() -> None:
    state = GuardState()
    for number in range(20):
        result = TaskCompletionResult.incomplete("abcdefghijklmnopqrstuvwxyz"[number])
        decision, state = decide_stop(result, state, GuardPolicy(), changed=number % 6 == 0)
        assert not decision.allow
