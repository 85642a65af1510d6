"""Any plan file, however it is written: read the same by both readers, or refused with its line."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st

from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.frontmatter import DocumentError, read_simple_fields, read_yaml_fields
from donewhen_kit import examples

EXAMPLES = examples(200)
QUICK = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)

REAL = """\
schema: theworkshop.plan.v1
kind: job
work_item_id: WI-20260214-001
title: "Parse: the log # of everything"
status: in_progress
depends_on:
  - WI-20260213-004
  - 'WI-20260213-005'
wave_id:
priority: 2
estimate_hours: 1.0
due_date: 2026-02-20
reward_target: 80
outputs:
- outputs/primary.md
-  outputs/second.md
verification_evidence: []
started_at: "2026-02-14T10:00:00Z"
truth_checks:
    - exists_nonempty
    - freshness
truth_required_commands:
  - "pytest -q tests/x.py::test_y"
github_map: {}
"""

SCALARS = """\
x|word|two words|a  b|x y |été|日本語|1|-1|+1|0|007|1.0|1.|.5|1e5|-1e-5|1e999|0x1f|0o17|1_000|12:30|.|
..|...|.inf|2026-02-14|http://x/y|a:b|a:|a: b|a :b|: a|:a|a - b|- a|-a|-|--|a -|? a|?|a?|# c|a # c|
a #c|a#c|#|true|True|no|off|null|~|~x|""|"a"|'b'|"a: b"|'a # b'|'it''s'|"x\\ty"|"x\\"y"|"open|'open|
"a" x|"a"b|'a'#c|"a" # c|[]|{}|[ ]|[a]|[a, b]|{a: 1}|[a|{|]|}|, a|a, b|&x y|&x|*x|*x y|!t x|!!str 1|
! x|a!|a&b|a*b|%a|@a|`a|a`b|<x>|<<|(a)|=|a=b|/a/b|$HOME|a|a>b|>|\u00a0x|x\u00a0|\u2028|a\u0085b|
\U0001f600 x|\ufeffx|a\tb|a\t|\ta|\\|a\\b|x y z: w|x: "y"|_a|é: x
"""
scalars = st.sampled_from([*SCALARS.replace("\n", "").split("|"), "|", "|-", ">", "|2", "a | b", "|+ # c"])
names = st.sampled_from(
    [
        "a",
        "b",
        "c",
        "d",
        "e",
        "A-b",
        "_x1",
        "été",
        "1",
        "-",
        "true",
        "<<",
        '"a"',
        "'b'",
        "a b",
        "? a",
        "",
        "a-",
        "*x",
        "&y b",
        "日",
    ]
)
gaps = st.sampled_from(["", " ", " ", " ", " ", "  ", "   ", "\t", " \t"])
tails = st.sampled_from(["", "", "", "", " ", "  ", "\t", " # c", " #", "#"])
ends = st.sampled_from(["\n"] * 12 + ["\r\n", "\r"])
indents = st.sampled_from(["", "", "  ", "  ", "  ", " ", "   ", "    ", "\t"])

field_line = st.tuples(names, st.just(":"), gaps, scalars | st.just(""), tails, ends).map("".join)
plain_field = st.tuples(
    st.sampled_from("abcdefgh"), st.just(":"), gaps, scalars | st.just(""), tails, st.just("\n")
).map("".join)
open_field = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([":\n", ": \n", ":  \n"])).map("".join)
item_line = st.tuples(indents, st.just("-"), gaps, scalars | st.just(""), tails, ends).map("".join)
plain_item = st.tuples(st.sampled_from(["", "  ", "    "]), st.sampled_from(["- ", "-  "]), scalars, st.just("\n")).map(
    "".join
)
block = st.tuples(
    st.sampled_from("abcdefgh"),
    st.just(":\n"),
    st.sampled_from(["", "  ", " "]),
    st.lists(scalars, min_size=1, max_size=3),
).map(lambda parts: parts[0] + parts[1] + "".join(f"{parts[2]}- {one}\n" for one in parts[3]))
stray_line = st.tuples(indents, scalars | st.sampled_from(["# comment", "", "--- x", "...", "%YAML 1.1"]), ends).map(
    "".join
)
frontmatter = st.lists(
    plain_field | plain_field | open_field | block | block | plain_item | field_line | item_line | stray_line,
    max_size=7,
).map("".join)
tame = (
    st.from_regex(r"[\w./<(][\w!$%&()*+,./;<=>?@^|~:\- ]{0,6}", fullmatch=True)
    | scalars
    | st.integers().map(str)
    | st.floats().map(str)
)
tame_field = st.builds(
    lambda gap, value, items, indent, tail: (
        f":{gap}{value}{tail}\n"
        if items is None
        else ":\n" + "".join(f"{indent}-{gap}{item}{tail}\n" for item in items)
    ),
    st.sampled_from([" ", "  "]),
    tame,
    st.none() | st.lists(tame, min_size=1, max_size=3),
    st.sampled_from(["", " ", "  ", "    "]),
    st.sampled_from(["", "", " ", "  "]),
)
simple_frontmatter = st.lists(tame_field, max_size=2).map(
    lambda fields: "".join(f"{name}{field}" for name, field in zip(("a", "b-c", "_d"), fields, strict=False))
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A text with a few characters lost, added or replaced."""
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(text)))
        gone = draw(st.sampled_from([0, 1, 1, 2, 7]))
        new = draw(
            st.sampled_from(
                ["", *" :-#'\"[]{}\n\r\t&*!|>%@`,?~.0a_é\u2028\x00\x85\ufeff", ": ", " #", "- ", "---\n", "  "]
            )
        )
        text = text[:place] + new + text[place + gone :]
    return text


