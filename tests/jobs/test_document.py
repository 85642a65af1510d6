"""A plan file is read whole and rewritten line by line: nothing else in it changes."""

from __future__ import annotations

import dataclasses
import math

import pytest
import yaml

from donewhen.foundation.errors import ExitCode
from donewhen.jobs.plan.document import Document, parse_document, render_fields, rewrite_fields
from donewhen.jobs.plan.frontmatter import DocumentError, Value
from sentences import assert_sentences


def changed(text: str, **changes: Value) -> str:
    return rewrite_fields(parse_document(text.encode(), "plan.md"), changes).decode()


def frontmatter(text: str, **changes: Value) -> str:
    """The same for a frontmatter alone."""
    whole = changed(f"---\n{text}---\nbody: x\n", **changes)
    assert whole.startswith("---\n")
    assert whole.endswith("---\nbody: x\n")
    return whole.removeprefix("---\n").removesuffix("---\nbody: x\n")


def refused(raw: bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        parse_document(raw, "a/plan.md")
    assert caught.value.exit_code is ExitCode.USAGE
    return caught.value


def test_a_file_has_fields_and_a_body() -> None:
    raw = b"---\na: 1\nb:\n  - x\n---\n\n# Objective\n"
    document = parse_document(raw, "plan.md")
    assert document.fields == {"a": 1, "b": ["x"]}
    assert document.body == "\n# Objective\n"
    assert document.raw == raw
    assert document.text[document.frontmatter_end :] == "---\n\n# Objective\n"
    assert (document.line_of("a"), document.line_of("b"), document.line_of("c")) == (2, 3, None)


def test_a_document_cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        parse_document(b"---\n---\n", "plan.md").text = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("raw", "fields", "body"),
    [
        (b"---\n---", {}, ""),
        (b"---\n---\n", {}, ""),
        (b"---\n# c\n\n---\nx", {}, "x"),
        (b"\xef\xbb\xbf---\na: 1\n---\nx", {"a": 1}, "x"),
        (b"--- \t\na: 1\n---\t \nx", {"a": 1}, "x"),
        (b"---\r\na: 1\r\n---\r\nx\r\n", {"a": 1}, "x\r\n"),
        (b"---\ra: 1\r---\rx\r", {"a": 1}, "x\r"),
        (b"---\r\na: 1\n---\rx", {"a": 1}, "x"),
        (b"---\na: 1\n---\n---\nb: 2\n---\n", {"a": 1}, "---\nb: 2\n---\n"),
        (b"---\na: |\n  x\n  ---\n  y\n---\nz", {"a": "x\n---\ny\n"}, "z"),
        (b"---\na: ---\nb: ----\n ---\n---\nz", {"a": "---", "b": "---- ---"}, "z"),
        (b"---\na: 1\n---\n\n\nz", {"a": 1}, "\n\nz"),
        (b"---\na: 1\n---\n\x00\xc3\xa9", {"a": 1}, "\x00é"),
    ],
)  # fmt: skip
def test_the_frontmatter_ends_at_the_second_line_of_three_dashes(raw: bytes, fields: object, body: str) -> None:
    document = parse_document(raw, "plan.md")
    assert (document.fields, document.body, document.raw) == (fields, body, raw)


@pytest.mark.parametrize(
    "raw",
    [b"", b"\n---\na: 1\n---\n", b"# Title\n", b"----\na: 1\n---\n", b" ---\n---\n", b"--- x\n---\n", b"--\n--\n"],
)
def test_a_file_that_does_not_begin_with_frontmatter_is_refused(raw: bytes) -> None:
    error = refused(raw)
    assert_sentences(error.message)
    assert error.where == "a/plan.md:1"
    assert_sentences(error.next_step)


