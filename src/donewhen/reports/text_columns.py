"""Wrap and align lines for a terminal by display width; characters of many scripts take two columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from donewhen.foundation.plain_text import one_line

_NARROWEST = 24


def columns(text: str) -> int:
    """Return the display width of a text in columns."""
    return sum(map(_columns_of, text))


def wrapped(text: str, width: int, first: str = "", after: str | None = None) -> list[str]:
    """Wrap a text to ``width`` columns. ``first`` is put before the first line, ``after`` before the others.

    Terminal control sequences are removed. Words are broken only if they are longer than a line.
    """
    hanging = " " * columns(first) if after is None else after
    room = max(_NARROWEST, width) - max(columns(first), columns(hanging))
    lines: list[str] = []
    line = ""
    for word in one_line(text, 100_000).split():
        for piece in _pieces(word, room):
            if not line:
                line = piece
            elif columns(line) + 1 + columns(piece) <= room:
                line += f" {piece}"
            else:
                lines.append(line)
                line = piece
    lines.append(line)
    return [f"{first if at == 0 else hanging}{content}".rstrip() for at, content in enumerate(lines)]


def aligned(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Align rows of cells, the first column to the left and the others to the right.

    If the table is too wide, each row becomes several lines, with the headings of the first row.
    """
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        return [_line(row, widths) for row in rows]
    return [line for row in rows[1:] for line in _stacked(row, rows[0], width)]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first = row[0] + " " * (widths[0] - columns(row[0]))
    rest = (" " * (wide - columns(cell)) + cell for cell, wide in zip(row[1:], widths[1:], strict=True))
    return "  ".join([first, *rest]).rstrip()


def _stacked(row: Sequence[str], headings: Sequence[str], width: int) -> Iterator[str]:
    yield row[0]
    for heading, cell in zip(headings[1:], row[1:], strict=True):
        yield from wrapped(f"{heading} {cell}", width, "  ")


def _pieces(word: str, room: int) -> Iterator[str]:
    """Split a word that does not fit on a line; scripts without spaces are one word."""
    piece, taken = "", 0
    for letter in word:
        wide = _columns_of(letter)
        if piece and taken + wide > room:
            yield piece
            piece, taken = "", 0
        piece += letter
        taken += wide
    yield piece


def _columns_of(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
