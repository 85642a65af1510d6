"""The frontmatter is any YAML; its values are those of YAML's core schema, and each knows its place."""

from __future__ import annotations

import math

import pytest

from donewhen.foundation.errors import ExitCode
from donewhen.jobs.plan.frontmatter import (
    DocumentError,
    Read,
    Span,
    Value,
    is_plain_word,
    plain_value,
    read_frontmatter,
    read_simple_fields,
    read_yaml_fields,
)
from sentences import assert_sentences


def by_parser(text: str) -> Read:
    return read_yaml_fields(text, 0, len(text), "plan.md")


def quickly(text: str) -> Read | None:
    return read_simple_fields(text, 0, len(text))


def refused(text: str) -> DocumentError:
    before = "\n---\n"
    with pytest.raises(DocumentError) as caught:
        read_frontmatter(before + text, len(before), len(before) + len(text), "plan.md")
    assert (caught.value.code, caught.value.exit_code) == ("document", ExitCode.USAGE)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("Null", None), ("NULL", None), ("nULL", "nULL"), ("~x", "~x"),
        ("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False), ("FALSE", False),
        ("tRue", "tRue"),
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("off", "off"), ("y", "y"),
        ("0", 0), ("7", 7), ("-7", -7), ("+7", 7), ("-0", 0), ("120", 120),
        ("1234567890123456789012", 1234567890123456789012),
        ("1.0", 1.0), ("1.", 1.0), (".5", 0.5), ("-.5", -0.5), ("+.5", 0.5), ("1e3", 1000.0), ("1E3", 1000.0),
        ("1.5e-3", 0.0015), ("-1e+3", -1000.0),
        ("1e", "1e"), (".", "."), ("..", ".."), ("-", "-"), ("+", "+"), ("--1", "--1"), ("1-", "1-"), ("e3", "e3"),
        (".e3", ".e3"), ("1.2.3", "1.2.3"),
        ("0x1f", "0x1f"), ("0o17", "0o17"), ("1_000", "1_000"), ("12:30", "12:30"), ("2026-02-14", "2026-02-14"),
        ("1٢", "1٢"), ("٣", "٣"),
        (".inf", ".inf"), ("-.inf", "-.inf"), (".nan", ".nan"), ("inf", "inf"), ("nan", "nan"), ("word", "word"),
        (" 1", " 1"),
    ],
)  # fmt: skip
def test_a_plain_word_is_read_by_the_core_schema_and_no_more(text: str, value: Value) -> None:
    found = plain_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["007", "010", "-01", "+00", "00"])
def test_a_number_with_leading_zeros_never_becomes_a_fraction(text: str) -> None:
    assert not isinstance(plain_value(text), float)


@pytest.mark.parametrize("text", ["1e999", "-1e999", "9" * 400 + ".0"], ids=["large", "small", "digits"])
def test_no_number_is_infinite_because_that_could_not_be_hashed(text: str) -> None:
    value = plain_value(text)
    assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("text", ["9" * 4299, "9" * 4300, "9" * 4301, "-" + "9" * 4300, "9" * 100_000], ids=len)
def test_a_number_of_any_length_is_read_or_refused_with_its_place(text: str) -> None:
    for form in (f"a: {text}\n", f"a:\n  - {text}\n", f"a: {text} # long\n"):
        try:
            fields, _ = read_frontmatter(form, 0, len(form), "plan.md")
        except DocumentError as error:
            assert (error.where or "").startswith("plan.md:")
        else:
            assert list(fields) == ["a"]


@pytest.mark.parametrize(
    ("line", "value", "end"),
    [
        ("a: x\n", "x", 4), ("a:   two words  \n", "two words", 14), ("a: 12\n", 12, 5), ("a: 1.5\n", 1.5, 6),
        ("a: true\n", True, 7),
        ("a: null\n", None, 7), ("a:\n", None, 2), ("a: \n", None, 2), ("a: []\n", [], 5), ("a: {}\n", {}, 5),
        ('a: ""\n', "", 5), ("a: ''\n", "", 5),
        ('a: "x: # y"\n', "x: # y", 11), ("a: 'x \"y\"' \n", 'x "y"', 10), ('a: "12"\n', "12", 7),
        ("a: 'null'\n", "null", 9),
        ("a: http://x/y?z=1\n", "http://x/y?z=1", 17), ("a: été\n", "été", 6), ("a: <x>\n", "<x>", 6),
        ("a: (x) - y\n", "(x) - y", 10),
    ],
)  # fmt: skip
def test_a_simple_field_is_read_quickly_and_the_same_as_by_the_parser(line: str, value: Value, end: int) -> None:
    expected = ({"a": value}, {"a": Span(1, 2, end, False)})
    assert quickly(line) == by_parser(line) == expected
    assert type(quickly(line)[0]["a"]) is type(value)  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "items", "end"),
    [
        ("a:\n- x\n", ["x"], 6), ("a:\n  - x\n  - 2\n", ["x", 2], 14),
        ("a: \n    -  'x'  \n    - \"\"\n", ["x", ""], 25),
        ("a:\n- true\n- null\n- y z\n", [True, None, "y z"], 22),
    ],
)  # fmt: skip
def test_a_simple_list_is_read_quickly_and_the_same_as_by_the_parser(text: str, items: list[Value], end: int) -> None:
    assert quickly(text) == by_parser(text) == ({"a": items}, {"a": Span(1, 2, end, True)})


