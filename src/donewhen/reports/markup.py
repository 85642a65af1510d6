"""Building blocks of a page. Text from tickets, people and models is always escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from donewhen.dashboard.assets import base_style
from donewhen.foundation.plain_text import escape_html, one_line, plain_text

_LONG = 320
_FEW = 3


def escape_line(text: object, limit: int = 200) -> str:
    """Escape any text as one line, without markup or direction overrides."""
    return escape_html(one_line(str(text), limit))


def foreign_text(text: str) -> str:
    """Return an untrusted text in full, in its own direction; a long text is folded."""
    words = " ".join(plain_text(text).split())
    if len(words) <= _LONG:
        return f'<span dir="auto" class="foreign">{escape_html(words)}</span>'
    head = escape_html(one_line(words, _LONG))
    return f'<details class="foreign" dir="auto"><summary>{head}</summary>{escape_html(words)}</details>'


def key(name: str) -> str:
    """Return a rule key or another short name, without line breaks inside."""
    return f'<code class="key">{escape_line(name, 24)}</code>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    """Return a table of cells that are already markup. ``numbers`` are the right-aligned columns.

    Each cell carries its heading, so that a narrow screen can show a row as a list.
    """
    right = frozenset(numbers)
    head = "".join(f'<th scope="col"{_class(at in right)}>{title}</th>' for at, title in enumerate(headings))
    body = "\n".join(
        "<tr>"
        + "".join(
            f'<td data-of="{title}"{_class(at in right)}>{cell}</td>'
            for at, (title, cell) in enumerate(zip(headings, row, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def ticket_names(what: str, names: Sequence[str], most: int) -> str:
    """Return the names of tickets with their count, folded if there are many."""
    tags = [f"<code>{escape_line(name, 120)}</code>" for name in names[:most]]
    if len(names) > most:
        tags.append(f'<span class="quiet">and {len(names) - most} more</span>')
    inside = " ".join(tags)
    if len(names) <= _FEW:
        return f"{what}{inside or 'none'}"
    return f"<details><summary>{what}{len(names)} tickets</summary>{inside}</details>"


def section(title: str, *parts: str) -> str:
    """Return a section of the page; empty if it has no content."""
    body = "\n".join(part for part in parts if part)
    return f"<section><h2>{title}</h2>\n{body}\n</section>" if body else ""


def page(title: str, body: str) -> str:
    """Return a self-contained page: it loads nothing, runs no scripts, and supports light and dark mode."""
    style = base_style() + Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    head = f"{_HEAD}<title>{escape_line(title)}</title>\n<style>\n{style}</style></head>"
    return f'<!doctype html>\n<html lang="en">{head}<body class="report">\n{body}\n</body></html>\n'


def _class(number: bool) -> str:
    return ' class="number"' if number else ""


_HEAD = """<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
"""