@pytest.mark.parametrize(
    "raw",
    [
        b"---",
        b"---\n",
        b"---\na: 1\n",
        b"---\na: 1\n ---\n",
        b"---\na: 1\n----\n",
        b"---\na: 1\n--- x",
        b"---\na: 1 ---\n",
    ],
)
def test_frontmatter_without_an_end_is_refused(raw: bytes) -> None:
    error = refused(raw)
    assert_sentences(error.message)
    assert error.where == "a/plan.md:1"


@pytest.mark.parametrize(
    ("raw", "line"),
    [(b"\xff", 1),
     (b"---\na: 1\nb: \xff\n---\n", 3), (b"---\na: 1\n---\n\n\xe9t\xe9", 5), ("---\n---\n".encode("utf-16"), 1)]
)  # fmt: skip
def test_a_file_that_is_not_utf8_is_refused_with_its_line(raw: bytes, line: int) -> None:
    error = refused(raw)
    assert_sentences(error.message)
    assert error.message.endswith(").")
    assert error.where == f"a/plan.md:{line}"


def test_an_error_in_the_frontmatter_names_the_line_of_the_file() -> None:
    assert refused(b"---\na: 1\nb: c: d\n---\n").where == "a/plan.md:3:5"
    assert refused(b"\xef\xbb\xbf---\r\na: 1\r\nb: c: d\r\n---\r\n").where == "a/plan.md:3:5"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, " null"), (True, " true"), (False, " false"), (3, " 3"), (-1, " -1"), (1.5, " 1.5"), (2.0, " 2.0"),
        ([], " []"), ({}, " {}"),
        ("word", " word"), ("two words", " two words"), ("a/b.md", " a/b.md"), ("in_progress", " in_progress"),
        ("50% (of it), a=b+c @x", " 50% (of it), a=b+c @x"),
        ("", ' ""'), (" x", ' " x"'), ("x ", ' "x "'), ("a: b", ' "a: b"'), ("a #b", ' "a #b"'), ("a:b", ' "a:b"'),
        ("2026-02-14T10:00:00Z", ' "2026-02-14T10:00:00Z"'),
        ("1", ' "1"'), ("1.0", ' "1.0"'), ("true", ' "true"'), ("null", ' "null"'), ("off", ' "off"'),
        ("Yes", ' "Yes"'), ("~", ' "~"'),
        ("- a", ' "- a"'), ("[a]", ' "[a]"'), ("it's", ' "it\'s"'), ('a"b\\c', ' "a\\"b\\\\c"'),
        ("a\nb\r\tc", ' "a\\nb\\r\\tc"'), ("\\n", ' "\\\\n"'),
        ("\x00\x1f\x7f\x85\x9f", ' "\\u0000\\u001f\\u007f\\u0085\\u009f"'),
        ("\u2028\u2029\ufeff", ' "\\u2028\\u2029\\ufeff"'), ("\xa0é\U0001f600", ' "\xa0é\U0001f600"'),
        (["a", 1, None, "x: y"], '\n  - a\n  - 1\n  - null\n  - "x: y"'), ([[], {}], "\n  - []\n  - {}"),
        ([[1, "b c"]], "\n  - [1, b c]"),
        ({"a": 1, "b c": "x"}, '\n  a: 1\n  "b c": x'), ({"a": {"b": [True]}}, "\n  a: {b: [true]}"),
        ([{"a": "x: y"}], '\n  - {a: "x: y"}'),
        ([["a,b"]], '\n  - ["a,b"]'), ({"a": {"b": "c, d"}}, '\n  a: {b: "c, d"}'),
        ("\ufffe\uffff", ' "\\ufffe\\uffff"'),
    ],
)  # fmt: skip
def test_a_value_is_written_on_single_lines_with_quotes_where_they_are_needed(value: Value, written: str) -> None:
    assert frontmatter("a: old\nz: 1\n", a=value) == f"a:{written}\nz: 1\n"
    assert frontmatter("z: 1\n", new=value) == f"z: 1\nnew:{written}\n"


