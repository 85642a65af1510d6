"""StopGuard: every way in which a guarded run can end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from donewhen.completion import (
    GuardPolicy,
    ReasonCode,
    StopDecision,
    StopGuard,
    TaskCompletionContext,
    TaskCompletionResult,
)
from donewhen.protocols import CompletionReport
from donewhen.runtime import (
    Budget,
    BudgetTracker,
    Bypass,
    CompletionBypassed,
    CompletionChecked,
    Deadline,
    Limits,
    Session,
    TokenUsage,
    append_all,
)
from donewhen.testing import ManualClock, make_context
from sentences import assert_sentences

HANG_GUARD = 300.0


class Answers:
    """Gives the answers in turn, the last one for ever, and counts how often it was asked."""

    def __init__(self, *answers: TaskCompletionResult | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


OK = TaskCompletionResult.ok("Fine.")


def no(feedback: str | None = "Go on.", code: ReasonCode | None = None) -> TaskCompletionResult:
    return TaskCompletionResult(complete=False, feedback=feedback, code=code)


def decide(guard: StopGuard, context: TaskCompletionContext | None = None) -> StopDecision:
    return guard.decide(context or make_context())


def adecide(guard: StopGuard, context: TaskCompletionContext | None = None) -> StopDecision:
    return asyncio.run(guard.adecide(context or make_context()))


def conclude(guard: StopGuard, context: TaskCompletionContext | None = None) -> CompletionReport:
    return guard.conclude(context or make_context())


def aconclude(guard: StopGuard, context: TaskCompletionContext | None = None) -> CompletionReport:
    return asyncio.run(guard.aconclude(context or make_context()))


DECIDING = pytest.mark.parametrize("decide", [decide, adecide], ids=["decide", "adecide"])
CONCLUDING = pytest.mark.parametrize("conclude", [conclude, aconclude], ids=["conclude", "aconclude"])


@DECIDING
class TestDecide:
    def test_complete_work_is_verified_and_let_go(self, decide: Callable[..., StopDecision]) -> None:
        assert decide(StopGuard(Answers(OK))) == StopDecision(True, CompletionReport("verified", 1, "Fine."))

    def test_incomplete_work_is_held_back_with_the_feedback(self, decide: Callable[..., StopDecision]) -> None:
        decision = decide(StopGuard(Answers(no("Go on.", ReasonCode.TESTS_FAILED))))
        assert decision == StopDecision(
            False, CompletionReport("incomplete", 1, "Go on.", ReasonCode.TESTS_FAILED, None)
        )
        assert decision.feedback == "Go on."

    @pytest.mark.parametrize("feedback", [None, ""])
    def test_without_feedback_the_agent_is_told_something(
        self, decide: Callable[..., StopDecision], feedback: str | None
    ) -> None:
        assert_sentences(decide(StopGuard(Answers(no(feedback)))).feedback)

    def test_a_broken_check_is_errored_and_holds_back(self, decide: Callable[..., StopDecision]) -> None:
        decision = decide(StopGuard(Answers(ValueError("boom"))))
        assert decision.allow is False
        assert decision.report.status == "errored"
        assert decision.report.code is ReasonCode.GATE_ERROR
        assert "raised ValueError: boom" in decision.feedback

    def test_a_check_that_hangs_is_errored_and_holds_back(self, decide: Callable[..., StopDecision]) -> None:
        release = threading.Event()

        class Hangs:
            def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
                release.wait(HANG_GUARD)
                return OK

        decision = decide(StopGuard(Hangs(), policy=GuardPolicy(check_timeout=0.05)))
        release.set()
        assert decision.allow is False
        assert decision.report.status == "errored"
        assert decision.report.code is ReasonCode.CHECK_TIMEOUT

    def test_attempts_are_counted(self, decide: Callable[..., StopDecision]) -> None:
        guard = StopGuard(Answers(no("A."), no("B."), OK))
        assert [decide(guard).report.attempts for _ in range(3)] == [1, 2, 3]

    def test_after_a_refusal_finished_work_is_verified(self, decide: Callable[..., StopDecision]) -> None:
        guard = StopGuard(Answers(no(), OK))
        assert [(one.allow, one.report.status) for one in (decide(guard), decide(guard))] == [
            (False, "incomplete"),
            (True, "verified"),
        ]

    def test_no_progress_is_capped(self, decide: Callable[..., StopDecision]) -> None:
        guard = StopGuard(Answers(no("Same.", ReasonCode.TESTS_FAILED)), policy=GuardPolicy(max_stalled=2))
        assert [decide(guard).allow for _ in range(2)] == [False, False]
        assert decide(guard) == StopDecision(True, CompletionReport("capped", 3, "Same.", ReasonCode.TESTS_FAILED))

    def test_a_broken_check_is_capped_as_well(self, decide: Callable[..., StopDecision]) -> None:
        guard = StopGuard(Answers(ValueError("boom")), policy=GuardPolicy(max_stalled=1))
        assert decide(guard).report.status == "errored"
        capped = decide(guard)
        assert (capped.allow, capped.report.status, capped.report.code) == (True, "capped", ReasonCode.GATE_ERROR)

    def test_progress_resets_the_stall_counter(self, decide: Callable[..., StopDecision]) -> None:
        answers = Answers(no("3 left."), no("3 left."), no("2 left."), no("2 left."), no("1 left."), no("1 left."))
        guard = StopGuard(answers, policy=GuardPolicy(max_stalled=2))
        assert [decide(guard).allow for _ in range(6)] == [False] * 6
        assert decide(guard).report.status == "capped"

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("1 failed in 0.02s", "1 failed in 1.73s"),
            ("took 12 ms", "took 7 ms"),
            ("did not end within 3 seconds", "did not end within 4 seconds"),
            ("<Thing at 0x7f3a2c> is None", "<Thing at 0x7fffff> is None"),
        ],
    )
    def test_how_long_something_took_or_where_it_lay_is_no_progress(
        self, decide: Callable[..., StopDecision], first: str, second: str
    ) -> None:
        guard = StopGuard(Answers(no(first), no(second)), policy=GuardPolicy(max_stalled=1))
        assert [decide(guard).report.status for _ in range(2)] == ["incomplete", "capped"]

    @pytest.mark.parametrize(
        ("first", "second"),
        [("3 failed in 0.02s", "2 failed in 0.02s"), ("You have 3 steps", "You have 2 steps"), ("9 seas", "8 seas")],
    )
    def test_fewer_failures_are_progress(self, decide: Callable[..., StopDecision], first: str, second: str) -> None:
        guard = StopGuard(Answers(no(first), no(second)), policy=GuardPolicy(max_stalled=1))
        assert [decide(guard).allow for _ in range(2)] == [False, False]

    def test_answers_that_take_turns_are_no_stall(self, decide: Callable[..., StopDecision]) -> None:
        guard = StopGuard(Answers(*[no("A."), no("B.")] * 5), policy=GuardPolicy(max_stalled=1))
        assert [decide(guard).allow for _ in range(10)] == [False] * 10

    def test_a_pass_in_between_ends_the_row(self, decide: Callable[..., StopDecision]) -> None:
        guard = StopGuard(Answers(no("A."), OK, no("A.")), policy=GuardPolicy(max_stalled=1))
        assert [decide(guard).allow for _ in range(3)] == [False, True, False]

    def test_refusals_without_feedback_stall_too(self, decide: Callable[..., StopDecision]) -> None:
        guard = StopGuard(Answers(no(None)), policy=GuardPolicy(max_stalled=1))
        assert [decide(guard).report.status for _ in range(2)] == ["incomplete", "capped"]

    def test_too_many_refusals_in_all_are_capped_although_there_is_progress(
        self, decide: Callable[..., StopDecision]
    ) -> None:
        guard = StopGuard(Answers(*(no(f"{n} left.") for n in range(9))), policy=GuardPolicy(max_attempts=3))
        assert [decide(guard).allow for _ in range(3)] == [False] * 3
        capped = decide(guard)
        assert (capped.allow, capped.report.status, capped.report.attempts) == (True, "capped", 4)

    def test_passes_do_not_count_as_refusals(self, decide: Callable[..., StopDecision]) -> None:
        guard = StopGuard(Answers(OK, OK, OK, no("A.")), policy=GuardPolicy(max_attempts=1))
        assert [decide(guard).allow for _ in range(4)] == [True, True, True, False]

    def test_finished_work_is_verified_even_beyond_the_caps(self, decide: Callable[..., StopDecision]) -> None:
        policy = GuardPolicy(max_stalled=1, max_attempts=1)
        guard = StopGuard(Answers(no(), no(), OK), policy=policy)
        assert [decide(guard).report.status for _ in range(3)] == ["incomplete", "capped", "verified"]

    def test_feedback_that_no_encoding_can_hold_holds_back_like_any_other(
        self, decide: Callable[..., StopDecision]
    ) -> None:
        guard = StopGuard(Answers(no("Missing: b\udcffd.txt")), policy=GuardPolicy(max_stalled=1))
        assert [decide(guard).report.status for _ in range(2)] == ["incomplete", "capped"]


CLOCK_LIMITS: list[tuple[str, Callable[[ManualClock], Limits], Bypass]] = [
    ("deadline", lambda clock: Limits(Deadline.after(10, clock=clock)), Bypass("deadline")),
    (
        "seconds",
        lambda clock: Limits(None, BudgetTracker(Budget(max_seconds=10), clock=clock)),
        Bypass("budget", "seconds"),
    ),
]
USAGE_LIMITS: list[tuple[Budget, Bypass]] = [
    (Budget(max_input_tokens=10), Bypass("budget", "input_tokens")),
    (Budget(max_output_tokens=5), Bypass("budget", "output_tokens")),
    (Budget(max_total_tokens=15), Bypass("budget", "total_tokens")),
    (Budget(max_cost_usd=0.5), Bypass("budget", "cost_usd")),
]


@DECIDING
class TestBypass:
    @pytest.mark.parametrize(("name", "limits_of", "bypass"), CLOCK_LIMITS, ids=[one[0] for one in CLOCK_LIMITS])
    def test_when_time_is_up_the_check_is_skipped(
        self, decide: Callable[..., StopDecision], name: str, limits_of: Callable[[ManualClock], Limits], bypass: Bypass
    ) -> None:
        clock = ManualClock()
        answers = Answers(no())
        guard = StopGuard(answers, limits_of(clock))
        clock.advance(9.99)
        assert decide(guard).allow is False
        clock.advance(0.01)
        decision = decide(guard)
        feedback = decision.feedback
        assert decision == StopDecision(
            True,
            CompletionReport("bypassed", 1, feedback, None, bypass),
        )
        assert_sentences(feedback)
        assert answers.asked == 1

    @pytest.mark.parametrize(("budget", "bypass"), USAGE_LIMITS, ids=[str(one[1].dimension) for one in USAGE_LIMITS])
    def test_when_a_budget_is_spent_the_check_is_skipped(
        self, decide: Callable[..., StopDecision], budget: Budget, bypass: Bypass
    ) -> None:
        tracker = BudgetTracker(budget)
        answers = Answers(no())
        guard = StopGuard(answers, Limits(None, tracker))
        tracker.record(TokenUsage(input_tokens=9, output_tokens=4), cost_usd=0.4)
        assert decide(guard).report.status == "incomplete"
        tracker.record(TokenUsage(input_tokens=1, output_tokens=1), cost_usd=0.1)
        decision = decide(guard)
        assert decision.allow is True
        assert decision.report.status == "bypassed"
        assert decision.report.bypass == bypass
        assert str(bypass.dimension) in decision.feedback
        assert_sentences(decision.feedback)
        assert answers.asked == 1

    def test_the_words_for_a_passed_deadline(self, decide: Callable[..., StopDecision]) -> None:
        clock = ManualClock()
        guard = StopGuard(Answers(OK), Limits(Deadline.after(0, clock=clock)))
        assert_sentences(decide(guard).feedback)

    def test_without_limits_nothing_is_bypassed(self, decide: Callable[..., StopDecision]) -> None:
        assert decide(StopGuard(Answers(no()), Limits())).report.bypass is None


@CONCLUDING
class TestConclude:
    @pytest.mark.parametrize(
        ("answer", "status", "code"),
        [
            (OK, "verified", None),
            (no("Go on.", ReasonCode.TESTS_FAILED), "incomplete", ReasonCode.TESTS_FAILED),
            (no("Slow.", ReasonCode.COMMAND_TIMEOUT), "incomplete", ReasonCode.COMMAND_TIMEOUT),
            (ValueError("boom"), "errored", ReasonCode.GATE_ERROR),
        ],
        ids=["verified", "incomplete", "undecided", "errored"],
    )
    def test_a_run_that_ended_is_checked_once_more(
        self,
        conclude: Callable[..., CompletionReport],
        answer: TaskCompletionResult | Exception,
        status: str,
        code: ReasonCode | None,
    ) -> None:
        report = conclude(StopGuard(Answers(answer)))
        assert (report.status, report.code, report.attempts) == (status, code, 1)

    def test_a_run_that_ended_by_its_limits_is_bypassed_and_not_checked(
        self, conclude: Callable[..., CompletionReport]
    ) -> None:
        answers = Answers(OK)
        clock = ManualClock()
        report = conclude(StopGuard(answers, Limits(Deadline.after(0, clock=clock))))
        assert (report.status, report.bypass, report.attempts) == ("bypassed", Bypass("deadline"), 0)
        assert answers.asked == 0

    def test_a_check_that_hangs_at_the_end_is_errored(self, conclude: Callable[..., CompletionReport]) -> None:
        release = threading.Event()

        class Hangs:
            def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
                release.wait(HANG_GUARD)
                return OK

        report = conclude(StopGuard(Hangs(), policy=GuardPolicy(check_timeout=0.05)))
        release.set()
        assert (report.status, report.code) == ("errored", ReasonCode.CHECK_TIMEOUT)

    def test_it_counts_on_from_the_attempts_before(self, conclude: Callable[..., CompletionReport]) -> None:
        guard = StopGuard(Answers(no("A."), no("B."), OK))
        decide(guard)
        decide(guard)
        assert conclude(guard).attempts == 3

    def test_stalling_does_not_turn_the_end_into_capped(self, conclude: Callable[..., CompletionReport]) -> None:
        guard = StopGuard(Answers(no("Same.")), policy=GuardPolicy(max_stalled=1))
        decide(guard)
        assert conclude(guard).status == "incomplete"

    def test_it_says_nothing_about_the_attempts_after_it(self, conclude: Callable[..., CompletionReport]) -> None:
        guard = StopGuard(Answers(no("Same.")), policy=GuardPolicy(max_stalled=1))
        decide(guard)
        conclude(guard)
        again = decide(guard)
        assert (again.allow, again.report.attempts) == (False, 3)


class TestState:
    """A hook is a new process each time: what it must remember can be handed on."""

    def test_a_guard_can_go_on_where_another_stopped(self) -> None:
        policy = GuardPolicy(max_stalled=2)
        first = StopGuard(Answers(no("Same.")), policy=policy)
        decide(first)
        decide(first)
        second = StopGuard(Answers(no("Same.")), policy=policy, state=first.state)
        assert decide(second).report == CompletionReport("capped", 3, "Same.")

    def test_the_state_does_not_keep_the_text(self) -> None:
        guard = StopGuard(Answers(no("a secret")))
        decide(guard)
        assert "secret" not in repr(guard.state)
        assert (guard.state.attempts, guard.state.refusals, guard.state.stalled) == (1, 1, 1)


class TestRecord:
    def recorded(self, use: Callable[[StopGuard, TaskCompletionContext], Any], *answers: Any, **settings: Any) -> Any:
        context = make_context(stop_reason="structured_output")
        context.session[CompletionChecked].register(CompletionChecked, append_all)
        use(StopGuard(Answers(*answers), **settings), context)
        return context.session[CompletionChecked].all()

    @pytest.mark.parametrize("ask", [decide, adecide], ids=["decide", "adecide"])
    def test_every_answer_is_dispatched_to_the_session(self, ask: Callable[..., StopDecision]) -> None:
        def twice(guard: StopGuard, context: TaskCompletionContext) -> None:
            ask(guard, context)
            ask(guard, context)

        assert self.recorded(twice, no("A.", ReasonCode.TESTS_FAILED), OK) == (
            CompletionChecked(1, False, False, "A.", ReasonCode.TESTS_FAILED, "structured_output"),
            CompletionChecked(2, True, True, "Fine.", None, "structured_output"),
        )

    def test_a_capped_stop_is_recorded_as_allowed_but_not_complete(self) -> None:
        def twice(guard: StopGuard, context: TaskCompletionContext) -> None:
            decide(guard, context)
            decide(guard, context)

        last = self.recorded(twice, no("A."), policy=GuardPolicy(max_stalled=1))[-1]
        assert (last.complete, last.allowed) == (False, True)

    @pytest.mark.parametrize("end", [conclude, aconclude], ids=["conclude", "aconclude"])
    def test_the_last_check_of_a_run_is_recorded_too(self, end: Callable[..., CompletionReport]) -> None:
        assert self.recorded(end, no("A.")) == (CompletionChecked(1, False, True, "A.", None, "structured_output"),)

    def test_a_bypass_is_no_check_and_is_not_recorded_as_one(self) -> None:
        limits = Limits(Deadline.after(0, clock=ManualClock()))
        assert self.recorded(decide, OK, limits=limits) == ()

    @pytest.mark.parametrize("prepared", [True, False], ids=["a prepared session", "a bare session"])
    @pytest.mark.parametrize("end", [decide, adecide, conclude, aconclude])
    def test_a_bypass_is_recorded_as_a_bypass(self, end: Callable[..., Any], prepared: bool) -> None:
        context = make_context()
        if prepared:
            context.session[CompletionBypassed].register(CompletionBypassed, append_all)
        context.stop_reason = "max_turns"
        clock = ManualClock()
        guard = StopGuard(Answers(no()), Limits(Deadline.after(1, clock=clock)))
        decide(guard, context)
        clock.advance(2)
        end(guard, context)
        assert context.session[CompletionBypassed].all() == (CompletionBypassed(1, Bypass("deadline"), "max_turns"),)

    @pytest.mark.parametrize("end", [decide, adecide, conclude, aconclude])
    def test_a_bare_session_keeps_the_record(self, end: Callable[..., Any]) -> None:
        session = Session()
        end(StopGuard(Answers(no("A."))), TaskCompletionContext(session))
        (event,) = session[CompletionChecked].all()
        assert (event.attempt, event.complete, event.feedback) == (1, False, "A.")

    @pytest.mark.parametrize("end", [decide, adecide, conclude, aconclude])
    def test_a_session_that_does_not_record_is_reported_and_changes_no_decision(self, end: Callable[..., Any]) -> None:
        class Broken(Session):
            def dispatch(self, event: object) -> Any:
                raise RuntimeError("the disk is full")

        with pytest.warns(RuntimeWarning, match="did not record the completion check: RuntimeError: the disk is full"):
            ended = end(StopGuard(Answers(no("A."))), TaskCompletionContext(Broken()))
        assert getattr(ended, "report", ended).status == "incomplete"

    def test_a_reducer_that_fails_is_reported(self) -> None:
        def fails(view: Any, event: CompletionChecked) -> Any:
            raise ValueError("no room")

        session = Session()
        session[CompletionChecked].register(CompletionChecked, fails)
        with pytest.warns(RuntimeWarning, match="no room"):
            assert decide(StopGuard(Answers(OK)), TaskCompletionContext(session)).allow is True


class TestGiven:
    """What a guard is given is refused at once, not when an agent wants to stop."""

    @pytest.mark.parametrize("thing", [None, 7, "text", object(), Answers])
    def test_what_is_no_checker_is_refused(self, thing: Any) -> None:
        with pytest.raises(TypeError, match=r"is not a checker|pass an instance"):
            StopGuard(thing)

    @DECIDING
    def test_a_plain_function_is_a_checker(self, decide: Callable[..., StopDecision]) -> None:
        def is_named(context: TaskCompletionContext) -> bool:
            """Name the river."""
            return False

        assert decide(StopGuard(is_named)).feedback == "is_named is not met: Name the river."
        assert decide(StopGuard(lambda context: True)).report.verified is True

    @DECIDING
    @pytest.mark.parametrize("answer", [OK, no()])
    def test_a_decision_has_no_truth_value(
        self, decide: Callable[..., StopDecision], answer: TaskCompletionResult
    ) -> None:
        decision = decide(StopGuard(Answers(answer)))
        with pytest.raises(TypeError, match=r"use decision\.allow"):
            bool(decision)
        with pytest.raises(TypeError):
            assert not decision


class TestPolicy:
    def test_the_defaults(self) -> None:
        assert GuardPolicy() == GuardPolicy(max_stalled=5, max_attempts=50, check_timeout=600.0)
        assert StopGuard(Answers(OK)).policy == GuardPolicy()
        assert StopGuard(Answers(OK)).limits == Limits()

    def test_a_policy_can_not_be_loosened_later(self) -> None:
        with pytest.raises(AttributeError):
            GuardPolicy().max_stalled = 99  # type: ignore[misc]

    @pytest.mark.parametrize(
        "more", [{"limits": GuardPolicy()}, {"policy": Limits()}, {"policy": None}, {"limits": 5}], ids=str
    )
    def test_limits_and_a_policy_in_each_others_place_are_refused(self, more: dict[str, Any]) -> None:
        with pytest.raises(TypeError, match=r"must be (Limits|GuardPolicy), not"):
            StopGuard(Answers(OK), **more)

    @pytest.mark.parametrize("setting", [{"max_stalled": 0}, {"max_attempts": 0}, {"max_stalled": -1}], ids=repr)
    def test_a_cap_below_one_is_refused(self, setting: dict[str, int]) -> None:
        with pytest.raises(ValueError) as caught:
            GuardPolicy(**setting)
        assert_sentences(caught.value)

    @pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
    def test_a_timeout_that_is_not_positive_is_refused(self, timeout: float) -> None:
        with pytest.raises(ValueError) as caught:
            GuardPolicy(check_timeout=timeout)
        assert_sentences(caught.value)

    def test_without_a_timeout_a_check_is_waited_for_in_the_callers_thread(self) -> None:
        seen: list[int] = []

        class Looks:
            def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
                seen.append(threading.get_ident())
                return OK

        assert decide(StopGuard(Looks(), policy=GuardPolicy(check_timeout=None))).allow is True
        assert decide(StopGuard(Looks(), policy=GuardPolicy(check_timeout=HANG_GUARD))).allow is True
        assert seen[0] == threading.get_ident() != seen[1]
