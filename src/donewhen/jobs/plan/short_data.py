"""Short outputs that a program reads: JSON, literals, markup and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from donewhen.jobs.plan.filler_words import OPEN
from donewhen.jobs.plan.folded_words import fold, split_words
from donewhen.jobs.plan.placeholders import is_placeholder

_SEPARATORS = ",;\t|"


def is_data(text: str) -> bool:
    """Whether a text is nothing but data: JSON (also one value a line), Python literals, markup, or a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    return (
        _is_json(text)
        or all(_is_json(line) or _is_literal(line) for line in lines)
        or _is_markup(text)
        or _is_table(lines)
    )


def is_records(text: str) -> bool:
    """Whether a text is a list or an object in JSON, or one on each line, with something in it."""
    return text.lstrip()[:1] in ("[", "{") and text.strip() not in ("[]", "{}") and is_data(text)


def _is_json(text: str) -> bool:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return _has_values(value)


def _has_values(value: object) -> bool:
    """Whether a value has more than template text, which is that in data as well; a state such as "todo" is a value."""
    leaves = list(_leaves(value))
    return not leaves or any(not isinstance(leaf, str) or _is_value(leaf) for leaf in leaves)


def _is_value(leaf: str) -> bool:
    words = split_words(fold(leaf))
    state = len(words) == 1 and len(leaf.split()) == 1 and leaf.isalnum()
    return (state and (words[0] in _STATES or words[0] not in OPEN["en"].split())) or not is_placeholder(leaf)


_STATES = frozenset({"todo", "wip", "later", "soon", "here"})


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _is_literal(line: str) -> bool:
    """Whether a line is what Python prints for a value: `None`, `{'a': 1}`, `(1, 2)`."""
    if line in ("None", "True", "False"):
        return True
    if line[:1] not in ("(", "[", "{"):
        return False
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(line)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return _has_values(value)


def _is_markup(text: str) -> bool:
    """Whether a text consists of elements. The words between the brackets of `<describe the result>` are no attributes,
    and `<tbd>` is no element."""
    tags = [tag[1].casefold() for tag in _tag().finditer(text)]
    if not tags or all(is_placeholder(tag) and len(tag) > 1 for tag in tags):
        return False
    between = _tag().sub("", text).strip()
    return not between or (text.strip()[0] == "<" and text.strip()[-1] == ">" and "</" in text)


def _is_table(lines: list[str]) -> bool:
    """Whether a text is a header and rows with numbers, in one or more columns."""
    header, rows = lines[0], lines[1:]
    if not rows:
        return False
    separator = next((mark for mark in _SEPARATORS if mark in header), "\0")
    columns = header.count(separator)
    numbers = (
        any(cell.strip().lstrip("+-").replace(".", "", 1).isdecimal() for cell in row.split(separator)) for row in rows
    )
    return all(row.count(separator) == columns for row in rows) and all(numbers)


@cache
def _tag() -> re.Pattern[str]:
    value = r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>=`]+)"
    return re.compile(rf"</?([A-Za-z][\w:.-]*)(?:\s+[\w:.-]+={value})*\s*/?>")
