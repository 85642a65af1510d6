"""What can be asked of a ticket's text."""

from __future__ import annotations

import pytest

from donewhen.models.contrast.features import Features
from donewhen.models.contrast.measures import EDGE
from donewhen.models.contrast.rules import (
    ChecklistCondition,
    LengthCondition,
    NumberCondition,
    PhraseCondition,
    SectionCondition,
)
from donewhen.models.contrast.words import join_words, split_words


def features(text: str) -> Features:
    return Features({"text": text})


def test_words_are_lower_case_and_of_normal_width() -> None:
    assert split_words("It DOESN'T work—ＡＢＣ_1, drop-down") == ["it", "doesn't", "work", "abc_1", "drop-down"]


def test_chinese_characters_are_words_of_their_own() -> None:
    assert split_words("没有result了") == ["没", "有", "result", "了"]
    assert join_words(["没", "有", "result", "了", "a", "b"]) == "没有 result 了 a b"


@pytest.mark.parametrize(
    ("phrase", "times"), [("no", 3), ("no no", 1), ("NO", 3), ("now", 1), ("does not", 1), ("not now", 1), ("…", 0)]
)
def test_phrases_are_counted_as_whole_words(phrase: str, times: int) -> None:
    assert features("No, no. It does not, now! no").count(phrase) == times


def test_a_chinese_phrase_is_found_inside_a_sentence() -> None:
    text = features("页面没有显示结果，也没有价格。")
    assert text.count("没有") == 2
    assert text.count("显示结果") == 1


def test_the_start_and_the_end_are_so_many_words() -> None:
    text = features(" ".join(["first", *["word"] * (EDGE - 1), "middle", *["word"] * (EDGE - 1), "last"]))
    assert (text.count("first", "start"), text.count("middle", "start"), text.count("last", "start")) == (1, 0, 0)
    assert (text.count("first", "end"), text.count("middle", "end"), text.count("last", "end")) == (0, 0, 1)
    assert len(text.part("start")) == len(text.part("end")) == EDGE


def test_numbers_are_found_by_their_label_in_the_order_of_the_text() -> None:
    text = features('2. **Score**: 3\nScore = 4.5\n{"total_price": -12}\n得分：7\nscore: 5/5')
    assert text.numbers == {"score": (3.0, 4.5, 5.0), "total_price": (-12.0,), "得分": (7.0,)}


@pytest.mark.parametrize(
    "text", ["date: 2024-05-01", "version: 1.2.3", "id: 12ab", "at: 12:30", "sum: 1,000", "7: 3", f"n: {'1' * 400}"]
)
def test_what_only_begins_like_a_number_is_none(text: str) -> None:
    assert features(text).numbers == {}


def test_headings_are_sections_however_they_are_marked() -> None:
    text = features("# Key Points ##\nx\n\nSCREENSHOT NOTES\ny\n**Patch**:\nz\n【结论】\nNot a heading")
    assert text.sections == {"key points", "screenshot notes", "patch", "结论"}


def test_several_texts_are_sections_by_name_and_one_is_not() -> None:
    assert Features({"Image 1": "a", "Image 2": "b"}).sections == {"image 1", "image 2"}
    assert Features({"Image 1": "a"}).sections == frozenset()


def test_boxes_are_counted_by_their_state() -> None:
    assert features("- [x] a\n* [ ] b\n1. [X] c\nnot [ ] a box").boxes == (2, 1)


def test_blank_lines_do_not_count() -> None:
    assert features("a\n\n  \nb\n").lines == 2


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (PhraseCondition(("alpha", "beta"), amount=3), True),
        (PhraseCondition(("alpha", "beta"), amount=4), False),
        (PhraseCondition(("alpha",), at_least=False, amount=3), True),
        (PhraseCondition(("gamma",), at_least=False), True),
        (PhraseCondition(("alpha",), amount=15, per_hundred=True), True),
        (PhraseCondition(("alpha",), amount=25, per_hundred=True), False),
        (NumberCondition("score", "last", at_least=False, threshold=2), True),
        (NumberCondition("score", "first", at_least=True, threshold=4), True),
        (NumberCondition("score", "highest", at_least=True, threshold=5), True),
        (NumberCondition("score", "lowest", at_least=False, threshold=2), True),
        (NumberCondition("score", "mean", at_least=True, threshold=3.4), False),
        (NumberCondition("price", "last", at_least=True, threshold=0), False),
        (NumberCondition("price", "last", at_least=False, threshold=0), False),
        (SectionCondition("notes", present=True), True),
        (SectionCondition("tests", present=False), True),
        (ChecklistCondition(checked=False), True),
        (ChecklistCondition(checked=True), False),
        (LengthCondition("words", at_least=True, amount=12), True),
        (LengthCondition("lines", at_least=False, amount=6), False),
        (LengthCondition("sections", at_least=True, amount=2), False),
    ],
)
def test_conditions_hold_or_do_not(
    condition: PhraseCondition | NumberCondition | SectionCondition | ChecklistCondition | LengthCondition, holds: bool
) -> None:
    text = features("# Notes\nalpha beta alpha\nscore: 4\nscore: 5\nscore: 1\n- [x] a\n- [ ] b")
    assert condition.holds(text) is holds


def test_a_text_without_boxes_has_not_checked_them_all() -> None:
    assert not ChecklistCondition(checked=True).holds(features("nothing"))
    assert ChecklistCondition(checked=True).holds(features("- [x] done"))


def test_an_empty_ticket_can_be_asked_anything() -> None:
    nothing = Features({})
    assert nothing.count("a") == 0
    assert not PhraseCondition(("a",), per_hundred=True).holds(nothing)
    assert nothing.part("end") == []
