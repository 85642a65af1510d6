"""Text for people in screenfuls, with one key each.

Not with the program that PAGER names: anybody may set it, and what a person agrees to is what they were shown.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from donewhen.cli._keys import press_key
from donewhen.cli._output import Output

_KEPT_ROWS = 2
"""Rows of the screen before that stay visible, so that nobody loses the place."""


class Line(NamedTuple):
    """One line, and how it looks."""

    text: str
    bold: bool = False
    fg: str | None = None
    dim: bool = False


class Says(Protocol):
    """Something that takes lines for people."""

    def say(self, text: str = "", *, bold: bool = False, fg: str | None = None, dim: bool = False) -> None: ...


class Page:
    """Lines that are collected before they are shown."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def say(self, text: str = "", *, bold: bool = False, fg: str | None = None, dim: bool = False) -> None:
        self.lines.append(Line(text, bold, fg, dim))


def show_lines(output: Output, lines: Sequence[Line]) -> bool:
    """Print the lines. At a terminal that they don't fit on, wait for a key after each screenful; False if the person
    left before the end."""
    rows, columns = _size_of_terminal()
    if output.json or not rows or sum(_height(line.text, columns) for line in lines) < rows:
        for line in lines:
            output.say(line.text, bold=line.bold, fg=line.fg, dim=line.dim)
        return True
    used, room = 0, rows - 1
    for number, line in enumerate(lines):
        height = _height(line.text, columns)
        if used and used + height > room:
            asked = _ask_for_more(output, len(lines) - number)
            if asked == "quit":
                return False
            used, room = (0, 1_000_000_000) if asked == "all" else (0, rows - 1 - _KEPT_ROWS)
        output.say(line.text, bold=line.bold, fg=line.fg, dim=line.dim)
        used += height
    return True


def _ask_for_more(output: Output, left: int) -> str:
    while True:
        key = press_key(output, f"── {left} more lines · space next screen · a all · q stop reading ──").lower()
        if key in (" ", "\r", "\n"):
            return "next"
        if key == "a":
            return "all"
        if key in ("q", "\x04", ""):
            return "quit"


def _size_of_terminal() -> tuple[int, int]:
    """Rows and columns; no rows if nobody is at a terminal, or its size is not known."""
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        return 0, 80
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return 0, 80
    return (size.lines, size.columns) if size.columns else (0, 80)


def _height(text: str, columns: int) -> int:
    width = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
    return max(1, -(-width // columns))