@pytest.mark.parametrize("text", ["0x1f", "010", "1_000", ".inf", ".nan", "2026-02-14", "on", "1e5", "0b1", "12e03"])
def test_a_text_that_is_written_stays_a_text_for_a_reader_of_older_yaml(text: str) -> None:
    assert yaml.safe_load(frontmatter("a: old\n", a=text)) == {"a": text}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a:   x   # why\n", "a:   new   # why\n"),
        ("a:\tx\n", "a:\tnew\n"),
        ("a:\n", "a: new\n"),
        ("a: # why\n", "a: new # why\n"),
        ("a:  \n", "a:  new  \n"),
        ("'a' : \"x\" # why\n", "'a' : new # why\n"),
        ("a: [1,\n  2] # why\n", "a: new # why\n"),
        ("a:\n- x\n- y # why\n", "a: new # why\n"),
        ("a:\n  x\n  y\nb: 1\n", "a: new\nb: 1\n"),
        ("a: |\n  x\n  y\n\n# why\nb: 1\n", "a: new\n\n# why\nb: 1\n"),
        ("a: |+\n  x\n\n\nb: 1\n", "a: new\n\n\nb: 1\n"),
        ("a: >-\r\n  x\r\nb: 1\r\n", "a: new\r\nb: 1\r\n"),
        ("a:\n  k:\n    - x\n    - |\n      y\n# why\n", "a: new\n# why\n"),
        ("# first\na: x\n# last\n", "# first\na: new\n# last\n"),
        ("a: &anchor x\nb: 1\n", "a: new\nb: 1\n"),
        ("a: !!str x\nb: 1\n", "a: new\nb: 1\n"),
        ("a: &x\nb: 1\n", "a: new\nb: 1\n"),
    ],
)  # fmt: skip
def test_what_stands_around_a_changed_value_stays(before: str, after: str) -> None:
    assert frontmatter(before, a="new") == after


@pytest.mark.parametrize("value", ["new", ["new"]], ids=["text", "list"])
def test_a_comment_between_a_name_and_its_list_is_kept_or_the_change_is_refused(value: Value) -> None:
    try:
        after = frontmatter("a: # why\n  - x\nb: 1\n", a=value)
    except DocumentError:
        after = "# why"
    assert "# why" in after


def test_several_fields_change_at_once_and_new_ones_come_last_in_the_order_given() -> None:
    before = "b: 1\nunknown: [x]   # kept\na:\n  - y\n"
    after = frontmatter(before, a=["p", "q"], n2=2, b="long text", n1=1)
    assert after == "b: long text\nunknown: [x]   # kept\na:\n  - p\n  - q\nn2: 2\nn1: 1\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_new_lines_end_as_the_first_line_of_the_file_does(newline: str) -> None:
    before = "---\na: 1\n---\nbody\n".replace("\n", newline)
    after = "---\na:\n  - x\n  - z\nb: 2\n---\nbody\n".replace("\n", newline)
    assert changed(before, a=["x", "z"], b=2) == after


def test_mixed_line_ends_stay_as_they_are() -> None:
    assert changed("---\r\na: 1\nb: 2\rc: 3\r\n---\nx\r", b="new") == "---\r\na: 1\nb: new\rc: 3\r\n---\nx\r"


def test_a_file_without_fields_gets_its_first() -> None:
    assert changed("---\n---", a=1) == "---\na: 1\n---"
    assert changed("\ufeff--- \n# c\n---\nx", a=1) == "\ufeff--- \n# c\na: 1\n---\nx"


def test_a_name_that_is_not_a_word_is_quoted() -> None:
    document = parse_document(b"---\n---\n", "plan.md")
    raw = rewrite_fields(document, {"a b": 1, "1": 2, "c: d": 3, "": 4, "é": 5})
    assert raw == '---\n"a b": 1\n"1": 2\n"c: d": 3\n"": 4\n"é": 5\n---\n'.encode()
    assert parse_document(raw, "plan.md").fields == {"a b": 1, "1": 2, "c: d": 3, "": 4, "é": 5}


