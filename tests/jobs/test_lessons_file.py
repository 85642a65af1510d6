"""The file of lessons: read in any hand's form, and written in one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from donewhen.jobs.lessons.lesson_file import (
    Lesson,
    LessonError,
    find_same_lesson,
    lessons_path,
    one_paragraph,
    parse_lessons,
    read_lessons,
    render_lesson,
    words_in,
)
from donewhen.jobs.plan.creating import create_project
from sentences import assert_sentences

OTHER_TOOL = """\
# Lessons Learned

## LL-20260214-001
- Applies to: planning, verification
- Linked: WI-20260214-001, WS-20260214-001
- Captured at: 2026-02-14T00:00:00Z

**Context:** The log had no newline at its end,
so the last order was lost.

**What worked:** Reading to the end.

**What failed:** 

**Recommendation:** Test without a newline.

## LL-20260214-002
- Applies to: 
- Linked: 
- Captured at: 2026-02-14T01:00:00Z

**Context:** Another.

**What worked:** This.

**What failed:** That.

**Recommendation:** More of it.
"""  # noqa: W291


def test_a_file_of_the_other_tool_is_read_as_it_is() -> None:
    first, second = parse_lessons(OTHER_TOOL)
    assert (first.id, first.tags, first.linked, first.captured_at, first.line) == (
        "LL-20260214-001",
        ("planning", "verification"),
        ("WI-20260214-001", "WS-20260214-001"),
        "2026-02-14T00:00:00Z",
        3,
    )
    assert first.texts == (
        "The log had no newline at its end, so the last order was lost.",
        "Reading to the end.",
        "",
        "Test without a newline.",
    )
    assert (second.id, second.tags, second.linked, second.line) == ("LL-20260214-002", (), (), 17)
    assert first.substantive
    assert second.texts == ("Another.", "This.", "That.", "More of it.")


def test_line_ends_of_every_kind_read_the_same() -> None:
    for end in ("\r\n", "\r"):
        assert [lesson.texts for lesson in parse_lessons(OTHER_TOOL.replace("\n", end))] == [
            lesson.texts for lesson in parse_lessons(OTHER_TOOL)
        ]


def test_a_heading_may_have_a_title_and_a_field_may_be_a_list_item() -> None:
    (one,) = parse_lessons("### LL-1: Prices need a currency\n\n* Context: Two shops.\n- **What worked:** A column.\n")
    assert (one.id, one.title, one.context, one.worked) == ("LL-1", "Prices need a currency", "Two shops.", "A column.")


def test_the_first_of_two_fields_with_one_name_counts_and_a_heading_ends_a_field() -> None:
    (one,) = parse_lessons("## LL-1\nContext: first\nContext: second\nWhat worked: this\n### Notes\nnot a part of it\n")
    assert (one.context, one.worked) == ("first", "this")


def test_the_snippet_is_the_first_lines_on_one() -> None:
    first, _ = parse_lessons(OTHER_TOOL)
    assert first.snippet == (
        "## LL-20260214-001 - Applies to: planning, verification - Linked: WI-20260214-001, WS-20260214-001 - "
        "Captured at: 2026-02-14T00:00:00Z **Context:** The log had no newline at its end, so the last order was lost. "
        "**What worked:** Reading to the end. **What failed:**"
    )


def test_what_is_written_reads_the_same_again() -> None:
    lesson = Lesson("LL-20260214-001", "", ("a", "b"), ("WI-1",), "2026-02-14T00:00:00Z", "one", "two", "", "four")
    (again,) = parse_lessons(render_lesson(lesson))
    assert (again.id, again.tags, again.linked, again.captured_at) == (
        lesson.id,
        lesson.tags,
        lesson.linked,
        lesson.captured_at,
    )
    assert (again.texts, again.hash) == (lesson.texts, lesson.hash)


def test_the_hash_is_of_what_it_says_and_not_of_tags_and_links() -> None:
    lesson = Lesson("LL-1", context="one", worked="two", recommendation="three")
    assert lesson.hash == Lesson("LL-1", tags=("x",), linked=("WI-1",), text="…", context="one", worked="two",
                                 recommendation="three").hash  # fmt: skip
    for changed in (
        Lesson("LL-2", context="one", worked="two", recommendation="three"),
        Lesson("LL-1", title="t", context="one", worked="two", recommendation="three"),
        Lesson("LL-1", context="one", worked="two", failed="x", recommendation="three"),
        Lesson("LL-1", context="two", worked="one", recommendation="three"),
    ):
        assert changed.hash != lesson.hash


@pytest.mark.parametrize("field", ["context", "worked", "recommendation"])
def test_a_lesson_has_to_say_what_happened_what_worked_and_what_to_do(field: str) -> None:
    said = {"context": "one thing", "worked": "two things", "recommendation": "three things"}
    assert Lesson("LL-1", **said).substantive
    assert not Lesson("LL-1", **said | {field: "TBD"}).substantive
    assert not Lesson("LL-1", **said | {field: "TBD"}).is_empty
    assert Lesson("LL-1", context="x", worked="", recommendation="n/a").is_empty


def test_words_are_found_in_any_script_and_in_any_width() -> None:
    assert words_in("Parse_log: ＡＢＣ, naïve Straße 日本") == [
        "parse", "log", "abc", "naïve", "strasse", "日", "本",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two\n\n## lines", "two ## lines"),
        ("a <!-- b", "a <! -- b"),
        ("a <!<!---- b", "a <!<! ---- b"),
        ("\x1b[31mred\x1b[0m\u202e", "red"),
    ],
)
def test_a_text_becomes_one_line_that_hides_nothing(text: str, expected: str) -> None:
    assert one_paragraph(text) == expected


def test_a_copy_is_found_whatever_its_case_and_punctuation() -> None:
    first = Lesson("LL-1", context="Read the LAST line.", worked="it", recommendation="again")
    second = Lesson("LL-2", context="read the last line", worked="It!", recommendation="again…")
    assert find_same_lesson(second, [first]) is first
    assert (
        find_same_lesson(Lesson("LL-3", context="read the last line", worked="It", recommendation="twice"), [first])
        is None
    )
    wide = Lesson("LL-4", context="Ｒｅａｄ the last line", worked="it", recommendation="again")
    assert find_same_lesson(first, [wide]) is wide


def test_the_newest_is_the_one_with_the_highest_number_of_the_latest_day() -> None:
    names = ["LL-20260214-999", "LL-20260214-1000", "LL-20260101-001", "LL-old"]
    lessons = [Lesson(name, line=place) for place, name in enumerate(names)]
    newest = sorted(lessons, key=lambda lesson: lesson.age, reverse=True)
    assert [item.id for item in newest] == ["LL-20260214-1000", "LL-20260214-999", "LL-20260101-001", "LL-old"]


def test_no_file_is_no_lesson_and_bytes_that_are_no_text_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Demo")
    assert read_lessons(workspace) == ()
    path = lessons_path(workspace)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\xff\xfe\n## LL-1\nContext: caf\xe9 one\n")
    assert [lesson.context for lesson in read_lessons(workspace)] == ["caf\ufffd one"]


def test_a_folder_a_link_and_a_pipe_are_refused_with_a_sentence(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Demo")
    path = lessons_path(workspace)
    path.mkdir(parents=True)
    with pytest.raises(LessonError) as folder:
        read_lessons(workspace)
    assert_sentences(folder.value)
    assert folder.value.where == "jobs/notes/lessons-learned.md"
    path.rmdir()
    path.symlink_to("/etc/hostname")
    with pytest.raises(LessonError) as caught:
        read_lessons(workspace)
    assert_sentences(caught.value)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(LessonError) as caught:
        read_lessons(workspace)
    assert_sentences(caught.value)


def test_a_folder_of_notes_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project").mkdir()
    workspace = create_project(tmp_path / "project", "Demo")
    (workspace.base / "notes").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LessonError) as caught:
        read_lessons(workspace)
    assert_sentences(caught.value)
