"""The dashboard as one page: a template, a style and a script of ours around the data, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from donewhen.dashboard.data import Board, JobRow

_PLAIN = 200
"""So many jobs are listed where no script runs."""
_SCRIPTS = ("data.js", "board.js", "graph.js", "plots.js", "details.js", "page.js")
"""They become one, in this order."""
_HEADINGS = ("job", "title", "status", "score", "iterations", "next action")


def render_dashboard(board: Board, data: bytes) -> bytes:
    """The page around ``data``, the board as its file has it."""
    texts = {name: text.encode() for name, text in _texts(board).items()} | {"data": data}
    return b"".join(piece if isinstance(piece, bytes) else texts[piece] for piece in _pieces())


def _texts(board: Board) -> Mapping[str, str]:
    about = board.project
    counts = " · ".join(f"{count} {name.replace('_', ' ')}" for name, count in board.counts.items() if count)
    shown = list(board.jobs.values())[:_PLAIN]
    left = len(board.jobs) - len(shown)
    return {
        "title": html.escape(about.title),
        "about": html.escape(f"{about.id} · {about.agreement} · {counts or 'no jobs yet'}"),
        "rows": "\n".join(map(_row, shown)),
        "left": f"<p>{left} more jobs are in dashboard.json and in the task tracker.</p>" if left > 0 else "",
    }


def _row(job: JobRow) -> str:
    score = "" if job.score is None else f"{job.score} of {job.target}"
    cells = (job.id, job.title, job.status.replace("_", " "), score, f"{job.iteration} of {job.max_iterations}")
    told = (*cells, job.blocked_reason or job.next_action)
    return "<tr>" + "".join(f"<td>{html.escape(one)}</td>" for one in told) + "</tr>"


@cache
def _pieces() -> tuple[bytes | str, ...]:
    """The template: bytes that are always the same, and names of what stands between them."""
    style = _read("dashboard.css")
    script = "".join(map(_read, _SCRIPTS))
    fixed = {
        "style": style,
        "script": script,
        "policy": f"default-src 'none'; script-src {_allowed(script)}; style-src {_allowed(style)}; base-uri 'none'; "
        "form-action 'none'",
        "headings": "".join(f"<th>{one}</th>" for one in _HEADINGS),
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


def _allowed(text: str) -> str:
    """What a policy calls exactly this text by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
