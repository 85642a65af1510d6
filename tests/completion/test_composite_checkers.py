"""CompositeChecker, AtLeast and Not."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from donewhen.completion import (
    AtLeast,
    CommandChecker,
    CompositeChecker,
    FileExistsChecker,
    LLMJudgeChecker,
    Not,
    PlanBasedChecker,
    ReasonCode,
    TaskCompletionContext,
    TaskCompletionResult,
    TestSuiteChecker,
    checker,
    run_check,
)
from donewhen.contrib.tools.planning import Plan
from donewhen.testing import make_context
from sentences import assert_sentences


class Member:
    """Gives one answer and counts how often it was asked."""

    def __init__(self, complete: bool, feedback: str | None = None, code: ReasonCode | None = None) -> None:
        self.result = TaskCompletionResult(complete=complete, feedback=feedback, code=code)
        self.asked = 0

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        self.asked += 1
        return self.result


class AsyncMember(Member):
    async def check(self, context: TaskCompletionContext) -> TaskCompletionResult:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().check(context)


class Raises:
    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        raise ValueError("broken inside")


class Exits:
    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        sys.exit(0)


class SaysNothing:
    def check(self, context: TaskCompletionContext) -> Any:
        return None


def passes(feedback: str | None = None) -> Member:
    return Member(True, feedback)


def fails(feedback: str | None = None, code: ReasonCode | None = None) -> Member:
    return Member(False, feedback, code)


def asked(*members: Member) -> list[int]:
    return [member.asked for member in members]


class TestAllMustPass:
    @pytest.mark.parametrize("all_must_pass", [True, False])
    def test_no_checkers_is_complete_and_says_so(self, all_must_pass: bool) -> None:
        result = CompositeChecker((), all_must_pass).check(make_context())
        assert result == TaskCompletionResult.ok("No checkers configured.")

    def test_all_must_pass_by_default(self) -> None:
        assert CompositeChecker((passes(), fails("no"))).check(make_context()).complete is False
        assert CompositeChecker((passes(), passes())).check(make_context()).complete is True

    def test_the_first_failure_comes_back_unchanged_and_nobody_else_is_asked(self) -> None:
        members = (passes("A."), fails("B.", ReasonCode.TESTS_FAILED), fails("C."), passes("D."))
        result = CompositeChecker(members).check(make_context())
        assert result is members[1].result
        assert asked(*members) == [1, 1, 0, 0]

    def test_when_all_pass_their_feedbacks_are_joined_by_a_space(self) -> None:
        members = (passes("A."), passes(None), passes(""), passes("D."))
        assert CompositeChecker(members).check(make_context()) == TaskCompletionResult.ok("A. D.")
        assert asked(*members) == [1, 1, 1, 1]

    def test_when_all_pass_without_a_word_that_is_said(self) -> None:
        result = CompositeChecker((passes(), passes(""))).check(make_context())
        assert result == TaskCompletionResult.ok("All checks passed.")

    def test_a_failure_without_feedback_is_a_failure(self) -> None:
        result = CompositeChecker((fails(None), passes("Fine."))).check(make_context())
        assert result == TaskCompletionResult(complete=False)

    @pytest.mark.parametrize("broken", [Raises(), Exits(), SaysNothing()], ids=lambda one: type(one).__name__)
    def test_a_broken_member_is_a_failure_with_gate_error(self, broken: Any) -> None:
        last = passes()
        result = CompositeChecker((passes(), broken, last)).check(make_context())
        assert result.complete is False
        assert result.code is ReasonCode.GATE_ERROR
        assert type(broken).__name__ in (result.feedback or "")
        assert last.asked == 0


class TestCollectAll:
    def test_every_checker_is_asked_and_every_failure_is_listed(self) -> None:
        members = (fails("A."), passes("B."), fails("C."), fails(None))
        result = CompositeChecker(members, collect_all=True).check(make_context())
        assert result.complete is False
        assert_sentences(result.feedback)
        assert asked(*members) == [1, 1, 1, 1]

    def test_a_single_failure_comes_back_unchanged(self) -> None:
        members = (passes("A."), fails("B.", ReasonCode.TESTS_FAILED), passes("C."))
        result = CompositeChecker(members, collect_all=True).check(make_context())
        assert result is members[1].result
        assert asked(*members) == [1, 1, 1]

    def test_when_all_pass_the_answer_is_the_usual_one(self) -> None:
        assert CompositeChecker((passes("A."), passes("B.")), collect_all=True).check(
            make_context()
        ) == TaskCompletionResult.ok("A. B.")
        assert CompositeChecker((passes(),), collect_all=True).check(make_context()) == TaskCompletionResult.ok(
            "All checks passed."
        )

    def test_the_code_is_that_of_the_first_failure_that_has_one(self) -> None:
        members = (fails("A."), fails("B.", ReasonCode.TESTS_FAILED), fails("C.", ReasonCode.FILES_MISSING))
        result = CompositeChecker(members, collect_all=True).check(make_context())
        assert result.code is ReasonCode.TESTS_FAILED

    def test_a_check_that_could_not_be_made_decides_the_code(self) -> None:
        members = (fails("A.", ReasonCode.TESTS_FAILED), Raises())
        result = CompositeChecker(members, collect_all=True).check(make_context())
        assert result.code is ReasonCode.GATE_ERROR
        assert "ValueError: broken inside" in (result.feedback or "")
        assert_sentences(result.feedback)

    def test_failures_without_codes_give_none(self) -> None:
        assert CompositeChecker((fails("A."), fails("B.")), collect_all=True).check(make_context()).code is None

    def test_collecting_belongs_to_all_must_pass(self) -> None:
        with pytest.raises(ValueError) as caught:
            CompositeChecker((passes(),), all_must_pass=False, collect_all=True)
        assert_sentences(caught.value)


class TestAnyMayPass:
    def test_the_first_success_comes_back_unchanged_and_nobody_else_is_asked(self) -> None:
        members = (fails("A."), passes("B."), passes("C."), fails("D."))
        result = CompositeChecker(members, all_must_pass=False).check(make_context())
        assert result is members[1].result
        assert asked(*members) == [1, 1, 0, 0]

    def test_when_all_fail_the_failing_feedbacks_are_joined_by_a_space(self) -> None:
        members = (fails("A.", ReasonCode.FILES_MISSING), fails(None), fails(""), fails("D."))
        result = CompositeChecker(members, all_must_pass=False).check(make_context())
        assert result == TaskCompletionResult.incomplete("A. D.", code=ReasonCode.FILES_MISSING)
        assert asked(*members) == [1, 1, 1, 1]

    def test_when_all_fail_without_a_word_that_is_said(self) -> None:
        result = CompositeChecker((fails(None), fails("")), all_must_pass=False).check(make_context())
        assert result == TaskCompletionResult.incomplete("No checks passed.")

    def test_a_broken_member_is_no_pass_but_another_may_be(self) -> None:
        assert CompositeChecker((Raises(), passes("Fine.")), all_must_pass=False).check(
            make_context()
        ) == TaskCompletionResult.ok("Fine.")
        failed = CompositeChecker((fails("A.", ReasonCode.TESTS_FAILED), Exits()), all_must_pass=False).check(
            make_context()
        )
        assert failed.complete is False
        assert failed.code is ReasonCode.GATE_ERROR


class TestAtLeast:
    def test_asking_ends_as_soon_as_enough_passed(self) -> None:
        members = (passes("A."), fails("B."), passes("C."), passes("D."))
        result = AtLeast(2, members).check(make_context())
        assert result == TaskCompletionResult.ok("A. C.")
        assert asked(*members) == [1, 1, 1, 0]

    def test_asking_ends_as_soon_as_too_few_can_pass(self) -> None:
        members = (passes("A."), fails("B."), fails("C."), passes("D."))
        result = AtLeast(3, members).check(make_context())
        assert (result.complete, result.code) == (False, ReasonCode.TOO_FEW_PASSED)
        assert_sentences(result.feedback)
        assert asked(*members) == [1, 1, 1, 0]

    def test_a_failure_that_still_leaves_enough_does_not_end_the_asking(self) -> None:
        members = (fails("A."), passes("B."), passes("C."))
        assert AtLeast(2, members).check(make_context()).complete is True
        assert asked(*members) == [1, 1, 1]

    def test_passes_without_a_word_are_counted(self) -> None:
        result = AtLeast(2, (passes(), passes())).check(make_context())
        assert (result.complete, result.code) == (True, None)
        assert_sentences(result.feedback)

    def test_failures_without_a_word_are_said_to_have_none(self) -> None:
        assert_sentences(AtLeast(1, (fails(None),)).check(make_context()).feedback)

    @pytest.mark.parametrize(("n", "complete"), [(1, True), (2, True), (3, False)])
    def test_exactly_n_are_enough(self, n: int, complete: bool) -> None:
        assert AtLeast(n, (passes(), fails("x"), passes())).check(make_context()).complete is complete

    @pytest.mark.parametrize("n", [0, -1, 3])
    def test_a_number_that_can_not_be_meant_is_refused(self, n: int) -> None:
        with pytest.raises(ValueError) as caught:
            AtLeast(n, (passes(), passes()))
        assert str(n) in str(caught.value)
        assert_sentences(caught.value)

    def test_at_least_one_of_none_is_refused(self) -> None:
        with pytest.raises(ValueError) as caught:
            AtLeast(1, ())
        assert_sentences(caught.value)

    def test_a_broken_member_counts_as_failed_and_decides_the_code(self) -> None:
        assert AtLeast(1, (Raises(), passes("Fine."))).check(make_context()) == TaskCompletionResult.ok("Fine.")
        failed = AtLeast(2, (fails("A.", ReasonCode.TESTS_FAILED), Raises(), passes())).check(make_context())
        assert failed.complete is False
        assert failed.code is ReasonCode.GATE_ERROR

    def test_decided_failures_have_a_code_of_their_own(self) -> None:
        result = AtLeast(1, (fails("A.", ReasonCode.TESTS_FAILED),)).check(make_context())
        assert result.code is ReasonCode.TOO_FEW_PASSED


class TestNot:
    def test_what_fails_passes(self) -> None:
        result = Not(fails("no")).check(make_context())
        assert (result.complete, result.code) == (True, None)
        assert_sentences(result.feedback)

    def test_what_passes_fails_and_is_named(self) -> None:
        result = Not(passes()).check(make_context())
        assert (result.complete, result.code) == (False, ReasonCode.NOT_WANTED)
        assert_sentences(result.feedback)
        assert_sentences(Not(passes("Found it.")).check(make_context()).feedback)

    def test_the_feedback_can_be_given(self) -> None:
        result = Not(passes("Found it."), feedback="Remove debug.log.").check(make_context())
        assert result == TaskCompletionResult.incomplete("Remove debug.log.", code=ReasonCode.NOT_WANTED)

    def test_a_named_checker_is_called_by_its_name(self) -> None:
        grep = CommandChecker([sys.executable, "-c", "raise SystemExit(1)"], name="grep TODO")
        assert_sentences(Not(grep).check(make_context()).feedback)

    @pytest.mark.parametrize("code", [code for code in ReasonCode if not code.undecided])
    def test_a_decided_no_becomes_a_yes(self, code: ReasonCode) -> None:
        assert Not(fails("no", code)).check(make_context()).complete is True

    @pytest.mark.parametrize("code", [code for code in ReasonCode if code.undecided])
    def test_a_check_that_could_not_be_made_stays_incomplete(self, code: ReasonCode) -> None:
        member = fails("could not be made", code)
        assert Not(member).check(make_context()) is member.result
        assert Not(Not(member)).check(make_context()) is member.result

    @pytest.mark.parametrize(
        "broken",
        [
            Raises(),
            Exits(),
            SaysNothing(),
            CommandChecker(["no-such-command-anywhere"]),
            CommandChecker([sys.executable, "-c", "import time; time.sleep(600)"], timeout=0.05),
            FileExistsChecker(("a",), strict=True),
            LLMJudgeChecker("Is it good?"),
            TestSuiteChecker([sys.executable, "-c", "'{junit}'"]),
        ],
        ids=["raises", "exits", "none", "not found", "command timeout", "no filesystem", "no adapter", "no report"],
    )
    def test_no_broken_check_is_turned_into_a_pass(self, broken: Any) -> None:
        for negated in (
            Not(broken),
            Not(CompositeChecker((broken,))),
            Not(CompositeChecker((broken, fails("no")), all_must_pass=False)),
            Not(CompositeChecker((fails("no"), broken), collect_all=True)),
            Not(AtLeast(1, (fails("no"), broken))),
        ):
            result = negated.check(make_context())
            assert result.complete is False
            assert result.code is not None
            assert result.code.undecided

    def test_a_timed_out_check_is_not_turned_into_a_pass(self) -> None:
        release = threading.Event()

        class Hangs:
            def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
                release.wait(30)
                return TaskCompletionResult.incomplete("too late")

        class Impatient:
            def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
                return run_check(Hangs(), context, timeout=0.02)

        try:
            assert Not(Impatient()).check(make_context()).code is ReasonCode.CHECK_TIMEOUT
            assert run_check(Not(Hangs()), make_context(), timeout=0.02).code is ReasonCode.CHECK_TIMEOUT
        finally:
            release.set()

    def test_a_plan_that_can_not_be_read_is_not_turned_into_a_pass(self) -> None:
        class Odd:
            steps = None

        assert Not(PlanBasedChecker(plan_type=Odd)).check(make_context(Odd())).code is ReasonCode.GATE_ERROR


class TestMembers:
    def test_async_members_are_awaited_everywhere(self) -> None:
        yes, no = AsyncMember(True, "Y."), AsyncMember(False, "N.")
        context = make_context()
        assert CompositeChecker((yes, yes)).check(context) == TaskCompletionResult.ok("Y. Y.")
        assert CompositeChecker((yes, no)).check(context) == TaskCompletionResult.incomplete("N.")
        assert CompositeChecker((no, yes), all_must_pass=False).check(context) == TaskCompletionResult.ok("Y.")
        assert AtLeast(1, (no, yes)).check(context) == TaskCompletionResult.ok("Y.")
        assert Not(no).check(context).complete is True
        assert Not(yes).check(context).complete is False

    def test_functions_may_be_members(self) -> None:
        @checker
        def decorated(context: TaskCompletionContext) -> bool:
            return True

        def plain(context: TaskCompletionContext) -> bool:
            """The moon must be full."""
            return False

        async def later(context: TaskCompletionContext) -> TaskCompletionResult:
            return TaskCompletionResult.ok("Later.")

        context = make_context()
        assert CompositeChecker((decorated, later)).check(context) == TaskCompletionResult.ok("Later.")
        assert CompositeChecker((decorated, plain)).check(context) == TaskCompletionResult.incomplete(
            "plain is not met: The moon must be full."
        )
        assert AtLeast(1, (plain, later)).check(context).complete is True
        assert_sentences(Not(plain).check(context).feedback)

    @pytest.mark.parametrize(
        "make", [CompositeChecker, lambda members: AtLeast(1, members)], ids=["composite", "at least"]
    )
    def test_the_members_may_come_from_a_generator_and_stay(self, make: Any) -> None:
        def members() -> Iterator[Member]:
            yield fails("no")

        checker = make(members())
        assert [checker.check(make_context()).complete for _ in range(2)] == [False, False]
        assert len(checker.checkers) == 1

    def test_a_list_that_changes_later_changes_nothing(self) -> None:
        members: list[Any] = [fails("no")]
        checker = CompositeChecker(members)
        members.clear()
        assert checker.check(make_context()).complete is False

    @pytest.mark.parametrize(
        "make", [CompositeChecker, lambda members: AtLeast(1, members)], ids=["composite", "at least"]
    )
    @pytest.mark.parametrize(
        "members",
        [
            None,
            passes(),
            "PlanBasedChecker",
            (None,),
            (passes(), "text"),
            (PlanBasedChecker,),
            (True,),
            b"bytes",
        ],
        ids=lambda value: "" if isinstance(value, str) else repr(value)[:30],
    )
    def test_what_is_no_checker_is_refused_at_once(self, make: Any, members: Any) -> None:
        with pytest.raises(TypeError) as caught:
            make(members)
        assert_sentences(caught.value)

    @pytest.mark.parametrize("member", [None, "text", PlanBasedChecker, 7], ids=repr)
    def test_not_refuses_what_is_no_checker(self, member: Any) -> None:
        with pytest.raises(TypeError):
            Not(member)

    def test_composites_nest(self) -> None:
        plan = PlanBasedChecker(plan_type=Plan)
        nested = CompositeChecker(
            (plan, CompositeChecker((fails("A."), passes("B.")), all_must_pass=False), Not(fails("C.")))
        )
        assert nested.check(make_context()) == TaskCompletionResult.ok(
            "No plan has been created. B. Member is not met, as required."
        )

    def test_every_member_sees_the_same_context(self) -> None:
        seen: list[TaskCompletionContext] = []

        def looks(context: TaskCompletionContext) -> bool:
            seen.append(context)
            return True

        context = make_context(output="x")
        CompositeChecker((looks, AtLeast(1, (looks,)), Not(Not(looks)))).check(context)
        assert len(seen) == 3
        assert all(one is context for one in seen)
