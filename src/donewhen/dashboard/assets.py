"""The styles and scripts of the dashboard, and the style that all pages of donewhen share."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_STYLES = ("base.css", "board.css")
_SCRIPTS = ("data.js", "theme.js", "board.js", "graph.js", "plots.js", "details.js", "page.js")
"""Joined to one script, in this order."""


@cache
def asset(name: str) -> str:
    """Return a file of this room as text."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def base_style() -> str:
    """Return the style that dashboard, served pages and reports share."""
    return asset("base.css")


def dashboard_style() -> str:
    """Return the whole style of the dashboard."""
    return "".join(map(asset, _STYLES))


def dashboard_script() -> str:
    """Return the whole script of the dashboard."""
    return "".join(map(asset, _SCRIPTS))
