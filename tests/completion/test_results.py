"""Results, contexts and the checker protocol."""

from __future__ import annotations

import dataclasses

import pytest

from donewhen.completion import (
    REASONS,
    CompletionReport,
    PlanBasedChecker,
    ReasonCode,
    TaskCompletionChecker,
    TaskCompletionContext,
    TaskCompletionResult,
    run_check,
)
from donewhen.runtime import Session
from donewhen.testing import make_context
from sentences import assert_sentences


def test_ok_is_complete_with_or_without_feedback() -> None:
    assert TaskCompletionResult.ok() == TaskCompletionResult(complete=True, feedback=None, code=None)
    assert TaskCompletionResult.ok("Fine.") == TaskCompletionResult(complete=True, feedback="Fine.")


def test_incomplete_carries_the_feedback_and_a_code_if_there_is_one() -> None:
    assert TaskCompletionResult.incomplete("Go on.") == TaskCompletionResult(complete=False, feedback="Go on.")
    coded = TaskCompletionResult.incomplete("Go on.", code=ReasonCode.TESTS_FAILED)
    assert (coded.complete, coded.feedback, coded.code) == (False, "Go on.", ReasonCode.TESTS_FAILED)


@pytest.mark.parametrize("field", ["complete", "feedback", "code"])
def test_assigning_to_a_result_raises_attribute_error(field: str) -> None:
    result = TaskCompletionResult.incomplete("Go on.")
    with pytest.raises(AttributeError):
        setattr(result, field, True)
    assert result == TaskCompletionResult.incomplete("Go on.")


@pytest.mark.parametrize("complete", [1, 0, None, "yes", "", [], object(), TaskCompletionResult.ok])
def test_a_result_refuses_a_complete_that_is_not_a_bool(complete: object) -> None:
    with pytest.raises(TypeError) as caught:
        TaskCompletionResult(complete=complete)  # type: ignore[arg-type]
    assert str(type(complete).__name__) in str(caught.value)
    assert_sentences(caught.value)


@pytest.mark.parametrize("feedback", [1, b"bytes", ("a",), True])
def test_a_result_refuses_feedback_that_is_not_text(feedback: object) -> None:
    with pytest.raises(TypeError) as caught:
        TaskCompletionResult(complete=False, feedback=feedback)  # type: ignore[arg-type]
    assert str(type(feedback).__name__) in str(caught.value)
    assert_sentences(caught.value)


@pytest.mark.parametrize("result", [TaskCompletionResult.ok(), TaskCompletionResult.incomplete("no")])
def test_a_result_is_neither_true_nor_false(result: TaskCompletionResult) -> None:
    for ask in (lambda: bool(result), lambda: not result, lambda: result and 1, lambda: result or 1):
        with pytest.raises(TypeError) as caught:
            ask()
        assert_sentences(caught.value)
    with pytest.raises(TypeError) as caught:
        all([result])
    assert_sentences(caught.value)


@pytest.mark.parametrize("code", ["nonsense", 7, True])
def test_a_result_refuses_a_code_that_is_not_in_the_closed_set(code: object) -> None:
    with pytest.raises((TypeError, ValueError), match="code"):
        TaskCompletionResult(complete=False, feedback="x", code=code)  # type: ignore[arg-type]


def test_a_checker_that_invents_a_code_is_a_gate_error_and_not_a_crash() -> None:
    class Inventive:
        def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
            return TaskCompletionResult.incomplete("Go on.", code="my_code")  # type: ignore[arg-type]

    assert run_check(Inventive(), make_context()).code is ReasonCode.GATE_ERROR


def test_a_context_needs_a_session_only() -> None:
    session = Session()
    context = TaskCompletionContext(session=session)
    assert context.session is session
    assert context.tentative_output is None
    assert context.filesystem is None
    assert context.adapter is None
    assert context.stop_reason is None


def test_a_context_has_slots_and_can_be_changed() -> None:
    context = TaskCompletionContext(session=Session())
    context.tentative_output = {"a": 1}
    assert context.tentative_output == {"a": 1}
    with pytest.raises(AttributeError):
        context.surprise = 1  # type: ignore[attr-defined]


def test_anything_with_a_check_is_a_checker() -> None:
    class Mine:
        def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
            return TaskCompletionResult.ok()

    class Unrelated:
        def verify(self) -> None: ...

    assert isinstance(Mine(), TaskCompletionChecker)
    assert isinstance(PlanBasedChecker(), TaskCompletionChecker)
    assert not isinstance(Unrelated(), TaskCompletionChecker)
    assert not isinstance("check", TaskCompletionChecker)


def test_every_reason_code_has_a_meaning_and_a_next_step() -> None:
    assert REASONS.keys() == set(ReasonCode)
    for code, reason in REASONS.items():
        assert code == code.value == code.name.lower()
        for sentence in reason:
            assert sentence[0].isupper()
            assert len(sentence.split()) >= 3


def test_a_broken_check_is_an_error_and_an_impossible_one_is_undecided() -> None:
    assert {code for code in ReasonCode if code.is_error} == {ReasonCode.GATE_ERROR, ReasonCode.CHECK_TIMEOUT}
    assert {code for code in ReasonCode if code.undecided} == {
        ReasonCode.NO_FILESYSTEM,
        ReasonCode.COMMAND_KILLED,
        ReasonCode.COMMAND_TIMEOUT,
        ReasonCode.COMMAND_NOT_FOUND,
        ReasonCode.REPORT_MISSING,
        ReasonCode.REPORT_UNREADABLE,
        ReasonCode.BASELINE_UNREADABLE,
        ReasonCode.JUDGE_ABSTAINED,
        ReasonCode.JUDGE_UNAVAILABLE,
        ReasonCode.NEEDS_HUMAN,
        ReasonCode.CHECK_TIMEOUT,
        ReasonCode.GATE_ERROR,
    }


def test_only_a_verified_report_says_that_it_is_verified() -> None:
    assert CompletionReport("verified", 1).verified is True
    for status in ("incomplete", "bypassed", "capped", "errored"):
        assert CompletionReport(status, 1).verified is False
    with pytest.raises(dataclasses.FrozenInstanceError):
        CompletionReport("capped", 1).status = "verified"  # type: ignore[misc]
