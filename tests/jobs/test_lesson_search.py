"""Which lessons are found, in which order, and why."""

from __future__ import annotations

from donewhen.jobs.lessons.lesson_file import Lesson
from donewhen.jobs.lessons.lesson_search import LessonQuery, query_words, rank_lessons
from sentences import assert_sentences


def lesson(number: int, text: str = "nothing in common", **values: object) -> Lesson:
    return Lesson(f"LL-20260214-{number:03d}", context=text, line=number, **values)  # type: ignore[arg-type]


def names(lessons: list[Lesson], query: LessonQuery, used: dict[str, int] | None = None) -> list[int]:
    return [int(lesson.lesson.id[-3:]) for lesson in rank_lessons(lessons, query, used or {})]


def asking(text: str, **values: object) -> LessonQuery:
    return LessonQuery(query_words(text), **values)  # type: ignore[arg-type]


FILLER = [lesson(number, f"filler{number} text") for number in range(100, 140)]


def test_the_words_of_a_question_are_those_that_tell_texts_apart() -> None:
    assert query_words("How do I parse the logs of a shop? Parse them!", "log") == ("parse", "log", "shop")
    assert query_words("the a of I x") == ()
    assert query_words("日志") == ("日", "志")


def test_what_shares_no_word_is_not_found() -> None:
    assert rank_lessons([], asking("parser"), {}) == []
    assert names([lesson(1), lesson(2, "the parser")], asking("parsers")) == [2]


def test_a_part_of_a_word_is_not_the_word() -> None:
    assert names([lesson(1, "catalog entries")], asking("log")) == []


def test_more_words_rare_words_and_short_texts_come_first() -> None:
    lessons = [
        lesson(1, "parser and newline"),
        lesson(2, "parser"),
        lesson(3, "newline"),
        lesson(4, "newline"),
        lesson(5, "parser " + "and much more of other things " * 20),
        *FILLER,
    ]
    assert names(lessons, asking("parser newline")) == [1, 4, 3, 2, 5]
    rare = [lesson(1, "common"), lesson(2, "rare"), *(lesson(number, "common") for number in range(3, 9))]
    assert names(rare, asking("common rare"))[0] == 2


def test_every_field_and_the_title_are_looked_through() -> None:
    for field in ("title", "worked", "failed", "recommendation"):
        assert names([lesson(1, **{field: "the parser"})], asking("parser")) == [1]


def test_other_scripts_are_found_too() -> None:
    assert names([lesson(1, "日志没有换行"), lesson(2, "Der Zähler läuft")], asking("换行")) == [1]
    assert names([lesson(1, "日志没有换行"), lesson(2, "Der ZÄHLER läuft")], asking("zähler")) == [2]


def test_each_is_explained() -> None:
    lessons = [lesson(1, "the parser and the newline", tags=("Parsing",), linked=("WI-1",)), *FILLER]
    query = asking("parser newline", tags=frozenset({"parsing"}), upstream=frozenset({"WI-1"}))
    (found,) = rank_lessons(lessons, query, {"LL-20260214-001": 2})
    assert_sentences(found.reasons)


def test_its_own_job_comes_before_what_it_builds_on_and_that_before_its_workstream() -> None:
    query = LessonQuery(itself="WI-1", upstream=frozenset({"WI-2"}), workstream=frozenset({"WS-1", "WI-3"}))
    lessons = [lesson(number, linked=(name,)) for number, name in enumerate(("WS-1", "WI-2", "WI-1", "WI-4"), 1)]
    found = rank_lessons(lessons, query, {})
    assert [item.lesson.linked[0] for item in found] == ["WI-1", "WI-2", "WS-1"]
    assert_sentences([item.reasons[0] for item in found])
    assert [item.relevant for item in found] == [True, True, False]


def test_a_lesson_that_linked_to_nothing_is_not_linked_to_a_job_without_a_name() -> None:
    assert rank_lessons([lesson(1, linked=("",))], asking("parser"), {}) == []


def test_tags_count_whatever_their_case() -> None:
    lessons = [lesson(1, tags=("Parsing",)), lesson(2, tags=("other",))]
    assert names(lessons, LessonQuery(tags=frozenset({"parsing"}))) == [1]


def test_what_others_used_comes_first_among_equals_but_is_not_found_by_that_alone() -> None:
    lessons = [lesson(1, "parser"), lesson(2, "parser"), lesson(3)]
    assert names(lessons, asking("parser"), {"LL-20260214-001": 1, "LL-20260214-003": 9}) == [1, 2]


def test_among_equals_the_newest_comes_first_wherever_it_stands() -> None:
    lessons = [lesson(3, "parser"), lesson(1, "parser"), lesson(2, "parser")]
    assert names(lessons, asking("parser")) == [3, 2, 1]
    assert names(lessons[::-1], asking("parser")) == [3, 2, 1]


def test_one_word_in_common_is_found_but_not_enough_to_be_given() -> None:
    lessons = [lesson(1, "parser"), lesson(2, "parser newline"), lesson(3, tags=("parser",)), *FILLER]
    query = asking("parser newline", tags=frozenset({"parser"}))
    assert {lesson.lesson.id[-1]: lesson.relevant for lesson in rank_lessons(lessons, query, {})} == {
        "1": False,
        "2": True,
        "3": True,
    }


def test_within_a_workstream_one_word_in_common_is_enough() -> None:
    lessons = [lesson(1, "parser", linked=("WS-1",)), *FILLER]
    (found,) = rank_lessons(lessons, asking("parser", workstream=frozenset({"WS-1"})), {})
    assert found.relevant


def test_words_and_tags_that_every_lesson_has_do_not_make_one_relevant() -> None:
    common = [lesson(number, "test file", tags=("work",)) for number in range(1, 31)]
    assert not any(
        lesson.relevant for lesson in rank_lessons(common, asking("test file", tags=frozenset({"work"})), {})
    )
    few = common[:5]
    assert all(lesson.relevant for lesson in rank_lessons(few, asking("test file"), {}))