def test_values_that_are_the_same_leave_their_spelling_alone() -> None:
    text = "a: 'x'\nb: [ 1,2 ]\nc: ~\nd: 1.00\ne: {k: v}\nf: \"1\"\n"
    assert frontmatter(text, a="x", b=[1, 2], c=None, d=1.0, e={"k": "v"}, f="1") == text
    assert frontmatter(text) == text


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("a: 1\n", True, "a: true\n"), ("a: 1\n", 1.0, "a: 1.0\n"), ("a: 1\n", "1", 'a: "1"\n'),
        ("a: true\n", 1, "a: 1\n"), ("a: null\n", "null", 'a: "null"\n'),
        ("a: [1]\n", [True], "a:\n  - true\n"), ("a: [1]\n", [1.0], "a:\n  - 1.0\n"),
        ("a: {x: 1}\n", {"x": True}, "a:\n  x: true\n"),
        ("a: [0]\n", [False], "a:\n  - false\n"),
    ],
)  # fmt: skip
def test_one_and_true_are_different_values_also_inside_lists(before: str, value: Value, after: str) -> None:
    assert frontmatter(before, a=value) == after


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("a: &x 1\nb: *x\n", "a", 2),
        ("a: &x 1\nb: *x\n", "b", 3),
        ("b: &x 1\na:\n  - 1\n  - *x\nc: 2\n", "a", 3),
    ],
)  # fmt: skip
def test_a_change_that_would_alter_something_else_is_refused(text: str, name: str, line: int) -> None:
    with pytest.raises(DocumentError) as caught:
        frontmatter(text, **{name: "new"})
    assert_sentences(caught.value.message)
    assert caught.value.where in (f"line {line}", None)
    assert_sentences(caught.value.next_step)


@pytest.mark.parametrize(
    "text",
    [
        "? a # why: b\n: 1\n",
        "? a\n",
        "? a\nb: 1\n",
        "? a\n? b\n",
        "  a: 1\n  b: 2\n",
        "a: 1\n...\n",
        "x: &x a\n*x : 3\n",
    ],
)
def test_an_odd_frontmatter_is_read_and_a_change_to_it_is_right_or_refused(text: str) -> None:
    document = parse_document(f"---\n{text}---\n".encode(), "plan.md")
    for name in ("a", "new"):
        for value in ("new", None, ["x"]):
            try:
                raw = rewrite_fields(document, {name: value})
            except DocumentError:
                continue
            assert parse_document(raw, "plan.md").fields == {**document.fields, name: value}
            assert ("# why: b" in text) <= ("# why: b" in raw.decode())


@pytest.mark.parametrize(
    "value",
    [math.inf, -math.inf, math.nan, "\ud800", 10**5000, [10**5000]],
    ids=["inf", "-inf", "nan", "surrogate", "huge", "huge item"],
)
def test_a_value_that_cannot_be_written_down_is_refused(value: Value) -> None:
    document = parse_document(b"---\na: 1\n---\n", "plan.md")
    for name in ("a", "new"):
        with pytest.raises(DocumentError):
            rewrite_fields(document, {name: value})


def test_the_lines_of_a_new_frontmatter_are_written_in_the_same_form() -> None:
    fields: dict[str, Value] = {"id": "WI-1", "title": "a: b", "outputs": ["x", 1], "map": {}, "a b": None}
    text = render_fields(fields)
    assert text == 'id: WI-1\ntitle: "a: b"\noutputs:\n  - x\n  - 1\nmap: {}\n"a b": null\n'
    assert parse_document(f"---\n{text}---\n".encode(), "plan.md").fields == fields
    assert render_fields({}) == ""


def test_the_result_is_another_document_and_the_first_is_as_it_was() -> None:
    document: Document = parse_document(b"---\na: 1\n---\n", "plan.md")
    assert rewrite_fields(document, {"a": 2}) == b"---\na: 2\n---\n"
    assert (document.fields, document.raw) == ({"a": 1}, b"---\na: 1\n---\n")