def test_places_and_lines_count_from_the_start_of_the_whole_text() -> None:
    text = "---\na: 1\nbb:\n  - x\nc: y\n---\n"
    for found in (
        read_simple_fields(text, 4, 24),
        read_yaml_fields(text, 4, 24, "plan.md"),
        read_frontmatter(text, 4, 24, "plan.md"),
    ):
        assert found == (
            {"a": 1, "bb": ["x"], "c": "y"},
            {"a": Span(2, 6, 8, False), "bb": Span(3, 12, 18, True), "c": Span(5, 21, 23, False)},
        )


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n", "a: x # c\n", "# c\n", "\n", "a: 1\r\n", "a: x\n  y\n", "a: |\n  x\n", "a: [x]\n",
        "a: {x: 1}\n", "a: &x y\n", "a: *x\n", "a: !t x\n",
        "a: 'it''s'\n", 'a: "x\\ty"\n', "a: b: c\n", "a: b:\n", "a:b\n", "a:\tb\n", "a: x\t\n", "'a': 1\n", "1: 2\n",
        "a b: 1\n", "- x\n", "a: x\n- y\n",
        "a: []\n- y\n", "a:\n  - x\n - y\n", "a:\n- x\n  - y\n", "a:\n-\n", "a:\n- x: 1\n", "a:\n- - x\n", "a: - x\n",
        "a: ? x\n", "a: @x\n", "a: `x`\n", "a: a  b\n",
        "a: x\n b: 1\n", "\ta: 1\n", "a", "a: 1", "a: x#y\n", "a: 'x' y\n", "a: \u2028\n", "...\n",
    ],
)  # fmt: skip
def test_whatever_is_not_simple_is_left_to_the_parser(text: str) -> None:
    assert quickly(text) is None


def test_nothing_at_all_is_simple() -> None:
    assert quickly("") == ({}, {}) == by_parser("")


def test_a_name_too_long_for_yaml_is_refused_by_both_readers() -> None:
    assert quickly("a" * 1025 + ": 1\n") is None
    assert_sentences(refused("a" * 1025 + ": 1\n").message)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("# only a comment\n\n", {}),
        ("a: x # c\n'b': \"y\\tz\"\n", {"a": "x", "b": "y\tz"}),
        ("a: 'it''s'\nb: 'no'\nc: '12'\n", {"a": "it's", "b": "no", "c": "12"}),
        ("a: x\n  y\nb: |\n  # text\n  ---\nc: >-\n  d\n  e\n", {"a": "x y", "b": "# text\n---\n", "c": "d e"}),
        ("a: [1, x, [off]]\nb: {c: {d: ~}}\n", {"a": [1, "x", ["off"]], "b": {"c": {"d": None}}}),
        ("a: &x 5\nb: *x\nc: [*x, *x]\n", {"a": 5, "b": 5, "c": [5, 5]}),
        ("a: !!str x\n", {"a": "x"}),
        ("1: 2\ntrue: 3\n~: 4\n1.5: 6\n", {"1": 2, "true": 3, "~": 4, "1.5": 6}),
        ("a: {<<: {b: 1}, b: 2}\n", {"a": {"<<": {"b": 1}, "b": 2}}),
        ("a: {1: 2}\n", {"a": {"1": 2}}),
        ("a: 1\r\nb:\r\n- 2\r\n", {"a": 1, "b": [2]}),
        ("a: 1\rb: 2\r", {"a": 1, "b": 2}),
        ("a: 1\n...\n", {"a": 1}),
        ("a:\n  -\n  - x\n", {"a": [None, "x"]}),
        ("? a\n: 1\n", {"a": 1}),
        ("? a\n", {"a": None}),
        ("b: 1\n? a\n? c\n", {"b": 1, "a": None, "c": None}),
        ("a: \U0001f600\nb: 12:30:00\n", {"a": "\U0001f600", "b": "12:30:00"}),
    ],
)  # fmt: skip
def test_any_yaml_is_read(text: str, fields: dict[str, Value]) -> None:
    assert read_frontmatter(text, 0, len(text), "plan.md")[0] == fields


