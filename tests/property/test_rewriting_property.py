"""Any change to any plan file: it is there, and nothing else is touched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, assume, event, example, given, settings
from hypothesis import strategies as st

from donewhen.jobs.plan.document import Document, parse_document, rewrite_fields
from donewhen.jobs.plan.frontmatter import DocumentError, Value
from donewhen_kit import examples

EXAMPLES = examples(200)
QUICK = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)

texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    [
        "", " ", "x", "a b", " a", "a ", "a: b", "a # b", "1", "1.0", "007", "1e5", "true", "null", "~", "off", "y",
        "- a", "---", "...", "a,b",
        "[a]", "{a}", "&a", "*a", "!a", "|", ">", "'", '"', "\\", "a\\nb", "a\nb", "a\r\nb", "\t", "\x00", "\x7f",
        "\x85", "\u2028", "\ufeff", "é",
        "\U0001f600", "2026-02-14", "2026-02-14T10:00:00Z", "#", ":", "a:", "x" * 200, "<<", "=", ".inf", "0x1f",
        "1_000", "\ufffe", "\uffff",
    ]
)  # fmt: skip
leaves = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=5
)
flat_values = leaves | st.lists(leaves, max_size=4)
bodies = st.sampled_from(
    ["", "\n", "# Objective\n\nx: y\n---\na: 1\n", "no end", "x\r\ny\rz\n", "- [ ] AC-1: `a: b`\n", "\ufeff\x00"]
)
newlines = st.sampled_from(["\n", "\n", "\r\n", "\r"])

VALUE_FORMS = (
        "x", "1", "1.0", "true", "null", "~", '"x: # y"', "'it''s'", "[]", "{}", "[a, b]", "{a: 1}", "[a,\n   b]",
        '"two\n  lines"', "two\n  lines",
        "\n  x", "\n  - a\n  - b", "\n- a\n- b", "\n  - a # c\n  # between\n  - 'b'", "\n  k: v\n  l: w",
        "\n  - k: v\n    l: w\n  -\n", "|\n  x\n  y",
    ">-\n  x\n  y", "|+\n  x\n\n", "&q x", "!!str 5", "\n  - - a\n    - b", "é", "\U0001f600", "\n  - |\n    x",
)  # fmt: skip
FIELD_NAMES = ("a", "b", "c", "zeta", "x-y", "unknown_key", "'quoted'", '"q: r"')


@st.composite
def documents(draw: st.DrawFn) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """A file, and for each field the bytes that its lines take (from the key to before the next field or comment)."""
    newline = draw(newlines)
    mixed = draw(st.integers(0, 9)) == 0

    def broken(text: str) -> str:
        return re.sub("\n", lambda _: draw(newlines) if mixed else newline, text)

    text = draw(st.sampled_from(["", "", "\ufeff"])) + broken(draw(st.sampled_from(["---\n", "--- \n"])))
    lines: dict[str, tuple[int, int]] = {}
    for name in draw(st.permutations(FIELD_NAMES))[: draw(st.integers(0, 5))]:
        text += broken(draw(st.sampled_from(["", "", "# comment: one\n", "\n", " # indented comment\n"])))
        form = draw(st.sampled_from(VALUE_FORMS) | st.just(""))
        gap = "" if form.startswith("\n") or not form else draw(st.sampled_from([" ", " ", "   ", "\t"]))
        tail = (
            draw(st.sampled_from(["", "", " ", " # tail: x"]))
            if not form.startswith(("|", ">")) and "|" not in form
            else ""
        )
        start = len(text)
        text += broken(f"{name}:{gap}{form}{tail}\n")
        lines[str(name).strip("'\"")] = (start, len(text))
    text += broken(draw(st.sampled_from(["---\n", "---", "---\t\n", "# last comment\n---\n"])))
    text += draw(bodies) if text[-1] in "\r\n" else ""
    return text.encode(), lines


def unchanged_outside(
    before: str, after: str, lines: Mapping[str, tuple[int, int]], changed: set[str], end: int
) -> None:
    """Every stretch of text between changed fields is still there, in its place, byte for byte."""
    kept, place = [], 0
    for start, stop in sorted(lines[name] for name in changed if name in lines):
        kept.append(before[place:start])
        place = stop
    kept += [before[place:end], before[end:]]
    assert after.startswith(kept[0]), (before, after)
    assert after.endswith(kept[-1]), (before, after)
    found = 0
    for piece in kept:
        found = after.find(piece, found)
        assert found >= 0, (before, after, piece)
        found += len(piece)


@QUICK
@given(
    documents(),
    st.dictionaries(
        st.sampled_from([*(name.strip("'\"") for name in FIELD_NAMES), "new", "neu: é"]), values, min_size=1, max_size=3
    ),
)
def test_a_rewrite_touches_only_the_lines_of_what_changes(
    made: tuple[bytes, dict[str, tuple[int, int]]], changes: dict[str, Value]
) -> None:
    raw, lines = made
    document = readable(raw)
    try:
        result = rewrite_fields(document, changes)
    except DocumentError:
        event("refused")
        return
    event("written")
    again = parse_document(result, "plan.md")
    expected = {**document.fields, **changes}
    assert typed(again.fields) == typed(expected)
    changed = {name for name, value in changes.items() if typed(document.fields.get(name, ...)) != typed(value)}
    unchanged_outside(raw.decode(), result.decode(), lines, changed, document.frontmatter_end)
    assert again.body == document.body
    assert rewrite_fields(again, changes) == result


@QUICK
@given(documents())
def test_a_rewrite_with_the_same_values_gives_the_same_bytes(made: tuple[bytes, object]) -> None:
    document = readable(made[0])
    assert rewrite_fields(document, document.fields) == made[0]
    assert rewrite_fields(document, {}) == document.raw == made[0]


PLAIN_FORMS = tuple(form for form in VALUE_FORMS if "&" not in form and "!" not in form)


@QUICK
@given(st.sampled_from(PLAIN_FORMS), newlines, flat_values, st.booleans())
def test_any_value_can_be_written_over_any_other_that_has_no_anchor_or_tag(
    form: str, newline: str, value: Value, last: bool
) -> None:
    assume("\ufffe" not in repr(value))
    gap = "" if form.startswith("\n") else " "
    text = f"---\nfirst: 1\na:{gap}{form}\n{'' if last else 'z: 1'}\n---\nbody\n".replace("\n", newline)
    document = parse_document(text.encode(), "plan.md")
    again = parse_document(rewrite_fields(document, {"a": value}), "plan.md")
    assert typed(again.fields) == typed({**document.fields, "a": value})


@QUICK
@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), values, min_size=1, max_size=4))
def test_any_values_can_be_written_as_new_fields(fields: dict[str, Value]) -> None:
    again = parse_document(rewrite_fields(parse_document(b"---\n---\n", "plan.md"), fields), "plan.md")
    assert typed(again.fields) == typed(fields)


def readable(raw: bytes) -> Document:
    try:
        return parse_document(raw, "plan.md")
    except DocumentError:
        assume(False)
        raise


ODD = """\
base: &base
  k: v
