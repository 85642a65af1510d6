"""Functions as checkers."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Any

import pytest

from donewhen.completion import (
    CallableChecker,
    PlanBasedChecker,
    ReasonCode,
    TaskCompletionChecker,
    TaskCompletionContext,
    TaskCompletionResult,
    as_checker,
    checker,
    run_check,
)
from donewhen.testing import make_context
from sentences import assert_sentences


@checker
def changelog_is_written(context: TaskCompletionContext) -> bool:
    """CHANGELOG.md has an entry.

    More about it.
    """
    return context.tentative_output == "written"


def test_a_decorated_function_is_a_checker_with_its_name() -> None:
    assert isinstance(changelog_is_written, TaskCompletionChecker)
    assert isinstance(changelog_is_written, CallableChecker)
    assert changelog_is_written.name == "changelog_is_written"
    assert repr(changelog_is_written) == "<checker changelog_is_written>"


def test_true_is_complete_without_feedback() -> None:
    assert changelog_is_written.check(make_context(output="written")) == TaskCompletionResult.ok()


def test_false_is_incomplete_with_the_first_line_of_the_docstring() -> None:
    assert changelog_is_written.check(make_context()) == TaskCompletionResult.incomplete(
        "changelog_is_written is not met: CHANGELOG.md has an entry."
    )


def test_false_without_a_docstring_names_the_function() -> None:
    def undocumented(context: TaskCompletionContext) -> bool:
        return False

    result = checker(undocumented).check(make_context())
    assert (result.complete, result.code) == (False, None)
    assert_sentences(result.feedback)


def test_a_function_can_still_be_called_as_it_is() -> None:
    assert changelog_is_written(make_context(output="written")) is True
    assert changelog_is_written(make_context()) is False


def test_a_result_of_the_function_comes_back_unchanged() -> None:
    result = TaskCompletionResult.incomplete("Mine.", code=ReasonCode.TESTS_FAILED)
    assert checker(lambda context: result).check(make_context()) is result


def test_an_async_function_is_awaited_by_run_check() -> None:
    @checker
    async def later(context: TaskCompletionContext) -> bool:
        """It takes a while."""
        await asyncio.sleep(0)
        return bool(context.tentative_output)

    assert run_check(later, make_context(output="x")) == TaskCompletionResult.ok()
    assert run_check(later, make_context()) == TaskCompletionResult.incomplete("later is not met: It takes a while.")


def test_an_async_function_with_a_result_hands_it_through() -> None:
    result = TaskCompletionResult.ok("Fine.")

    async def later(context: TaskCompletionContext) -> TaskCompletionResult:
        return result

    assert run_check(checker(later), make_context()) is result


@pytest.mark.parametrize("answer", [None, 1, 0, "yes", "", [], (True, "x")], ids=repr)
@pytest.mark.parametrize("is_async", [False, True])
def test_any_other_answer_is_a_gate_error_and_never_a_pass(answer: Any, is_async: bool) -> None:
    def plain(context: TaskCompletionContext) -> Any:
        return answer

    async def later(context: TaskCompletionContext) -> Any:
        return answer

    result = run_check(checker(later if is_async else plain), make_context())
    assert result.complete is False
    assert result.code is ReasonCode.GATE_ERROR


def test_a_name_can_be_given() -> None:
    named = CallableChecker(lambda context: False, name="no open questions")
    assert named.check(make_context()).feedback == "no open questions is not met."


def test_a_callable_object_is_called_by_its_class() -> None:
    class Ready:
        """Everything is ready."""

        def __call__(self, context: TaskCompletionContext) -> bool:
            return False

    assert CallableChecker(Ready()).check(make_context()).feedback == "Ready is not met: Everything is ready."


def test_what_can_not_be_called_is_refused() -> None:
    with pytest.raises(TypeError) as caught:
        CallableChecker("text")  # type: ignore[arg-type]
    assert_sentences(caught.value)


class TestAsChecker:
    def test_a_checker_stays_itself(self) -> None:
        mine = PlanBasedChecker()
        assert as_checker(mine) is mine
        assert as_checker(changelog_is_written) is changelog_is_written

    def test_a_checker_that_can_also_be_called_stays_itself(self) -> None:
        class Both:
            def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
                return TaskCompletionResult.ok("check")

            def __call__(self, context: TaskCompletionContext) -> bool:
                return False

        both = Both()
        assert as_checker(both) is both

    def test_a_function_is_wrapped(self) -> None:
        def ready(context: TaskCompletionContext) -> bool:
            return False

        wrapped = as_checker(ready)
        assert isinstance(wrapped, CallableChecker)
        assert wrapped.name == "ready"

    def test_a_bound_method_and_a_partial_are_wrapped(self) -> None:
        class Team:
            def agrees(self, context: TaskCompletionContext) -> bool:
                return False

        def needs(word: str, context: TaskCompletionContext) -> bool:
            return word == context.tentative_output

        assert_sentences(as_checker(Team().agrees).check(make_context()).feedback)
        assert as_checker(functools.partial(needs, "x")).check(make_context(output="x")).complete is True
        assert as_checker(functools.partial(needs, "x")).check(make_context(output="y")).complete is False

    def test_an_object_whose_check_is_no_method_is_not_a_checker(self) -> None:
        class Flag:
            check = True

        with pytest.raises(TypeError) as caught:
            as_checker(Flag())
        assert_sentences(caught.value)

    @pytest.mark.parametrize("one", [PlanBasedChecker, dict, type], ids=lambda one: one.__name__)
    def test_a_class_is_refused_with_the_hint_to_make_an_instance(self, one: type) -> None:
        with pytest.raises(TypeError) as caught:
            as_checker(one)
        assert str(one.__name__) in str(caught.value)
        assert_sentences(caught.value)

    @pytest.mark.parametrize("one", [None, True, "text", 7, ()], ids=repr)
    def test_anything_else_is_refused(self, one: object) -> None:
        with pytest.raises(TypeError) as caught:
            as_checker(one)
        assert_sentences(caught.value)


def test_the_docstring_of_the_function_is_that_of_the_checker() -> None:
    assert inspect.getdoc(changelog_is_written) == "CHANGELOG.md has an entry.\n\nMore about it."