@pytest.mark.parametrize(
    ("text", "span", "old"),
    [
        ("é: x # c\n", Span(1, 2, 4, False), " x"),
        ("a: \U0001f600 # c\n", Span(1, 2, 4, False), " \U0001f600"),
        ("a: [x,\n  y] # c\n", Span(1, 2, 11, False), " [x,\n  y]"),
        ("a:\n  x # c\n", Span(1, 2, 6, True), "\n  x"),
        ("a:\r  x # c\r", Span(1, 2, 6, True), "\r  x"),
        ("a : 'x' # c\n", Span(1, 3, 7, False), " 'x'"),
        ("a: &k x # c\n", Span(1, 2, 7, False), " &k x"),
        ("a: !!str x # c\n", Span(1, 2, 10, False), " !!str x"),
        ("a: # c\n", Span(1, 2, 2, False), ""),
        ("a:\n  - x\n  - y: 1\n    z:\n# c\nb: 1\n", Span(1, 2, 24, True), "\n  - x\n  - y: 1\n    z:"),
        ("a:\n  k: [1]\n\n# c\nb: 1\n", Span(1, 2, 11, True), "\n  k: [1]"),
        ("a: |\n  x\n# c\nb: 1\n", Span(1, 2, 9, False), " |\n  x\n"),
    ],
)  # fmt: skip
def test_a_value_ends_where_it_ends_and_not_where_the_next_one_begins(text: str, span: Span, old: str) -> None:
    first = next(iter(by_parser(text)[1].values()))
    assert first == span
    assert text[span.start : span.end] == old


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("- a\n", "3:1"),
        ("# c\njust words\n", "4:1"),
        ("{a: 1}\n", "3:1"),
        ("a: 1\nb: 2\na: 3\n", "5:1"),
        ("1: 1\n'1': 3\n", "4:1"),
        ("<<: 1\n<<: 3\n", "4:1"),
        ("a: {b: 1, b: 2}\n", "3:11"),
        ("a:\n  - b: 1\n    b: 2\n", "5:5"),
        ("[a]: 1\n", "3:1"),
        ("{a: b}: 1\n", "3:1"),
        ("a: {[b]: 1}\n", "3:5"),
        ("a: !mine x\n", "3:4"),
        ("a: [!mine {}]\n", "3:5"),
        ("a: &a [*a]\n", "3:4"),
        ("&r\na: *r\n", "3:1"),
    ],
)  # fmt: skip
def test_what_cannot_be_frontmatter_is_refused_with_its_line_and_column(text: str, place: str) -> None:
    error = refused(text)
    assert_sentences(error.message)
    assert error.where == f"plan.md:{place}"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: b: c\n", "3:5"), ("a: 1\n\tb: 2\n", "4:1"), ("a: 'open\n", "4:1"), ("a: [1\n", "4:1"),
        ("a: *nobody\n", "3:4"), ("a: 1\n--- x\n", "4:1"),
        ("%YAML 1.1\na: 2\n", "4:1"), ("a: 1\n b: 2\n", "4:3"), ("a: @x\n", "3:4"), ("a: !t!x y\n", "3:4"),
        ("a:\n- x\nb\n", "6:1"),
    ],
)  # fmt: skip
def test_broken_yaml_is_refused_with_the_line_and_column_and_advice(text: str, place: str) -> None:
    error = refused(text)
    assert_sentences(error.message)
    assert error.message.endswith(".")
    assert_sentences(error.next_step)
    assert error.where == f"plan.md:{place}"


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x1b", "\x7f"], ids=repr)
def test_a_control_character_is_refused_in_the_file_where_it_stands(character: str) -> None:
    error = refused(f"a: 1\nb: x{character}\n")
    assert_sentences(error.message)
    assert error.message.endswith("control characters are not allowed.")
    assert (error.where or "").startswith("plan.md:")


def test_the_reason_of_the_parser_is_given_in_its_words() -> None:
    reason = "mapping values are not allowed in this context"
    text = refused("a: b: c\n").message
    assert str(reason) in text
    assert_sentences(text)


def nested(depth: int) -> str:
    return "a: " + "[" * depth + "]" * depth + "\n"


def test_fifty_levels_are_enough_and_more_are_refused() -> None:
    value = by_parser(nested(51))[0]["a"]
    for _ in range(50):
        assert isinstance(value, list)
        value = value[0]
    assert value == []
    assert_sentences(refused(nested(52)).message)
    assert "a" in by_parser("a: " + "{k: " * 50 + "x" + "}" * 50 + "\n")[0]
    assert_sentences(refused("a: " + "{k: " * 51 + "x" + "}" * 51 + "\n").message)


def test_a_hundred_thousand_values_are_enough_and_more_are_refused() -> None:
    ten = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
    assert len(by_parser(ten)[0]) == 2
    many = "a: [" + "1," * 99_999 + "]\n"
    assert len(by_parser(many)[0]["a"]) == 99_999  # type: ignore[arg-type]
    assert_sentences(refused("a: [" + "1," * 100_000 + "]\n").message)


@pytest.mark.parametrize("text", ["word", "two words", "a/b.md", "x1", "WI-20260214-001", "in_progress"])
def test_words_that_every_reader_takes_for_text_need_no_quotes(text: str) -> None:
    assert is_plain_word(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "~", "null", "Null", "true", "False", "yes", "No", "ON", "off", "y", "N", "1", "-1", "1.0", ".5", "1e5",
        "0x1f", "0b11", "010", "1_000", ".inf", "-.INF", ".nan", "2026-02-14", "1.5_0",
    ],
)  # fmt: skip
def test_words_that_a_reader_of_older_yaml_takes_for_something_else_need_quotes(text: str) -> None:
    assert not is_plain_word(text)