one: &one 5 # five
two: *one
list:
  - *one
  - &three x
three: *three
copy: *base
merged:
  <<: *base
tagged: !!str 12
flow: {a: [1, 2], b: *one}
? key # note: here
: value
block: |+
  # not a comment
  text

# after
*three : z
last: >-
  folded
  text
"""


@QUICK
@given(
    st.dictionaries(
        st.sampled_from([*parse_document(f"---\n{ODD}---\n".encode(), "x").fields, "new"]),
        flat_values,
        min_size=1,
        max_size=3,
    )
)
def test_a_file_with_anchors_aliases_and_tags_is_changed_rightly_or_refused(changes: dict[str, Value]) -> None:
    body = "# Objective: x\n---\nkey: z\n"
    document = parse_document(f"---\n{ODD}---\n{body}".encode(), "plan.md")
    try:
        result = rewrite_fields(document, changes)
    except DocumentError as error:
        event("refused")
        assert "anchors" in (error.next_step or "")
        return
    event("written")
    again = parse_document(result, "plan.md")
    assert typed(again.fields) == typed({**document.fields, **changes})
    assert again.body == body
    starts = {
        name: index for index, line in enumerate(ODD.splitlines()) if (name := line.split(":")[0]) in document.fields
    }
    changed_lines = set[int]()
    for name in changes:
        if name in starts:
            following = [index for index in starts.values() if index > starts[name]]
            changed_lines |= set(range(starts[name], min([*following, len(ODD.splitlines())])))
    for index, line in enumerate(ODD.splitlines()):
        if index not in changed_lines or line == "# after":
            assert line in result.decode().splitlines(), (line, changes)


def typed(value: Any) -> Any:
    """A form in which 1, 1.0 and True are three things."""
    if isinstance(value, Mapping):
        return {name: typed(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [typed(one) for one in value]
    return type(value).__name__, repr(value)


class LineReader:
    """As simple as a reader of this format can be: it knows no YAML."""

    def __init__(self, text: str) -> None:
        self.fields: dict[str, Any] = {}
        name = ""
        for line in text.splitlines():
            if line.startswith("  - "):
                if self.fields[name] is None:
                    self.fields[name] = []
                self.fields[name].append(self.scalar(line[4:]))
            else:
                name, colon, rest = line.partition(":")
                assert colon and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name), line
                assert name not in self.fields, line
                assert rest == "" or rest.startswith(" "), line
                self.fields[name] = self.scalar(rest.strip())

    def scalar(self, text: str) -> Any:
        if text in ("[]", "{}", ""):
            return {"[]": [], "{}": {}, "": None}[text]
        if text.startswith('"'):
            assert len(text) >= 2 and text.endswith('"'), text
            named = {"n": "\n", "r": "\r", "t": "\t"}
            return re.sub(
                r"\\(u([0-9a-f]{4})|.)", lambda m: chr(int(m[2], 16)) if m[2] else named.get(m[1], m[1]), text[1:-1]
            )
        assert not re.search(r"[:#'\[\]{}]", text), f"needs quotes: {text}"
        if text in ("null", "true", "false"):
            return {"null": None, "true": True, "false": False}[text]
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        return text


printable = st.text(st.characters(codec="utf-8", exclude_characters="\x0b\x0c\ufffe\uffff"), max_size=12)
simple_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | printable
)


@QUICK
@given(
    st.dictionaries(
        st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True),
        simple_leaves | st.lists(simple_leaves, max_size=4) | st.just({}),
    )
)
@example({"a": "1_000", "b": "infinity", "c": "nan", "d": "1e5", "e": "0x1f", "f": "٣"})
def test_what_is_written_is_understood_by_a_reader_of_single_lines(fields: dict[str, Value]) -> None:
    over = parse_document(b"---\na: 'old'\nb:\n- x\n---\nbody\n", "plan.md")
    for document in (parse_document(b"---\n---\n", "plan.md"), over):
        text = rewrite_fields(document, fields).decode()
        frontmatter_text = text.removeprefix("---\n").partition("---\n")[0]
        changed = {
            name: value
            for name, value in fields.items()
            if name not in document.fields or value != document.fields[name]
        }
        read = LineReader(only(frontmatter_text, set(changed))).fields
        assert typed(read) == typed(changed)


def only(text: str, wanted: set[str]) -> str:
    """The lines of these fields."""
    kept, keep = [], False
    for line in text.split("\n"):
        if not line.startswith((" ", "-")):
            keep = line.partition(":")[0] in wanted
        kept += [line] if keep else []
    return "\n".join(kept)
