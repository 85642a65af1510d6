"""The fixed parts of the dashboard's page, and the slots between them that depend on the data."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from donewhen.dashboard.assets import asset, dashboard_script, dashboard_style
from donewhen.dashboard.header import Server, dashboard_header
from donewhen.foundation.plain_text import escape_html

_HEADINGS = ("job", "title", "status", "score", "iterations", "depends on", "next action")


class Skeleton(NamedTuple):
    """The start of a page, then slots by name, each with the fixed bytes that follow it."""

    start: bytes
    slots: tuple[tuple[str, bytes], ...]


@cache
def file_skeleton() -> Skeleton:
    """Return the page as a file: everything inside, and a policy that allows nothing else."""
    style, script = dashboard_style(), dashboard_script()
    policy = (
        f"default-src 'none'; script-src {_csp_hash(script)}; style-src {_csp_hash(style)}; base-uri 'none'; "
        "form-action 'none'"
    )
    fixed = {
        "policy": f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        "style": f"<style>{style}</style>",
        "script": f"<script>{script}</script>",
        "attributes": "",
        "elsewhere": "",
        "top": dashboard_header(None),
    }
    return _skeleton(fixed)


def served_skeleton(server: Server) -> Skeleton:
    """Return the same page for a server, which sends style and scripts separately and forbids others by a header."""
    base = escape_html(server.base)
    links = " ".join(f'<a href="{base}/{name}">{name.title()}</a>' for name in server.pages)
    fixed = {
        "policy": "",
        "style": '<link rel="icon" href="/static/mark.svg" type="image/svg+xml">\n'
        '<link rel="stylesheet" href="/static/dashboard.css">',
        "script": "\n".join(
            f'<script src="/static/{name}" defer></script>' for name in ("dashboard.js", *server.scripts)
        ),
        "attributes": f' data-server="{base}" data-mark="{escape_html(server.mark)}" data-topics="jobs"',
        "elsewhere": f" {links}",
        "top": dashboard_header(server),
    }
    return _skeleton(fixed)


def _skeleton(fixed: Mapping[str, str]) -> Skeleton:
    fixed = {**fixed, "headings": "".join(f"<th>{heading}</th>" for heading in _HEADINGS)}
    parts = asset("dashboard.html").split("%%")
    slots: list[tuple[str, str]] = [("", parts[0])]
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        if name in fixed:
            slot, before = slots[-1]
            slots[-1] = (slot, before + fixed[name] + text)
        else:
            slots.append((name, text))
    (_, start), *rest = slots
    return Skeleton(start.encode(), tuple((name, text.encode()) for name, text in rest))


def _csp_hash(text: str) -> str:
    """The hash of a text for the Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
