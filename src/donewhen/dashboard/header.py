"""The header that all pages in a browser share: the dashboard's views and, where a server runs, its other pages."""

from __future__ import annotations

from typing import NamedTuple

from donewhen.dashboard.assets import asset
from donewhen.foundation.plain_text import escape_html

_VIEWS = ("board", "graph", "numbers", "ledger")


class Server(NamedTuple):
    """What a served page has in addition: where it links to, and how it is updated."""

    base: str
    """The start of every address."""
    mark: str
    """The version of the data in the page."""
    account: str
    """Markup about the reader, for the header."""
    pages: tuple[str, ...] = ("review", "missions")
    scripts: tuple[str, ...] = ()
    """Names of the scripts that update the dashboard."""


def page_header(server: Server, current: str) -> str:
    """Return the header of another served page, with links to the dashboard; ``current`` names the page's entry."""
    return _header(server, f"{server.base}/", current)


def dashboard_header(server: Server | None) -> str:
    """Return the header of the dashboard, whose script marks the view; without a server, that of the file."""
    return _header(server, "", "")


def _header(server: Server | None, home: str, current: str) -> str:
    addresses = {name: f"{home}#view={name}" for name in _VIEWS} | {"board": home or "#"}
    links = [_link(address, name, current, view=True) for name, address in addresses.items()]
    if server is not None:
        links += [_link(f"{server.base}/{name}", name, current) for name in server.pages]
    slots = {
        "home": escape_html(home or "#"),
        "links": "".join(links),
        "account": "" if server is None else server.account,
    }
    return "".join(part if at % 2 == 0 else slots[part] for at, part in enumerate(asset("top.html").split("%%")))


def _link(address: str, name: str, current: str, view: bool = False) -> str:
    attributes = (f' data-view="{name}"' if view else "") + (' aria-current="page"' if name == current else "")
    return f'<a href="{escape_html(address)}"{attributes}>{name.title()}</a>'
