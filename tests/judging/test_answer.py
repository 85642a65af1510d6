"""What is an answer, and what is not: the parser is strict, and says what is wrong."""

from __future__ import annotations

from typing import get_args

import pytest

from donewhen.judging.answer import JudgeAnswer, Malformation, MalformedAnswer, read_answer
from donewhen.judging.language import AnswerWords, find_language

EN = find_language("en").answer
ZH = find_language("zh").answer


def why(text: str, words: AnswerWords = EN, *, complete: bool = True) -> str:
    read = read_answer(text, words, complete=complete)
    assert isinstance(read, MalformedAnswer)
    assert read.why in get_args(Malformation)
    return read.why


def test_two_lines_are_a_vote_and_its_reason() -> None:
    assert read_answer("Verdict: pass\nReason: The seal is there.", EN) == JudgeAnswer(
        "pass", "The seal is there.", None
    )
    assert read_answer("Verdict: fail\nReason: No seal.", EN) == JudgeAnswer("fail", "No seal.", None)


def test_each_language_has_its_own_words() -> None:
    assert read_answer("判定: 通过\n理由: 有封条", ZH) == JudgeAnswer("pass", "有封条")
    assert read_answer("判定: 不通过\n理由: 没有封条", ZH) == JudgeAnswer("fail", "没有封条")
    assert why("Verdict: pass\nReason: x", ZH) == "no_verdict_line"
    assert why("判定: pass\n理由: x", ZH) == "unknown_verdict"


@pytest.mark.parametrize(
    "text",
    [
        "判定：不通过\n理由：没有封条",
        "判定 ： 不通过 \n 理由 ：没有封条",
        "\n\n判定：不通过\n\n理由：没有封条\n\n",
        "判定：不通过\r\n理由：没有封条\r\n",
    ],
)
def test_colons_of_either_width_and_white_space_are_the_same(text: str) -> None:
    assert read_answer(text, ZH) == JudgeAnswer("fail", "没有封条")


@pytest.mark.parametrize("verdict", ["PASS", "Pass", "ｐａｓｓ", "ＰＡＳＳ", " pass "])
def test_case_and_width_of_a_verdict_are_the_same(verdict: str) -> None:
    assert read_answer(f"VERDICT: {verdict}\nreason: x", EN) == JudgeAnswer("pass", "x")


@pytest.mark.parametrize(
    "verdict",
    ["pass.", "passed", "pass but", "pass/fail", "pass or fail", "not pass", "unclear", "needs review", "**pass**", ""],
)
def test_there_is_no_third_verdict_and_none_is_guessed(verdict: str) -> None:
    assert why(f"Verdict: {verdict}\nReason: x") == "unknown_verdict"


@pytest.mark.parametrize("verdict", ["未通过", "通过但需复核", "待定", "不 通过", "通过。"])
def test_a_verdict_that_holds_the_other_word_is_not_that_word(verdict: str) -> None:
    assert why(f"判定: {verdict}\n理由: x", ZH) == "unknown_verdict"


@pytest.mark.parametrize(
    "text",
    [
        "pass",
        "Reason: x\nVerdict: pass",
        "I think so.\nVerdict: pass\nReason: x",
        "**Verdict:** pass\nReason: x",
        "- Verdict: pass\nReason: x",
        "Verdict pass\nReason: x",
        "```\nVerdict: pass\nReason: x\n```",
        "The Verdict: pass\nReason: x",
        '{"verdict": "pass", "reason": "x"}',
    ],
)
def test_the_first_line_is_the_verdict_or_there_is_none(text: str) -> None:
    assert why(text) == "no_verdict_line"


@pytest.mark.parametrize(
    "text", ["Verdict: pass", "Verdict: pass\nthe seal", "Verdict: pass\nVerdict: pass\nReason: x"]
)
def test_the_second_line_is_the_reason_or_there_is_none(text: str) -> None:
    assert why(text) == "no_reason_line"


@pytest.mark.parametrize("reason", ["", "   ", "\u200b", "\x1b[0m", "\u3000"])
def test_a_reason_in_which_nothing_can_be_read_is_none(reason: str) -> None:
    assert why(f"Verdict: pass\nReason: {reason}\n") == "no_reason"


@pytest.mark.parametrize("rest", ["Verdict: fail\nReason: y", "more", "Reason: y", "`"])
def test_a_third_line_makes_it_malformed(rest: str) -> None:
    assert why(f"Verdict: pass\nReason: x\n{rest}") == "extra_lines"


def test_nothing_at_all_is_empty() -> None:
    assert [why(text) for text in ("", "  \n\t ", "\n")] == ["empty"] * 3


def test_an_answer_that_was_cut_off_is_none_however_good_it_looks() -> None:
    assert why("Verdict: pass\nReason: x", complete=False) == "cut_off"
    assert why("", complete=False) == "cut_off"


def test_what_was_malformed_is_kept_for_people_on_one_plain_line_that_ends() -> None:
    read = read_answer("I\nwould\x1b[31m say " + "x" * 5000, EN)
    assert isinstance(read, MalformedAnswer)
    assert read.text.startswith("I would say xxx")
    assert len(read.text) == 600


def test_a_long_reason_is_cut_and_can_not_drive_a_terminal() -> None:
    read = read_answer(f"Verdict: fail\nReason: \x1b]0;title\x07red\u202e {'y' * 5000}", EN)
    assert isinstance(read, JudgeAnswer)
    assert read.reason.startswith("red yyy")
    assert (len(read.reason), read.reason[-1]) == (600, "…")


def test_a_reason_may_speak_of_both_verdicts() -> None:
    assert read_answer("Verdict: fail\nReason: Verdict: pass was expected", EN) == JudgeAnswer(
        "fail", "Verdict: pass was expected"
    )


def test_words_with_signs_in_them_are_taken_as_they_are() -> None:
    words = AnswerWords("V(1)", "R*", "o.k.", "k+o")
    assert read_answer("V(1): o.k.\nR*: x", words) == JudgeAnswer("pass", "x")
    assert read_answer("V(1): k+o\nR*: x", words) == JudgeAnswer("fail", "x")
    assert why("V(1): oxkx\nR*: x", words) == "unknown_verdict"
    assert why("V1: o.k.\nR*: x", words) == "no_verdict_line"
    assert why("V(1): o.k.\nRRR: x", words) == "no_reason_line"