def both(text: str) -> None:
    """The quick reader steps back, or says exactly what the YAML parser says."""
    before = "---\n"
    whole = f"{before}{text}---\n# Objective: x\n"
    quick = read_simple_fields(whole, len(before), len(before) + len(text))
    try:
        full = read_yaml_fields(whole, len(before), len(before) + len(text), "plan.md")
    except DocumentError as error:
        assert quick is None, error
        event("refused by the parser")
        return
    event("left to the parser" if quick is None else "read by both")
    if quick is not None:
        assert typed(quick[0]) == typed(full[0])
        assert quick[1] == full[1]
        assert list(quick[0]) == list(full[0])


def typed(value: Any) -> Any:
    """A form in which 1, 1.0 and True are three things."""
    if isinstance(value, Mapping):
        return {name: typed(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [typed(one) for one in value]
    return type(value).__name__, repr(value)


@QUICK
@given(frontmatter | simple_frontmatter | simple_frontmatter)
@example("a" * 1023 + ": 1\n")
@example("a" * 1024 + ": 1\n")
@example("a" * 1025 + ": 1\n")
@example("a: x\n\ufeffb: 1\n")
def test_the_quick_reader_agrees_with_the_parser_on_values_and_places(text: str) -> None:
    both(text)


@QUICK
@given(damaged(REAL))
@example(REAL)
def test_the_quick_reader_agrees_with_the_parser_on_damaged_files(text: str) -> None:
    both(text)


def test_a_usual_plan_file_needs_no_parser() -> None:
    assert read_simple_fields(REAL, 0, len(REAL)) == read_yaml_fields(REAL, 0, len(REAL), "plan.md")


ODD = """\
base: &base
  k: v
one: &one 5 # five
two: *one
merged: {<<: *base, list: [*one, !!str x]}
? key # note: here
: value
block: |+
  # not a comment

*one : z
"""

anything = (
    st.text(max_size=60)
    | st.text("-\n\r: a#[]{}&*!|>'\"?%@,\t\x00\u2028", max_size=40).map(lambda text: f"---\n{text}\n---\n")
    | frontmatter.map(lambda text: f"---\n{text}---\n")
    | damaged(f"---\n{REAL}---\n\n# Objective\n")
    | damaged(f"---\n{ODD}---\n")
)


@QUICK
@given(anything.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=40))
@example(b"---\n? a\n---\n")
@example(b"---\na: " + b"9" * 5000 + b"\n---\n")
@example(b"---\na: 1e999\n---\n")
@example(b"\xef\xbb\xbf---\n\xef\xbb\xbfa: x\n---\n")
def test_any_bytes_are_a_document_or_an_error_that_names_file_and_line(raw: bytes) -> None:
    try:
        document = parse_document(raw, "some/plan.md")
    except DocumentError as error:
        place = re.fullmatch(r"some/plan\.md:(\d+)(:\d+)?", error.where or "")
        assert place, error.where
        lines = len(raw.decode("utf-8", "replace").splitlines()) + 1
        assert 1 <= int(place[1]) <= lines
        return
    assert document.raw == raw
    assert set(document.spans) <= set(document.fields)
    for name, span in document.spans.items():
        assert 0 < span.start <= len(document.text), name
        assert document.text[span.start - 1] == ":", name


def test_nesting_of_any_depth_is_refused_and_does_not_end_the_process() -> None:
    script = """
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.frontmatter import DocumentError
DEEP = 200_000
for text in ("a: " + "[" * DEEP + "]" * DEEP, "a: " + "[" * DEEP, "a:\\n  " + "- " * DEEP + "x",
             "a: " + "{a: " * DEEP + "}" * DEEP, "a:\\n  " + "? " * DEEP + "x"):
    try:
        parse_document(f"---\\n{text}\\n---\\n".encode(), "plan.md")
    except DocumentError as error:
        print(error.where)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, f"ended by {done.returncode}: {done.stderr}"
    assert len(done.stdout.splitlines()) == 5
    assert all(line.startswith("plan.md:") for line in done.stdout.splitlines())


def test_aliases_that_multiply_are_refused_after_a_bounded_number_of_values() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    text = "---\n" + "\n".join(lines) + "\n---\n"
    with pytest.raises(DocumentError, match="too large or too deep") as caught:
        parse_document(text.encode(), "plan.md")
    assert caught.value.where is not None
    assert caught.value.where.startswith("plan.md:")
    with pytest.raises(DocumentError, match="too large or too deep"):
        parse_document(b"---\na: &a [*a]\n---\n", "plan.md")
