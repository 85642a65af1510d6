"""Templates. Whatever is put into one is text: escaped always, and without what hides or turns what it says."""

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
    """A page before it is markup."""

    template: str
    title: str
    values: Mapping[str, Any] = {}
    topics: tuple[Topic, ...] = ()
    """It is shown anew when one of these changes."""
    room: str = ""
    """Which of the rooms at the top it belongs to."""
    status: int = 200


def render_template(template: str, values: Mapping[str, Any]) -> str:
    """A template with its values."""
    made: str = _environment().get_template(template).render(values)
    return made


def line(value: object, limit: int = 400) -> str:
    """Any text as one harmless line."""
    return one_line(str(value), limit)


def text(value: object) -> str:
    """Any text with its lines, harmless."""
    return plain_text(str(value))


def address(value: object) -> str:
    """A name as a part of an address."""
    return quote(str(value), safe="")


def query(values: Mapping[str, object]) -> str:
    """A query string without what is empty."""
    given = {name: value for name, value in values.items() if value not in ("", None)}
    return f"?{urlencode(given)}" if given else "?"


def when(value: object) -> str:
    """A moment as the files write it, for reading."""
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
