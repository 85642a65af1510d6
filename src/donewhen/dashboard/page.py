"""Render the dashboard: one page, written as a file that needs nothing else, or sent by a server with live data."""

from __future__ import annotations

from urllib.parse import quote

from donewhen.dashboard.data import Board, JobRow
from donewhen.dashboard.header import Server
from donewhen.dashboard.seal import seal_page
from donewhen.dashboard.skeleton import Skeleton, file_skeleton, served_skeleton
from donewhen.foundation.plain_text import escape_html

_MAX_ROWS = 200
"""Maximum number of jobs listed if scripts are disabled."""


def render_dashboard(board: Board, data: bytes) -> bytes:
    """Render the page around ``data``, the encoded board, as a sealed file without external resources."""
    return seal_page(_fill(file_skeleton(), board, data, None))


def serve_dashboard(board: Board, data: bytes, server: Server) -> bytes:
    """Render the same page for a server."""
    return _fill(served_skeleton(server), board, data, server)


def _fill(skeleton: Skeleton, board: Board, data: bytes, server: Server | None) -> bytes:
    values = {name: text.encode() for name, text in _texts(board, server).items()} | {"data": data}
    return skeleton.start + b"".join(values[name] + fixed for name, fixed in skeleton.slots)


def _texts(board: Board, server: Server | None) -> dict[str, str]:
    about = board.project
    counts = " · ".join(f"{count} {name.replace('_', ' ')}" for name, count in board.counts.items() if count)
    listed = list(board.jobs.values())[:_MAX_ROWS]
    left = len(board.jobs) - len(listed)
    return {
        "title": escape_html(about.title),
        "about": escape_html(f"{about.id} · {about.agreement} · {counts or 'no jobs yet'}"),
        "rows": "\n".join(_row(job, server) for job in listed),
        "left": f"<p>{left} more jobs are in dashboard.json and in the task tracker.</p>" if left > 0 else "",
    }


def _row(job: JobRow, server: Server | None) -> str:
    score = "" if job.score is None else f"{job.score}, needs {job.target}"
    cells = (job.title, job.status.replace("_", " "), score, f"{job.iteration} of {job.max_iterations}")
    texts = (*cells, ", ".join(job.depends_on), job.blocked_reason or job.next_action)
    name = escape_html(job.id)
    if server is not None:
        name = f'<a href="{escape_html(server.base)}/jobs/{quote(job.id, safe="")}">{name}</a>'
    return f"<tr><td>{name}</td>" + "".join(f"<td>{escape_html(text)}</td>" for text in texts) + "</tr>"
