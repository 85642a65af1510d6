"""Render templates. Every value is escaped, and control and direction characters are removed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from donewhen.foundation.errors import MissingExtraError
from donewhen.foundation.plain_text import one_line, plain_text
from donewhen.web.file_watch import Topic

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"


class PageContent(NamedTuple):
    """A page before rendering."""

    template: str
    title: str
    values: Mapping[str, Any] = {}
    topics: tuple[Topic, ...] = ()
    """The page is rendered again when one of these changes."""
    room: str = ""
    """The navigation entry that the page belongs to."""
    status: int = 200


def render_template(template: str, values: Mapping[str, Any]) -> str:
    """Render a template with its values."""
    made: str = _environment().get_template(template).render(values)
    return made


def line(value: object, limit: int = 400) -> str:
    """Return any text as one sanitised line."""
    return one_line(str(value), limit)


def text(value: object) -> str:
    """Return any text with its line breaks, sanitised."""
    return plain_text(str(value))


def address(value: object) -> str:
    """Quote a name as a part of a URL."""
    return quote(str(value), safe="")


def query(values: Mapping[str, object]) -> str:
    """Return a query string without empty values."""
    filled = {name: value for name, value in values.items() if value not in ("", None)}
    return f"?{urlencode(filled)}" if filled else "?"


def when(value: object) -> str:
    """Format a timestamp for display."""
    return one_line(str(value), 40).replace("T", " ").removesuffix("Z")


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("The page", "web") from None
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(line=line, text=text, address=address, query=query, when=when)
    return made
