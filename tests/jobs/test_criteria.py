"""What a job must show: read from Markdown, each with an id, its words, its line and how it is checked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.jobs.plan.criteria import (
    Check,
    Criterion,
    MarkdownSection,
    criterion_item,
    find_section,
    is_placeholder,
    markdown_sections,
    parse_check,
    read_criteria,
)
from sentences import assert_sentences


def criteria(*lines: str) -> tuple[Criterion, ...]:
    section = find_section("\n".join(["## Acceptance Criteria", *lines]), "Acceptance Criteria", 11)
    assert section is not None
    return read_criteria(section, "plan.md")


def brief(*lines: str) -> list[tuple[str, str]]:
    return [(criterion.id, criterion.text) for criterion in criteria(*lines)]


def titles(*lines: str) -> list[tuple[str, int, int]]:
    return [(section.title, section.level, section.line) for section in markdown_sections("\n".join(lines))]


def test_a_section_goes_up_to_the_next_heading_of_its_level_or_above() -> None:
    body = "lost\n# A\none\n## B\ntwo\n### C\nthree\n## D\nfour\n# E\n"
    found = {section.title: section for section in markdown_sections(body, 5)}
    assert list(found) == ["A", "B", "C", "D", "E"]
    assert found["A"].text == "one\n## B\ntwo\n### C\nthree\n## D\nfour"
    assert found["B"].text == "two\n### C\nthree"
    assert found["C"].lines == ((11, "three"),)
    assert found["E"] == MarkdownSection("E", 1, 14, ())
    assert (found["A"].line, found["A"].level, found["C"].level) == (6, 1, 3)


def test_headings_have_one_to_six_signs_and_a_space() -> None:
    assert titles("# a", "###### b", "####### c", "#d", " # e", "#", "# ", "#\tf", "## g ##", "## h  \t") == [
        ("a", 1, 1), ("b", 6, 2), ("f", 1, 8), ("g", 2, 9), ("h", 2, 10),
    ]  # fmt: skip


def test_a_sign_that_belongs_to_the_last_word_of_a_heading_stays() -> None:
    assert titles("# Written in C#") == [("Written in C#", 1, 1)]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("```", "# no", "```", "# yes"), ["yes"]),
        (("~~~sh", "# no", "```", "# no", "~~~", "# yes"), ["yes"]),
        (("````", "```", "# no", "````", "# yes"), ["yes"]),
        (("```", "# no", "`````", "# yes"), ["yes"]),
        (("   ```py", "# no", "   ```", "# yes"), ["yes"]),
        (("    ```", "# yes"), ["yes"]),
        (("# yes", "```", "# no"), ["yes"]),
        (("``", "# yes"), ["yes"]),
        (("```", "```python", "# no", "```", "# yes"), ["yes"]),
        (("```code``` in a line", "# yes"), ["yes"]),
    ],
)  # fmt: skip
def test_a_heading_inside_a_code_fence_is_text(lines: tuple[str, ...], found: list[str]) -> None:
    assert [title for title, _, _ in titles(*lines)] == found


def test_a_section_is_found_by_its_title_in_any_case_and_the_first_counts() -> None:
    body = "# ACCEPTANCE criteria\n- a\n# Acceptance Criteria\n- b\n"
    section = find_section(body, "acceptance Criteria")
    assert section is not None
    assert (section.line, section.text) == (1, "- a")
    assert find_section(body, "Criteria") is None
    assert find_section("", "x") is None


def test_no_section_has_no_criteria() -> None:
    assert read_criteria(None, "plan.md") == ()
    assert criteria() == ()
    assert criteria("Just words.", "", "1 a number", "-no space") == ()


def test_a_criterion_has_its_id_its_words_its_check_and_its_line() -> None:
    assert criteria("", "- AC-1: The log is parsed.", "  check: run pytest -q", "- AC-2: It is fast.") == (
        Criterion("AC-1", "The log is parsed.", Check("run", "pytest -q", argv=("pytest", "-q")), 13),
        Criterion("AC-2", "It is fast.", None, 15),
    )


def test_criteria_without_ids_are_numbered_by_their_order() -> None:
    assert brief("- one", "* two", "+ three") == [("AC-1", "one"), ("AC-2", "two"), ("AC-3", "three")]
    assert brief("- one", "- X-9: two", "- three") == [("AC-1", "one"), ("X-9", "two"), ("AC-3", "three")]


@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        ("- AC-1: x y", "AC-1", "x y"), ("- AC-1. x", "AC-1", "x"), ("- AC-1) x", "AC-1", "x"),
        ("- AC12: x", "AC12", "x"), ("- **AC-7**: x", "AC-7", "x"),
        ("- **AC-7:** x", "AC-7", "x"), ("- [ ] AC-7: x", "AC-7", "x"), ("- [x] AC-7: x", "AC-7", "x"),
        ("- [X] x", "AC-1", "x"), ("-\t[ ]\tx", "AC-1", "x"),
        ("- AC-1:x", "AC-1", "x"), ("- AC-1:", "AC-1", ""), ("- ", "AC-1", ""),
        ("- ABCDEFG-1: x", "AC-1", "ABCDEFG-1: x"), ("- ac-1: x", "AC-1", "ac-1: x"),
        ("- AC-1 x", "AC-1", "AC-1 x"), ("-   x   y\tz  ", "AC-1", "x y z"), ("- [y] x", "AC-1", "[y] x"),
        ("- V1.5 works", "AC-1", "V1.5 works"),
        ("- see AC-4: x", "AC-1", "see AC-4: x"), ("- AC-1: a: b", "AC-1", "a: b"),
    ],
)  # fmt: skip
def test_an_id_stands_first_and_ends_with_a_colon_a_point_or_a_bracket(line: str, name: str, text: str) -> None:
    assert brief(line) == [(name, text)]


@pytest.mark.parametrize(
    ("lines", "name", "line"),
    [
        (("- AC-1: a", "- AC-1: b"), "AC-1", 13), (("- AC-2: a", "", "- b"), "AC-2", 14),
        (("- a", "- AC-1: b"), "AC-1", 13),
        (("- a", "- b", "- AC-2: c"), "AC-2", 14), (("- X1: a", "- b", "- X1: c"), "X1", 14),
    ],
)  # fmt: skip
def test_two_criteria_with_one_id_are_refused_also_where_one_was_only_numbered(
    lines: tuple[str, ...], name: str, line: int
) -> None:
    with pytest.raises(ConfigError) as caught:
        criteria(*lines)
    assert_sentences(caught.value.message)
    assert caught.value.where == f"plan.md:{line}"


def test_indented_lines_continue_a_criterion_and_others_do_not() -> None:
    assert brief("- AC-1: one", "  two", "", "\tthree", "four", "    - five", "- six", "intro") == [
        ("AC-1", "one two three - five"),
        ("AC-2", "six"),
    ]
    assert brief("  before", "  check: manual", "- one") == [("AC-1", "one")]
    assert criteria("  check: manual", "- one")[0].check is None


@pytest.mark.parametrize(
    "line",
    [
        "  check: manual",
        "\tcheck:\tmanual",
        " check:manual",
        "  - check: manual",
        "\t*\tcheck: manual  ",
        "        check:   manual",
    ],
)
def test_a_check_is_an_indented_line_with_spaces_or_tabs(line: str) -> None:
    assert [criterion.check for criterion in criteria("- one", "  more", line, "  and more")] == [Check("manual")]
    assert brief("- one", "  more", line, "  and more") == [("AC-1", "one more and more")]


def test_a_check_belongs_to_the_criterion_above_it() -> None:
    found = criteria("- one", "- two", "  check: manual", "- three", "  check: judge m")
    assert [criterion.check and criterion.check.kind for criterion in found] == [None, "manual", "judge"]


def test_an_unknown_check_is_refused_with_its_own_line() -> None:
    with pytest.raises(ConfigError) as caught:
        criteria("- one", "  more", "  check: looks good")
    assert caught.value.where == "plan.md:14"


def test_a_second_check_of_one_criterion_is_refused_and_does_not_replace_the_first() -> None:
    with pytest.raises(ConfigError) as caught:
        criteria("- one", "  check: run pytest", "  check: manual")
    assert caught.value.where == "plan.md:14"


def test_a_list_inside_a_code_fence_is_no_criterion() -> None:
    assert brief("- one", "", "```", "- AC-9: sample", "```", "- two") == [("AC-1", "one"), ("AC-2", "two")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("odd", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028"], ids=ascii)
def test_lines_are_counted_as_an_editor_counts_them(end: str, odd: str) -> None:
    section = find_section(end.join(["# Acceptance Criteria", f"- one{odd}more", "- two"]), "acceptance criteria")
    found = read_criteria(section, "plan.md")
    assert [(criterion.id, criterion.line) for criterion in found] == [("AC-1", 2), ("AC-2", 3)]


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("manual", Check("manual")), ("  manual\t", Check("manual")),
        ("judge code-review_1.x", Check("judge", "code-review_1.x")),
        ("run pytest -q 'a b'", Check("run", "pytest -q 'a b'", argv=("pytest", "-q", "a b"))),
        ("run\tmake  x ", Check("run", "make  x", argv=("make", "x"))),
        ("file out.md", Check("file", "out.md", path="out.md")),
        ("file a/b.md matches /^x y$/", Check("file", "a/b.md matches /^x y$/", path="a/b.md", regex="^x y$")),
        ("file a matches /a/b/", Check("file", "a matches /a/b/", path="a", regex="a/b")),
        ("file a matches //", Check("file", "a matches //", path="a", regex="")),
        ("file a.json schema s.json", Check("file", "a.json schema s.json", path="a.json", schema="s.json")),
        ("file a.csv rows >= 10", Check("file", "a.csv rows >= 10", path="a.csv", rows=10)),
        ("file a.csv rows>=0", Check("file", "a.csv rows>=0", path="a.csv", rows=0)),
    ],
)  # fmt: skip
def test_a_check_is_run_file_judge_or_manual(text: str, check: Check) -> None:
    assert parse_check(text, "plan.md:3") == check


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "run", "run  ", "judge", "judge two words", "judge a/b", "manual please", "Manual", "file", "file a b",
        "file a matches", "file a matches x",
        "file a matches /x/ y", "file a schema", "file a schema b c", "file a rows > 3", "file a rows >= x",
        "file a rows >= -1", "runpytest", "check: manual",
    ],
)  # fmt: skip
def test_any_other_check_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_check(text, "plan.md:3")
    assert f"{text.strip()!r}" in caught.value.message
    assert_sentences(caught.value.message)
    assert caught.value.where == "plan.md:3"
    assert_sentences(caught.value.next_step)


def test_what_is_in_a_comment_is_no_criterion() -> None:
    found = criteria(
        "<!-- - AC-8: in one line -->", "<!--", "- AC-9: <describe the result>", "check: of nothing", "-->",
        "- AC-1: The log is parsed.", "<!-- Notes:", "- AC-7: TBD -->", "  check: run make test", "- AC-2: <!-- empty",
        "- AC-3: It works.", "```", "<!--", "```", "- AC-4: It ends.",
    )  # fmt: skip
    assert [(criterion.id, criterion.text) for criterion in found] == [
        ("AC-1", "The log is parsed."), ("AC-2", "<!-- empty"), ("AC-3", "It works."), ("AC-4", "It ends."),
    ]  # fmt: skip
    assert found[0].check == Check("run", "make test", argv=("make", "test"))
    assert found[1].placeholder


def test_a_heading_in_a_comment_begins_no_section() -> None:
    body = "<!--\n# Acceptance Criteria\n- hidden\n-->\n# Acceptance Criteria\n- seen\n"
    assert [(section.line, section.text) for section in markdown_sections(body)] == [(5, "- seen")]
    assert markdown_sections("<!-- never closed\n# Acceptance Criteria\n") == []


def test_a_command_that_needs_a_shell_is_refused_with_the_hint() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_check("run make && make test", "plan.md:3")
    assert_sentences(caught.value)
    assert caught.value.where == "plan.md:3"
    assert "script" in (caught.value.next_step or "")
    with pytest.raises(ConfigError) as caught:
        parse_check("run echo 'open", "plan.md:3")
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    "pattern",
    ["(", "[", "*", "a{99999999999999999999}", "(" * 5000 + ")" * 5000],
    ids=["group", "set", "star", "repeat", "deep"],
)
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_check(f"file a matches /{pattern}/", "plan.md:3")
    # Why it can't is said in the words of the interpreter.
    assert_sentences(str(caught.value).rpartition(": ")[0])
    assert caught.value.where == "plan.md:3"
    assert caught.value.message.endswith(".")


def test_checks_criteria_and_sections_are_values() -> None:
    first, again = (criteria("- one", "  check: manual") for _ in range(2))
    assert len({*first, *again}) == 1
    assert len({first[0].check, again[0].check}) == 1
    assert len({*markdown_sections("# a\nb"), *markdown_sections("# a\nb")}) == 1


def test_a_number_of_rows_of_any_length_is_read_or_refused() -> None:
    assert parse_check("file a rows >= 1000000", "plan.md:3").rows == 1_000_000
    with pytest.raises(ConfigError):
        parse_check("file a rows >= " + "9" * 5000, "plan.md:3")


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "x", "a", "TBD", "tbd.", "todo", "To be defined", "to be done!", "FIXME", "xxx", "xxxxx", "n/a", "NA",
        "none", "None.", "...", "…", "--", "??",
        "Lorem ipsum dolor", "placeholder", "criterion", "Criterion 1", "Criteria", "acceptance criteria",
        "Acceptance criterion 2", "<text>", "[text]", "{text}",
        "**TBD**", "_todo_", "`x`", '"tbd"', "describe the result", "Fill this in", "fill in", "example",
        "Example criterion",
    ],
)  # fmt: skip
def test_a_text_that_says_nothing_is_a_placeholder(text: str) -> None:
    assert is_placeholder(text)
    assert Criterion("AC-1", text, None, 1).placeholder


@pytest.mark.parametrize(
    "text",
    [
        "The log is parsed.", "None of the tests fail", "todo list is empty", "n/a values are dropped",
        "[link](x) works", "<a> and <b> match",
        "criteria are listed", "no TBD left", "Examples in the README run", "Placeholder images are replaced",
        "Example.com is not called",
    ],
)  # fmt: skip
def test_a_text_that_says_something_is_no_placeholder(text: str) -> None:
    assert not is_placeholder(text)
    assert not Criterion("AC-1", text, None, 1).placeholder


LONG = """
from donewhen.jobs.plan.criteria import find_section, is_placeholder, parse_check, read_criteria
many = 20_000
for line in ("# a" + " " * many + "b", "# a" + "#" * many + " b", "# a" + " #" * many + "b", "# a" + "\\t" * many):
    find_section(line, "x")
