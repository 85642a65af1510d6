"""A plan file: YAML frontmatter, which is rewritten line by line, and a Markdown body.

A rewrite changes only the values of the given fields. Everything else stays the same, byte for byte: comments, order,
unknown keys, quoting, line ends and the body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from donewhen.jobs.plan.frontmatter import (
    LINE_END,
    DocumentError,
    Span,
    Value,
    is_plain_word,
    line_number,
    read_frontmatter,
)

_FENCE = re.compile(r"---[ \t]*(?:\r\n|\n|\r|\Z)")
_CLOSE = re.compile(r"(?<=[\r\n])---[ \t]*(?=\r\n|\n|\r|\Z)")
_BOM = "\ufeff"
_NEW_LINE = "\n"
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9 _./,()+=@%-]*")


@dataclass(frozen=True)
class Document:
    """A plan file's text and its parsed fields."""

    text: str
    fields: Mapping[str, Value]
    spans: Mapping[str, Span]
    body_start: int
    frontmatter_end: int
    """The offset of the closing line; new fields are inserted before it."""

    @property
    def body(self) -> str:
        return self.text[self.body_start :]

    @property
    def raw(self) -> bytes:
        return self.text.encode("utf-8")

    @property
    def first_body_line(self) -> int:
        """The number (from 1) of the body's first line."""
        return line_number(self.text, self.body_start)

    def line_of(self, name: str) -> int | None:
        """The line (from 1) of a field."""
        span = self.spans.get(name)
        return None if span is None else span.line


def parse_document(raw: bytes, where: str) -> Document:
    """Parse a plan file; ``where`` is its name in error messages."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"The file is not UTF-8 text ({error.reason}).", where=f"{where}:{line}") from error
    offset = len(_BOM) if text.startswith(_BOM) else 0
    opening = _FENCE.match(text, offset)
    if opening is None:
        raise DocumentError(
            "The file has no frontmatter.", where=f"{where}:1", next_step="Start it with a line of three dashes (---)."
        )
    closing = _CLOSE.search(text, opening.end())
    if closing is None:
        raise DocumentError(
            "The frontmatter is not closed: the second line of three dashes (---) is missing.", where=f"{where}:1"
        )
    fields, spans = read_frontmatter(text, opening.end(), closing.start(), where)
    line_end = LINE_END.match(text, closing.end())
    return Document(text, fields, spans, line_end.end() if line_end else closing.end(), closing.start())


def rewrite_fields(document: Document, changes: Mapping[str, Value]) -> bytes:
    """Return the file with these fields changed; missing fields are added at the end of the frontmatter."""
    edits: list[tuple[int, int, str]] = []
    added: list[str] = []
    differing: dict[str, Value] = {}
    newline = _newline(document.text)
    for name, value in changes.items():
        if name in document.fields and _is_same(document.fields[name], value):
            continue
        differing[name] = value
        span = document.spans.get(name)
        if span is None:
            added.append(f"{_render_key(name)}:{_render_value(value, newline)}{newline}")
        else:
            edits.append(_replacement(document.text, span, _render_value(value, newline)))
    if added:
        edits.append((document.frontmatter_end, document.frontmatter_end, "".join(added)))
    text = document.text
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    raw = text.encode("utf-8")
    if differing:
        _verify_rewrite(raw, {**document.fields, **differing}, document, next(iter(differing)))
    return raw


def render_fields(fields: Mapping[str, Value]) -> str:
    """The lines of a new frontmatter."""
    return "".join(
        f"{_render_key(name)}:{_render_value(value, _NEW_LINE)}{_NEW_LINE}" for name, value in fields.items()
    )


def _verify_rewrite(raw: bytes, fields: Mapping[str, Value], document: Document, name: str) -> None:
    """Raise DocumentError unless the new text parses to these fields; with YAML anchors or tags it may not."""
    try:
        parsed = parse_document(raw, "the new text").fields
    except DocumentError:
        parsed = {}
    if parsed != fields:
        line = document.line_of(name)
        raise DocumentError(
            f"The field {name!r} is written in YAML that donewhen can't edit.",
            where=f"line {line}" if line else None,
            next_step="Write the frontmatter without anchors and tags, one field per line.",
        )


def _replacement(text: str, span: Span, rendered: str) -> tuple[int, int, str]:
    start, end = span.start, span.end
    # A block scalar includes its final line break; keep that.
    while end > start and text[end - 1] in "\r\n":
        end -= 1
    gap = re.compile(r"[ \t]*").match(text, start)
    if not span.indented and gap is not None and rendered.startswith(" "):
        # Keep the author's spacing between the colon and the value.
        kept = gap.group() or " "
        return start, end, kept + rendered[1:]
    comment = re.compile(r"[ \t]+#[^\r\n]*").match(text, start, end)
    if span.indented and comment is not None:
        rendered = rendered + comment.group() if rendered.startswith(" ") else comment.group() + rendered
    return start, end, rendered


def _render_value(value: Value, newline: str) -> str:
    """The text after a field's colon, in YAML that simple parsers understand."""
    if isinstance(value, list):
        if not value:
            return " []"
        return "".join(f"{newline}  - {_render_inline(item)}" for item in value)
    if isinstance(value, dict):
        if not value:
            return " {}"
        return "".join(f"{newline}  {_render_key(name)}: {_render_inline(item)}" for name, item in value.items())
    return f" {_render_inline(value)}"


def _render_inline(value: Value, *, flow: bool = False) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        try:
            return repr(value)
        except ValueError as error:
            raise DocumentError("The number has too many digits.") from error
    if isinstance(value, str):
        return value if _is_plain(value) and not (flow and "," in value) else _quote(value)
    if isinstance(value, list):
        return f"[{', '.join(_render_inline(item, flow=True) for item in value)}]"
    return f"{{{', '.join(f'{_render_key(name)}: {_render_inline(item, flow=True)}' for name, item in value.items())}}}"


def _render_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name) else _quote(name)


def _is_plain(text: str) -> bool:
    if not _PLAIN.fullmatch(text) or text != text.strip():
        return False
    return is_plain_word(text)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(_escape(character) for character in escaped) + '"'


def _escape(character: str) -> str:
    simple = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    if simple is not None:
        return simple
    code = ord(character)
    if (
        code < 0x20
        or 0x7F <= code < 0xA0
        or code in (0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
        or 0xD800 <= code < 0xE000
    ):
        return f"\\u{code:04x}"
    return character


def _is_same(value: Value, other: Value) -> bool:
    # Python considers 1, 1.0 and True equal, also inside lists; their rendered forms differ.
    return value == other and _render_value(value, "\n") == _render_value(other, "\n")


def _newline(text: str) -> str:
    match = LINE_END.search(text)
    return match.group() if match else "\n"
