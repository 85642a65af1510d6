"""Render the dashboard: one page, written as a file that needs nothing else, or sent by a server with live data."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple
from urllib.parse import quote

from donewhen.dashboard.assets import asset, dashboard_script, dashboard_style
from donewhen.dashboard.data import Board, JobRow
from donewhen.dashboard.seal import DATA_END, DATA_START, seal_page

_MAX_ROWS = 200
"""Maximum number of jobs listed if scripts are disabled."""
_HEADINGS = ("job", "title", "status", "score", "iterations", "depends on", "next action")
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
    """Names of the scripts that update the page."""


def render_dashboard(board: Board, data: bytes) -> bytes:
    """Render the page around ``data``, the encoded board, as a sealed file without external resources."""
    style, script = dashboard_style(), dashboard_script()
    policy = (
        f"default-src 'none'; script-src {_csp_hash(script)}; style-src {_csp_hash(style)}; base-uri 'none'; "
        "form-action 'none'"
    )
    slots = {
        "policy": f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        "style": f"<style>{style}</style>",
        "script": f"<script>{script}</script>",
        "attributes": "",
        "elsewhere": "",
        "top": _top(None, "", ""),
    }
    return seal_page(_join(slots | _texts(board, None), data))


def serve_dashboard(board: Board, data: bytes, server: Server) -> bytes:
    """Render the same page for a server, which sends style and scripts separately and forbids others by a header."""
    scripts = ("dashboard.js", *server.scripts)
    links = " ".join(f'<a href="{html.escape(server.base)}/{name}">{name.title()}</a>' for name in server.pages)
    slots = {
        "policy": "",
        "style": '<link rel="icon" href="/static/mark.svg" type="image/svg+xml">\n'
        '<link rel="stylesheet" href="/static/dashboard.css">',
        "script": "\n".join(f'<script src="/static/{name}" defer></script>' for name in scripts),
        "attributes": f' data-server="{html.escape(server.base)}" data-mark="{html.escape(server.mark)}" '
        'data-topics="jobs"',
        "elsewhere": f" {links}",
        "top": _top(server, "", ""),
    }
    return _join(slots | _texts(board, server), data)


def page_top(server: Server, current: str) -> str:
    """Return the header of another served page, with links to the dashboard; ``current`` names the page's entry."""
    return _top(server, f"{server.base}/", current)


def _top(server: Server | None, home: str, current: str) -> str:
    """Return a header; ``home`` is the dashboard's address, empty on the dashboard, whose script marks the view."""
    addresses = {name: f"{home}#view={name}" for name in _VIEWS} | {"board": home or "#"}
    links = [_link(address, name, current, view=True) for name, address in addresses.items()]
    if server is not None:
        links += [_link(f"{server.base}/{name}", name, current) for name in server.pages]
    slots = {
        "home": html.escape(home or "#"),
        "links": "".join(links),
        "account": "" if server is None else server.account,
    }
    return "".join(part if at % 2 == 0 else slots[part] for at, part in enumerate(asset("top.html").split("%%")))


def _link(address: str, name: str, current: str, view: bool = False) -> str:
    attributes = (f' data-view="{name}"' if view else "") + (' aria-current="page"' if name == current else "")
    return f'<a href="{html.escape(address)}"{attributes}>{name.title()}</a>'


def _texts(board: Board, server: Server | None) -> dict[str, str]:
    about = board.project
    counts = " · ".join(f"{count} {name.replace('_', ' ')}" for name, count in board.counts.items() if count)
    listed = list(board.jobs.values())[:_MAX_ROWS]
    left = len(board.jobs) - len(listed)
    return {
        "title": html.escape(about.title),
        "about": html.escape(f"{about.id} · {about.agreement} · {counts or 'no jobs yet'}"),
        "headings": "".join(f"<th>{heading}</th>" for heading in _HEADINGS),
        "rows": "\n".join(_row(job, server) for job in listed),
        "left": f"<p>{left} more jobs are in dashboard.json and in the task tracker.</p>" if left > 0 else "",
    }


def _row(job: JobRow, server: Server | None) -> str:
    score = "" if job.score is None else f"{job.score} of {job.target}"
    cells = (job.title, job.status.replace("_", " "), score, f"{job.iteration} of {job.max_iterations}")
    texts = (*cells, ", ".join(job.depends_on), job.blocked_reason or job.next_action)
    name = html.escape(job.id)
    if server is not None:
        name = f'<a href="{html.escape(server.base)}/jobs/{quote(job.id, safe="")}">{name}</a>'
    return f"<tr><td>{name}</td>" + "".join(f"<td>{html.escape(text)}</td>" for text in texts) + "</tr>"


def _join(slots: Mapping[str, str], data: bytes) -> bytes:
    element = DATA_START + data + DATA_END
    return b"".join(
        piece if isinstance(piece, bytes) else element if piece == "data" else slots[piece].encode()
        for piece in _pieces()
    )


@cache
def _pieces() -> tuple[bytes | str, ...]:
    """The template: fixed bytes, and the names of the slots between them."""
    parts = enumerate(asset("dashboard.html").split("%%"))
    return tuple(part.encode() if number % 2 == 0 else part for number, part in parts)


def _csp_hash(text: str) -> str:
    """The hash of a text for the Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
