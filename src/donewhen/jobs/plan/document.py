"""A plan file: YAML frontmatter that is read as any YAML and rewritten line by line, and a Markdown body.

A rewrite touches the values of the fields that change. Everything else stays as it is, byte for byte: comments, order,
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
    """A plan file as it is on disk, and what it says."""

    text: str
    fields: Mapping[str, Value]
    spans: Mapping[str, Span]
    body_start: int
    frontmatter_end: int
    """Where the closing line begins: new fields go before it."""

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
        """The line (from 1) on which a field stands."""
        span = self.spans.get(name)
        return None if span is None else span.line


def parse_document(raw: bytes, where: str) -> Document:
    """Read a plan file; ``where`` is its name for the reader of an error."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"The file is not UTF-8 text ({error.reason}).", where=f"{where}:{line}") from error
    offset = len(_BOM) if text.startswith(_BOM) else 0
    opening = _FENCE.match(text, offset)
    if opening is None:
        raise DocumentError(
            "The file has no frontmatter.", where=f"{where}:1", next_step="Begin it with a line of three dashes."
        )
    closing = _CLOSE.search(text, opening.end())
    if closing is None:
        raise DocumentError("The frontmatter has no end: a second line of three dashes is missing.", where=f"{where}:1")
    fields, spans = read_frontmatter(text, opening.end(), closing.start(), where)
    after = LINE_END.match(text, closing.end())
    return Document(text, fields, spans, after.end() if after else closing.end(), closing.start())


def rewrite_fields(document: Document, changes: Mapping[str, Value]) -> bytes:
    """The file with these fields changed; a field that is not there yet is added at the end of the frontmatter."""
    edits: list[tuple[int, int, str]] = []
    added: list[str] = []
    differing: dict[str, Value] = {}
    newline = _newline(document.text)
    for name, value in changes.items():
        if name in document.fields and _same(document.fields[name], value):
            continue
        differing[name] = value
        span = document.spans.get(name)
        if span is None:
            added.append(f"{_key(name)}:{_rendered(value, newline)}{newline}")
        else:
            edits.append(_edit(document.text, span, _rendered(value, newline)))
    if added:
        edits.append((document.frontmatter_end, document.frontmatter_end, "".join(added)))
    text = document.text
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    raw = text.encode("utf-8")
    if differing:
        _expect(raw, {**document.fields, **differing}, document, next(iter(differing)))
    return raw


def render_fields(fields: Mapping[str, Value]) -> str:
    """The lines of a new frontmatter."""
    return "".join(f"{_key(name)}:{_rendered(value, _NEW_LINE)}{_NEW_LINE}" for name, value in fields.items())


def _expect(raw: bytes, fields: Mapping[str, Value], document: Document, name: str) -> None:
    """Nothing is written that does not read as it was meant: YAML has corners (anchors, tags) where it would not."""
    try:
        found = parse_document(raw, "the new text").fields
    except DocumentError:
        found = {}
    if found != fields:
        line = document.line_of(name)
        raise DocumentError(
            f"The field {name!r} is written in a way that can't be changed line by line.",
            where=f"line {line}" if line else None,
            next_step="Write the frontmatter without anchors and tags, one field a line.",
        )


def _edit(text: str, span: Span, rendered: str) -> tuple[int, int, str]:
    start, end = span.start, span.end
    # A block scalar ends after its line break; that break stays.
    while end > start and text[end - 1] in "\r\n":
        end -= 1
    gap = re.compile(r"[ \t]*").match(text, start)
    if not span.indented and gap is not None and rendered.startswith(" "):
        # The spacing between the colon and the value is the writer's.
        kept = gap.group() or " "
        return start, end, kept + rendered[1:]
    comment = re.compile(r"[ \t]+#[^\r\n]*").match(text, start, end)
    if span.indented and comment is not None:
        rendered = rendered + comment.group() if rendered.startswith(" ") else comment.group() + rendered
    return start, end, rendered


def _rendered(value: Value, newline: str) -> str:
    """A value with what stands between it and the colon, in a form that simple readers of this format understand."""
    if isinstance(value, list):
        if not value:
            return " []"
        return "".join(f"{newline}  - {_one_line(one)}" for one in value)
    if isinstance(value, dict):
        if not value:
            return " {}"
        return "".join(f"{newline}  {_key(name)}: {_one_line(one)}" for name, one in value.items())
    return f" {_one_line(value)}"


def _one_line(value: Value, *, flow: bool = False) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        try:
            return repr(value)
        except ValueError as error:
            raise DocumentError("The number has too many digits to be written.") from error
    if isinstance(value, str):
        return value if _is_plain(value) and not (flow and "," in value) else _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(_one_line(one, flow=True) for one in value)}]"
    return f"{{{', '.join(f'{_key(name)}: {_one_line(one, flow=True)}' for name, one in value.items())}}}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name) else _quoted(name)


def _is_plain(text: str) -> bool:
    if not _PLAIN.fullmatch(text) or text != text.strip():
        return False
    return is_plain_word(text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(_escape(one) for one in escaped) + '"'


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


def _same(value: Value, other: Value) -> bool:
    # 1, 1.0 and True are equal to Python, also inside lists; what would be written tells them apart.
    return value == other and _rendered(value, "\n") == _rendered(other, "\n")


def _newline(text: str) -> str:
    found = LINE_END.search(text)
    return found.group() if found else "\n"
