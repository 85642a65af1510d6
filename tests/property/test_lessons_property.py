"""Any lesson: written and read, it says the same; and no text can be more in a plan than a text."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from donewhen.jobs.lessons.lesson_file import Lesson, one_paragraph, parse_lessons, render_lesson
from donewhen.jobs.lessons.lesson_recording import _append_block
from donewhen.jobs.lessons.lesson_search import LessonMatch, LessonQuery, query_words, rank_lessons
from donewhen.jobs.lessons.lesson_suggestions import HEADING, with_lessons
from donewhen.jobs.plan.criteria import find_section, markdown_sections
from donewhen.jobs.plan.document import parse_document as parse_plan
from donewhen.jobs.plan.job import read_job
from donewhen.jobs.plan.templates import job_plan
from donewhen_kit import examples

QUICK = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

PIECES = (
    "## ", "# Acceptance Criteria", "\n", "\r\n", "\n\n", "- AC-9: x", "  check: run true", "---", "<!--", "-->", "```",
    "~~~", "**What worked:**", "Context:", "- Linked: WI-9", "## LL-20260101-001", "LL-2", "> ", "\u2028", "\x85",
    "\x0b", "\t", "é", "日", "<promise>", "&lt;", "\\", "word", " ", "*", "\u202e", "\ud800", "[x]", "status: done",
)  # fmt: skip
TEXT = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=8).map("".join)
SAID = TEXT.map(one_paragraph)


def lessons_with(text: st.SearchStrategy[str]) -> st.SearchStrategy[Lesson]:
    return st.builds(
        lambda number, tags, said: Lesson(
            f"LL-20260214-{number:03d}", "", tags, ("WI-1",), "2026-02-14T00:00:00Z", *said
        ),
        st.integers(1, 2000),
        st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), max_size=3, unique=True).map(tuple),
        st.tuples(text, text, text, text),
    )


@QUICK
@given(st.lists(lessons_with(SAID), min_size=1, max_size=4))
def test_what_is_written_is_read_again_and_nothing_else_is(lessons: list[Lesson]) -> None:
    raw = b""
    for lesson in lessons:
        raw = _append_block(raw, render_lesson(lesson))
    again = parse_lessons(raw.decode())
    assert [(lesson.id, lesson.tags, lesson.linked, lesson.texts, lesson.hash) for lesson in again] == [
        (lesson.id, lesson.tags, lesson.linked, lesson.texts, lesson.hash) for lesson in lessons
    ]


@QUICK
@given(TEXT)
def test_one_paragraph_is_one_line_that_stays_as_it_is(text: str) -> None:
    once = one_paragraph(text)
    assert len(once.splitlines()) <= 1
    assert "<!--" not in once
    assert one_paragraph(once) == once
    once.encode()


@QUICK
@given(st.binary(max_size=200), lessons_with(SAID))
def test_whatever_stands_in_the_file_stays_and_the_new_lesson_is_read(before: bytes, lesson: Lesson) -> None:
    after = _append_block(before, render_lesson(lesson))
    assert after.startswith(before)
    last = parse_lessons(after.decode("utf-8", "replace"))[-1]
    assert (last.id, last.texts) == (lesson.id, lesson.texts)


@QUICK
@given(TEXT, st.text(max_size=60))
def test_any_text_is_read_without_an_error(text: str, more: str) -> None:
    for lesson in parse_lessons((text + more).encode("utf-8", "replace").decode()):
        assert lesson.id.startswith("LL-")
        assert lesson.hash.startswith("sha256:")


@QUICK
@given(lessons_with(TEXT), TEXT, st.sampled_from(["", "\nTBD\n", "\nAsk Ada.\n"]), st.booleans())
def test_no_text_of_a_lesson_becomes_a_part_of_the_plan(lesson: Lesson, reason: str, inside: str, last: bool) -> None:
    raw = job_plan("WI-20260214-001", "Parser", "2026-02-14T00:00:00Z", criteria=["It is there."]).decode()
    raw += inside + ("" if last else "\n## Decisions\n\nKept.\n")
    path = Path("jobs/WI-20260214-001-parser/plan.md")
    before = read_job(parse_plan(raw.encode(), "plan.md"), path, "plan.md")
    body = with_lessons(before.document.body, [LessonMatch(lesson, 1.0, (reason,), relevant=True)])
    text = before.document.text[: before.document.body_start] + body
    after = read_job(parse_plan(text.encode(), "plan.md"), path, "plan.md")
    assert after.document.fields == before.document.fields
    assert after.criteria == before.criteria
    assert [(one.title, one.level) for one in markdown_sections(after.document.body)] == [
        (one.title, one.level) for one in markdown_sections(before.document.body)
    ]
    section = find_section(body, HEADING)
    assert section is not None
    assert lesson.id in section.text
    assert "Ask Ada." in section.text or "Ada" not in inside
    assert "<!--" not in section.text
    assert "<promise>" not in section.text
    if not last:
        assert body.endswith("\n## Decisions\n\nKept.\n")
    # Once there, it is not added again.
    assert with_lessons(body, [LessonMatch(lesson, 1.0, (reason,), relevant=True)]) == body


@QUICK
@given(st.lists(lessons_with(SAID), max_size=6), TEXT, st.randoms())
def test_the_order_depends_on_what_lessons_say_and_not_on_where_they_stand(
    lessons: list[Lesson], question: str, random: object
) -> None:
    distinct = list({lesson.id: lesson for lesson in lessons}.values())
    query = LessonQuery(query_words(question), frozenset({"a"}))
    first = rank_lessons(distinct, query, {})
    shuffled = sorted(distinct, key=lambda one: one.hash)
    assert [lesson.lesson.id for lesson in rank_lessons(shuffled, query, {})] == [one.lesson.id for one in first]
    assert all(one.reasons for one in first)
    assert [one.score for one in first] == sorted((one.score for one in first), reverse=True)
