"""Every reason code is explained, and knows whether the check could be made at all."""

from __future__ import annotations

import pytest

from donewhen.protocols import REASONS, Reason, ReasonCode

UNDECIDED = {
    "no_filesystem",
    "command_killed",
    "command_timeout",
    "command_not_found",
    "report_missing",
    "report_unreadable",
    "baseline_unreadable",
    "judge_abstained",
    "judge_unavailable",
    "needs_human",
    "check_timeout",
    "gate_error",
}


def test_every_code_is_explained_and_nothing_else_is():
    assert set(REASONS) == set(ReasonCode)


@pytest.mark.parametrize("code", ReasonCode)
def test_a_code_is_its_name_in_lower_case_and_compares_to_plain_text(code: ReasonCode) -> None:
    assert code == code.name.lower() == str(code)
    assert ReasonCode(code.name.lower()) is code


@pytest.mark.parametrize("code", ReasonCode)
def test_a_reason_is_a_sentence_and_a_next_step_of_one_line_each(code: ReasonCode) -> None:
    reason = REASONS[code]
    assert isinstance(reason, Reason)
    assert reason.meaning[0].isupper()
    assert reason.meaning.endswith(".")
    assert reason.next_step[0].isupper()
    assert reason.meaning != reason.next_step
    for text in reason:
        assert text == " ".join(text.split())


def test_no_two_codes_share_their_explanation():
    assert len({reason.meaning for reason in REASONS.values()}) == len(REASONS)


def test_exactly_the_codes_of_checks_that_could_not_be_made_are_undecided():
    assert {code.value for code in ReasonCode if code.undecided} == UNDECIDED


def test_a_broken_checker_is_an_error_and_unfinished_work_is_not():
    assert {code for code in ReasonCode if code.is_error} == {ReasonCode.GATE_ERROR, ReasonCode.CHECK_TIMEOUT}


def test_a_broken_check_decides_nothing():
    assert all(code.undecided for code in ReasonCode if code.is_error)


def test_an_unknown_code_is_refused():
    with pytest.raises(ValueError, match="all_fine"):
        ReasonCode("all_fine")
