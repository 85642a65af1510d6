"""Parses frontmatter into values and their positions: any YAML, with a fast path for simple lines."""

from __future__ import annotations

import math
import re
from typing import NamedTuple, TypeAlias

import yaml

from donewhen.foundation.errors import DonewhenError, ExitCode

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"
Read: TypeAlias = "tuple[dict[str, Value], dict[str, Span]]"

LINE_END = re.compile(r"\r\n|\n|\r")
_MAX_NODES = 100_000
_MAX_DEPTH = 50
# Python converts at most 4300 digits to a number; longer ones, and numbers with leading zeros, stay text.
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,4000})")
_FLOAT = re.compile(r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
# What YAML 1.1 and Python parse as numbers and dates.
_LIKE_A_NUMBER = re.compile(r"[-+.]?[0-9][0-9a-fobx_.+-]*|[-+]?\.?(?:inf|infinity|nan)", re.IGNORECASE)
_COLON = re.compile(r"[ \t]*:")
_NULLS = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DocumentError(DonewhenError):
    """A plan file can't be read. Other files can still be used."""

    code = "document"
    exit_code = ExitCode.USAGE


class Span(NamedTuple):
    """The position of a field's value in the text."""

    line: int
    start: int
    end: int
    indented: bool
    """Whether the value starts on a line below its key."""


def read_frontmatter(text: str, start: int, end: int, where: str) -> Read:
    """Parse the fields in ``text[start:end]``; return them with their positions in ``text``."""
    return read_simple_fields(text, start, end) or read_yaml_fields(text, start, end, where)


def read_yaml_fields(text: str, start: int, end: int, where: str) -> Read:
    """Parse any frontmatter with a YAML parser."""
    return _Reader(text, start, end, where).read()


# Most frontmatter is a few dozen lines of `name: word` and lists of words. With thousands of jobs it pays to read that
# without a YAML parser; if any line is more complex, the parser reads all of it.
_SAFE = r"\w !$%&()*+,./;<=>?@^|~\-"
_WORDS = r"[\w./<(](?:[\w!$%&()*+,./;<=>?@^|~-]|:(?=[\w/])|[ ](?=[\w!$%&()*+,./;<=>?@^|~-]))*"
_SIMPLE_VALUE = rf"""(?P<words>{_WORDS})|"(?P<double>[{_SAFE}:'#\[\]{{}}`]*)"|'(?P<single>[{_SAFE}:"#\[\]{{}}`]*)'"""
_SIMPLE_LINE = re.compile(
    rf"(?P<name>[A-Za-z_][\w-]{{0,99}}):(?:[ ]+(?:{_SIMPLE_VALUE}|(?P<list>\[\])|(?P<table>\{{\}})))?[ ]*\n"
)
_SIMPLE_ITEM = re.compile(rf"(?P<indent>[ ]*)-[ ]+(?:{_SIMPLE_VALUE})[ ]*\n")


def read_simple_fields(text: str, start: int, end: int) -> Read | None:
    """Parse frontmatter of simple lines only; return None if it needs a YAML parser."""
    fields: dict[str, Value] = {}
    spans: dict[str, Span] = {}
    line = line_number(text, start)
    name = ""
    colon = 0
    items: list[Value] | None = None
    indent = ""
    while start < end:
        match = _SIMPLE_LINE.match(text, start, end)
        if match is not None:
            name = match["name"]
            if name in fields:
                return None
            colon = match.end("name") + 1
            kind = match.lastgroup
            items = [] if kind == "name" else None
            if kind == "list":
                fields[name] = []
            elif kind == "table":
                fields[name] = {}
            else:
                fields[name] = None if kind == "name" else _simple_value(match)
            quote = 1 if kind in ("double", "single") else 0
            spans[name] = Span(line, colon, colon if kind in (None, "name") else match.end(kind) + quote, False)
        else:
            match = _SIMPLE_ITEM.match(text, start, end)
            if match is None or items is None or (items and match["indent"] != indent):
                return None
            indent = match["indent"]
            items.append(_simple_value(match))
            fields[name] = items
            quote = 0 if match.lastgroup == "words" else 1
            spans[name] = Span(spans[name].line, colon, match.end(match.lastgroup or 0) + quote, True)
        start = match.end()
        line += 1
    return fields, spans


def _simple_value(match: re.Match[str]) -> Value:
    kind = match.lastgroup or ""
    return plain_value(match[kind]) if kind == "words" else match[kind]


class _Reader:
    """Composes the YAML and converts it to values, with the position of each top-level value."""

    def __init__(self, text: str, start: int, end: int, where: str) -> None:
        self._text = text
        self._start = start
        self._source = text[start:end]
        self._where = where
        self._first_line = line_number(text, start)
        self._nodes = 0

    def read(self) -> Read:
        try:
            self._check_depth()
            root = yaml.compose(self._source, Loader=_LOADER)
        except yaml.YAMLError as error:
            raise self._yaml_error(error) from error
        if root is None:
            return {}, {}
        if not isinstance(root, yaml.MappingNode):
            raise self._error_at(root, "The frontmatter must consist of fields with values")
        if root.flow_style:
            raise self._error_at(root, "The frontmatter is written in braces; write one field per line")
        fields: dict[str, Value] = {}
        spans: dict[str, Span] = {}
        for key, value in root.value:
            name = self._name(key)
            if name in fields:
                raise self._error_at(key, f"The field {name!r} occurs twice")
            fields[name] = self._value(value, 0)
            if (span := self._span(key, value)) is not None:
                spans[name] = span
        return fields, spans

    def _check_depth(self) -> None:
        """Refuse deep nesting: the C composer recurses for every level and would overflow the stack."""
        depth = 0
        for event in yaml.parse(self._source, Loader=_LOADER):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _MAX_DEPTH + 2:
                    line = self._first_line + (event.start_mark.line if event.start_mark else 0)
                    raise DocumentError(
                        "The frontmatter is too large or too deeply nested.", where=f"{self._where}:{line}"
                    )
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1

    def _value(self, node: yaml.Node, depth: int) -> Value:
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise self._error_at(node, "The frontmatter is too large or too deeply nested")
        if not node.tag.startswith("tag:yaml.org,2002:"):
            raise self._error_at(node, f"Unknown YAML tag {node.tag!r}")
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            table: dict[str, Value] = {}
            for key, value in node.value:
                name = self._name(key)
                if name in table:
                    raise self._error_at(key, f"The key {name!r} occurs twice")
                table[name] = self._value(value, depth + 1)
            return table
        return _scalar(node)

    def _name(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._error_at(node, "A field's name must be plain text")
        return str(node.value)

    def _span(self, key: yaml.Node, value: yaml.Node) -> Span | None:
        """The position of a value; None if the field is not written as ``name: value`` (a complex key or an alias)."""
        line = self._first_line + key.start_mark.line
        after_key = self._start + key.end_mark.index
        match = _COLON.match(self._text, after_key)
        if match is None:
            return None
        colon = match.end()
        empty = isinstance(value, yaml.ScalarNode) and value.start_mark.index == value.end_mark.index
        if empty:
            return Span(line, colon, colon, indented=False)
        start = self._start + value.start_mark.index
        # Everything between the colon and the value (spaces, a line break, an anchor, a tag) belongs to the value.
        indented = "\n" in self._text[colon:start] or "\r" in self._text[colon:start]
        end = self._start + _true_end(value)
        return Span(line, colon, end, indented) if start >= colon and end >= start else None

    def _error_at(self, node: yaml.Node, message: str) -> DocumentError:
        mark = node.start_mark
        return DocumentError(f"{message}.", where=f"{self._where}:{self._first_line + mark.line}:{mark.column + 1}")

    def _yaml_error(self, error: yaml.YAMLError) -> DocumentError:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        place = f":{self._first_line + mark.line}:{mark.column + 1}" if mark is not None else f":{self._first_line}"
        return DocumentError(
            f"The frontmatter is not valid YAML: {problem}.",
            where=f"{self._where}{place}",
            next_step="Quote text that contains ': ' or ' #'.",
        )


def _scalar(node: yaml.Node) -> Value:
    """Only YAML's core schema: `off`, `no` and dates stay text."""
    text = str(node.value)
    return text if getattr(node, "style", None) else plain_value(text)


def plain_value(text: str) -> Value:
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text[0] not in "+-.0123456789":
        return text
    if _INT.fullmatch(text):
        return int(text)
    number = float(text) if _FLOAT.fullmatch(text) else math.inf
    return number if math.isfinite(number) else text


def _true_end(node: yaml.Node) -> int:
    """The offset at which a value ends; for block collections the parser gives the start of the next token."""
    if isinstance(node, yaml.ScalarNode) or getattr(node, "flow_style", False):
        return int(node.end_mark.index)
    last = node.value[-1]
    return _true_end(last[1] if isinstance(last, tuple) else last)


def is_plain_word(text: str) -> bool:
    """Whether a text can be written without quotes and is still read as the same text, also by YAML 1.1 parsers."""
    special = text.lower() in ("yes", "no", "on", "off", "y", "n") or _LIKE_A_NUMBER.fullmatch(text) is not None
    return not special and plain_value(text) == text


def line_number(text: str, position: int) -> int:
    """The line number (from 1) of a position."""
    return len(LINE_END.findall(text, 0, position)) + 1
