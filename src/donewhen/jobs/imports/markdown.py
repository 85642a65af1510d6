"""The small part of Markdown that sources use: comments, checkboxes and lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from donewhen.foundation.plain_text import visible_text
from donewhen.jobs.plan.criteria import fence_after

Line = tuple[int, str]

_BOX = re.compile(r"[ \t]*[-*+][ \t]+\[([ xX~-]?)\][ \t]*(.*)")
_ITEM = re.compile(r"[ ]{0,3}(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(.*)")
_HEADING = re.compile(r"#{1,6}[ \t]")
_RULE = re.compile(r"[ ]{0,3}(?:-[ \t]*){3,}|[ ]{0,3}(?:\*[ \t]*){3,}")


class Box(NamedTuple):
    """A list item with its continuation lines; ``ticked`` is its checkbox."""

    line: int
    ticked: bool
    text: str


class Lines(NamedTuple):
    """The list items of a text, and the lines that belong to none."""

    items: tuple[Box, ...]
    others: tuple[Line, ...]


def normalise_text(text: str) -> str:
    """Normalise line ends and remove hidden characters and comments; every line keeps its number."""
    return _without_comments(visible_text(text))


def _without_comments(text: str) -> str:
    """Remove ``<!-- … -->``; a comment without an end stays. In one pass over the text."""
    parts: list[str] = []
    start = 0
    while (opening := text.find("<!--", start)) >= 0:
        closing = text.find("-->", opening)
        if closing < 0:
            break
        parts += (text[start:opening], "\n" * text.count("\n", opening, closing))
        start = closing + len("-->")
    return "".join((*parts, text[start:]))


def checkbox_items(lines: Iterable[Line]) -> Lines:
    """Return the items with checkboxes at any indentation; fenced code is skipped."""
    return _parse_list(lines, with_box=True)


def list_items(lines: Iterable[Line]) -> Lines:
    """Return the items of unindented lists, with or without checkboxes."""
    return _parse_list(lines, with_box=False)


def _parse_list(lines: Iterable[Line], *, with_box: bool) -> Lines:
    items: list[tuple[int, bool, list[str]]] = []
    others: list[Line] = []
    fence = ""
    open_item = False
    for number, line in lines:
        before, fence = fence, fence_after(line, fence)
        if before or fence:
            continue
        box = _BOX.fullmatch(line)
        item = None if box or with_box else _ITEM.fullmatch(line)
        if not line.strip() or _RULE.fullmatch(line):
            # An indented paragraph after a blank line still belongs to the item.
            continue
        if box:
            items.append((number, box[1] in ("x", "X"), [box[2]]))
            open_item = True
        elif item:
            items.append((number, False, [item[1]]))
            open_item = True
        elif open_item and line[:1] in " \t":
            items[-1][2].append(line)
        else:
            open_item = False
            others.append((number, line))
    return Lines(
        tuple(Box(number, ticked, " ".join(" ".join(texts).split())) for number, ticked, texts in items), tuple(others)
    )


def without_marks(text: str) -> str:
    """Remove the marks for bold text."""
    return text.replace("**", "").replace("__", "").strip()


def own_lines(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return the lines of a section up to its first heading."""
    own: list[Line] = []
    fence = ""
    for number, line in lines:
        fence = fence_after(line, fence)
        if not fence and _HEADING.match(line):
            break
        own.append((number, line))
    return tuple(own)


def prose(lines: Iterable[Line]) -> str:
    """Join lines to a text."""
    return "\n".join(line for _, line in lines).strip()