for line in ("- " + " " * many + "x", "- AC-1:" + " " * many, " " * many + "check:" + " " * many, "- **" + "A" * many):
    section = find_section("# x\\n- y\\n" + line, "x")
    try:
        read_criteria(section, "plan.md")
    except Exception as error:
        print(type(error).__name__)
for text in ("<" * many, "[" * many, "x" * many + "y", "-" * many + "x", "criteria " * many):
    is_placeholder(text)
print("read")
"""


def test_no_line_however_long_takes_more_than_a_moment() -> None:
    # The limit is a hundred times what it needs; what it guards against takes hours.
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[-1:] == ["read"], done.stderr


def test_a_check_at_the_left_margin_belongs_to_nobody_and_is_refused() -> None:
    section = find_section("# Acceptance Criteria\n- it works\ncheck: run pytest\n", "acceptance criteria")
    with pytest.raises(ConfigError) as caught:
        read_criteria(section, "plan.md")
    assert_sentences(caught.value)
    assert caught.value.where == "plan.md:3"


def test_numbered_lists_are_criteria_too() -> None:
    section = find_section("# Acceptance Criteria\n1. one\n2) two\n   check: manual\n", "acceptance criteria")
    found = read_criteria(section, "plan.md")
    assert [(criterion.id, criterion.text, criterion.check and criterion.check.kind) for criterion in found] == [
        ("AC-1", "one", None),
        ("AC-2", "two", "manual"),
    ]


def test_a_criterion_on_one_line_becomes_an_item_of_the_plan() -> None:
    assert criterion_item("No test  fails", "here") == "No test fails"
    assert criterion_item("No test fails :: run pytest -q", "here") == "No test fails\n  check: run pytest -q"
    with pytest.raises(UsageError):
        criterion_item(" :: run pytest -q", "here")
    with pytest.raises(ConfigError) as caught:
        criterion_item("No test fails :: hope", "here")
    assert caught.value.where == "here"
