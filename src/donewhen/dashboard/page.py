"""Render the dashboard as one page: template, style, script and data, without external resources."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from donewhen.dashboard.data import Board, JobRow

_MAX_ROWS = 200
"""Maximum number of jobs listed if scripts are disabled."""
_SCRIPTS = ("data.js", "board.js", "graph.js", "plots.js", "details.js", "page.js")
"""Joined to one script, in this order."""
_HEADINGS = ("job", "title", "status", "score", "iterations", "next action")


def render_dashboard(board: Board, data: bytes) -> bytes:
    """Render the page around ``data``, the encoded board."""
    texts = {name: text.encode() for name, text in _texts(board).items()} | {"data": data}
    return b"".join(piece if isinstance(piece, bytes) else texts[piece] for piece in _pieces())


def _texts(board: Board) -> Mapping[str, str]:
    about = board.project
    counts = " · ".join(f"{count} {name.replace('_', ' ')}" for name, count in board.counts.items() if count)
    listed = list(board.jobs.values())[:_MAX_ROWS]
    left = len(board.jobs) - len(listed)
    return {
        "title": html.escape(about.title),
        "about": html.escape(f"{about.id} · {about.agreement} · {counts or 'no jobs yet'}"),
        "rows": "\n".join(map(_row, listed)),
        "left": f"<p>{left} more jobs are in dashboard.json and in the task tracker.</p>" if left > 0 else "",
    }


def _row(job: JobRow) -> str:
    score = "" if job.score is None else f"{job.score} of {job.target}"
    cells = (job.id, job.title, job.status.replace("_", " "), score, f"{job.iteration} of {job.max_iterations}")
    texts = (*cells, job.blocked_reason or job.next_action)
    return "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in texts) + "</tr>"


@cache
def _pieces() -> tuple[bytes | str, ...]:
    """The template: fixed bytes, and the names of the placeholders between them."""
    style = _read("dashboard.css")
    script = "".join(map(_read, _SCRIPTS))
    fixed = {
        "style": style,
        "script": script,
        "policy": f"default-src 'none'; script-src {_csp_hash(script)}; style-src {_csp_hash(style)}; base-uri 'none'; "
        "form-action 'none'",
        "headings": "".join(f"<th>{heading}</th>" for heading in _HEADINGS),
    }
    pieces: list[bytes | str] = []
    for number, part in enumerate(_read("dashboard.html").split("%%")):
        if number % 2 == 0:
            pieces.append(part.encode())
        else:
            pieces.append(fixed[part].encode() if part in fixed else part)
    return tuple(pieces)


def _read(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _csp_hash(text: str) -> str:
    """The hash of a text for the Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
