"""What the frontmatter says, and where each of its values stands: any YAML, quickly where it is simple."""

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
# Python turns no more than 4300 digits into a number; longer ones, and leading zeros, stay the words they are.
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,4000})")
_FLOAT = re.compile(r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
# What YAML 1.1 and Python take for numbers and dates.
_LIKE_A_NUMBER = re.compile(r"[-+.]?[0-9][0-9a-fobx_.+-]*|[-+]?\.?(?:inf|infinity|nan)", re.IGNORECASE)
_COLON = re.compile(r"[ \t]*:")
_NULLS = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DocumentError(DonewhenError):
    """A plan file can't be read. One such file never stops work on the others."""

    code = "document"
    exit_code = ExitCode.USAGE


class Span(NamedTuple):
    """Where a field's value stands in the text."""

    line: int
    start: int
    end: int
    indented: bool
    """Whether the value begins on a line of its own below its key."""


def read_frontmatter(text: str, start: int, end: int, where: str) -> Read:
    """The fields in ``text[start:end]``, and their places in ``text``."""
    return read_simple_fields(text, start, end) or read_yaml_fields(text, start, end, where)


def read_yaml_fields(text: str, start: int, end: int, where: str) -> Read:
    """The same by a YAML parser, whatever it is."""
    return _Reader(text, start, end, where).read()


# Most frontmatter is a few dozen lines of `name: word` and lists of words. With thousands of jobs it pays to read that
# without a YAML parser; at the first line that is anything else, the parser reads the whole.
_SAFE = r"\w !$%&()*+,./;<=>?@^|~\-"
_WORDS = r"[\w./<(](?:[\w!$%&()*+,./;<=>?@^|~-]|:(?=[\w/])|[ ](?=[\w!$%&()*+,./;<=>?@^|~-]))*"
_SIMPLE_VALUE = rf"""(?P<words>{_WORDS})|"(?P<double>[{_SAFE}:'#\[\]{{}}`]*)"|'(?P<single>[{_SAFE}:"#\[\]{{}}`]*)'"""
_SIMPLE_LINE = re.compile(
    rf"(?P<name>[A-Za-z_][\w-]{{0,99}}):(?:[ ]+(?:{_SIMPLE_VALUE}|(?P<list>\[\])|(?P<table>\{{\}})))?[ ]*\n"
)
_SIMPLE_ITEM = re.compile(rf"(?P<indent>[ ]*)-[ ]+(?:{_SIMPLE_VALUE})[ ]*\n")


def read_simple_fields(text: str, start: int, end: int) -> Read | None:
    """The fields, where all of them are of the simple kind; None for the parser to have a look."""
    fields: dict[str, Value] = {}
    spans: dict[str, Span] = {}
    line = line_number(text, start)
    name = ""
    colon = 0
    items: list[Value] | None = None
    indent = ""
    while start < end:
        found = _SIMPLE_LINE.match(text, start, end)
        if found is not None:
            name = found["name"]
            if name in fields:
                return None
            colon = found.end("name") + 1
            kind = found.lastgroup
            items = [] if kind == "name" else None
            if kind == "list":
                fields[name] = []
            elif kind == "table":
                fields[name] = {}
            else:
                fields[name] = None if kind == "name" else _simple_value(found)
            quote = 1 if kind in ("double", "single") else 0
            spans[name] = Span(line, colon, colon if kind in (None, "name") else found.end(kind) + quote, False)
        else:
            found = _SIMPLE_ITEM.match(text, start, end)
            if found is None or items is None or (items and found["indent"] != indent):
                return None
            indent = found["indent"]
            items.append(_simple_value(found))
            fields[name] = items
            quote = 0 if found.lastgroup == "words" else 1
            spans[name] = Span(spans[name].line, colon, found.end(found.lastgroup or 0) + quote, True)
        start = found.end()
        line += 1
    return fields, spans


def _simple_value(found: re.Match[str]) -> Value:
    kind = found.lastgroup or ""
    return plain_value(found[kind]) if kind == "words" else found[kind]


class _Reader:
    """Composes the YAML and turns it into values, with the place of each top-level value."""

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
            raise self._error(error) from error
        if root is None:
            return {}, {}
        if not isinstance(root, yaml.MappingNode):
            raise self._at(root, "The frontmatter must be fields with values")
        if root.flow_style:
            raise self._at(root, "The frontmatter is written in braces; write one field a line")
        fields: dict[str, Value] = {}
        spans: dict[str, Span] = {}
        for key, value in root.value:
            name = self._name(key)
            if name in fields:
                raise self._at(key, f"The field {name!r} occurs twice")
            fields[name] = self._value(value, 0)
            if (span := self._span(key, value)) is not None:
                spans[name] = span
        return fields, spans

    def _check_depth(self) -> None:
        """The composer calls itself for every level, in C: deep nesting would end the process before it is noticed."""
        depth = 0
        for event in yaml.parse(self._source, Loader=_LOADER):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _MAX_DEPTH + 2:
                    line = self._first_line + (event.start_mark.line if event.start_mark else 0)
                    raise DocumentError("The frontmatter is too large or too deep.", where=f"{self._where}:{line}")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1

    def _value(self, node: yaml.Node, depth: int) -> Value:
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise self._at(node, "The frontmatter is too large or too deep")
        if not node.tag.startswith("tag:yaml.org,2002:"):
            raise self._at(node, f"The tag {node.tag!r} is not known")
        if isinstance(node, yaml.SequenceNode):
            return [self._value(one, depth + 1) for one in node.value]
        if isinstance(node, yaml.MappingNode):
            table: dict[str, Value] = {}
            for key, value in node.value:
                name = self._name(key)
                if name in table:
                    raise self._at(key, f"The key {name!r} occurs twice")
                table[name] = self._value(value, depth + 1)
            return table
        return _scalar(node)

    def _name(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._at(node, "A field's name must be plain text")
        return str(node.value)

    def _span(self, key: yaml.Node, value: yaml.Node) -> Span | None:
        """None where the field is not written as ``name: value``: with a question mark, or as an alias."""
        line = self._first_line + key.start_mark.line
        after_key = self._start + key.end_mark.index
        found = _COLON.match(self._text, after_key)
        if found is None:
            return None
        colon = found.end()
        empty = isinstance(value, yaml.ScalarNode) and value.start_mark.index == value.end_mark.index
        if empty:
            return Span(line, colon, colon, indented=False)
        start = self._start + value.start_mark.index
        # What stands between the colon and the value (spaces, a line break, an anchor, a tag) goes with the value.
        indented = "\n" in self._text[colon:start] or "\r" in self._text[colon:start]
        end = self._start + _true_end(value)
        return Span(line, colon, end, indented) if start >= colon and end >= start else None

    def _at(self, node: yaml.Node, message: str) -> DocumentError:
        mark = node.start_mark
        return DocumentError(f"{message}.", where=f"{self._where}:{self._first_line + mark.line}:{mark.column + 1}")

    def _error(self, error: yaml.YAMLError) -> DocumentError:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error).split("\n")[0]
        place = f":{self._first_line + mark.line}:{mark.column + 1}" if mark is not None else f":{self._first_line}"
        return DocumentError(
            f"The frontmatter is not valid YAML: {what}.",
            where=f"{self._where}{place}",
            next_step="Text with ': ' or ' #' in it needs quotes.",
        )


def _scalar(node: yaml.Node) -> Value:
    """YAML's core schema, and no more: `off`, `no` and dates stay the words they are."""
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
    """Where a value really ends: for block collections the parser names the start of what follows."""
    if isinstance(node, yaml.ScalarNode) or getattr(node, "flow_style", False):
        return int(node.end_mark.index)
    last = node.value[-1]
    return _true_end(last[1] if isinstance(last, tuple) else last)


def is_plain_word(text: str) -> bool:
    """Whether a text written without quotes would be read as this very text, also by readers of older YAML."""
    old = text.lower() in ("yes", "no", "on", "off", "y", "n") or _LIKE_A_NUMBER.fullmatch(text) is not None
    return not old and plain_value(text) == text


def line_number(text: str, position: int) -> int:
    """The number (from 1) of the line in which a position stands."""
    return len(LINE_END.findall(text, 0, position)) + 1
