"""The task tracker and the dashboard: what the ledger says, for people and spreadsheets. Written by every command that
writes, one row at a time, so that it costs the same however many jobs there are."""

from __future__ import annotations

import csv
import html
import io
import json
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from donewhen.foundation.files import write_atomically
from donewhen.foundation.locks import locked
from donewhen.foundation.text import one_line
from donewhen.jobs.document import Document
from donewhen.jobs.facts import ViewFact
from donewhen.jobs.job import Job, Project
from donewhen.jobs.survey import survey
from donewhen.jobs.workspace import Workspace

DASHBOARD = "donewhen/dashboard/v1"
COLUMNS = (
    "work_item_id",
    "title",
    "status",
    "stakes",
    "iteration",
    "max_iterations",
    "reward_target",
    "reward_last_score",
    "truth_last_status",
    "depends_on",
    "next_action",
    "updated_at",
)

Row = dict[str, str]


def row_of(job: Job) -> Row:
    """What both views say of a job."""
    fields = job.document.fields
    row = {
        "work_item_id": job.id,
        "title": job.title,
        "status": job.status,
        "stakes": job.stakes,
        "iteration": str(job.iteration),
        "max_iterations": str(job.max_iterations),
        "reward_target": str(job.reward_target),
        "reward_last_score": _text(fields, "reward_last_score", "0"),
        "truth_last_status": _text(fields, "truth_last_status", "unknown"),
        "depends_on": " ".join(job.depends_on),
        "next_action": _text(fields, "reward_last_next_action", ""),
        "updated_at": _text(fields, "updated_at", ""),
    }
    # A row is a line, whatever somebody wrote into a plan.
    return {name: one_line(value) for name, value in row.items()}


def views_of(workspace: Workspace, job: Job) -> ViewFact:
    """Whether the views are current: whether they say of this job what its plan says."""
    expected = row_of(job)
    return ViewFact(_tracked(workspace, job.id) == expected, _dashboard(workspace).get(job.id) == expected)


def refresh(workspace: Workspace, job: Job | None = None) -> None:
    """Bring the views up to date: the row of one job, or all of them where there is none yet, or none is named."""
    project = workspace.project()
    with locked(workspace.folder / "state" / "locks" / "views.lock"):
        rows = dict(_dashboard(workspace))
        complete = bool(rows) and tracker_path(workspace).is_file()
        if job is None or not complete:
            rows = _all_rows(workspace)
        else:
            # Jobs whose folders are gone are nobody's any more.
            there = {one.id for one in workspace.places()}
            rows = {name: row for name, row in rows.items() if name in there}
            if len(rows) == len(there) and _is_current(workspace, project, rows, row_of(job)):
                return
        if job is not None:
            rows[job.id] = row_of(job)
        _write(workspace, project, dict(sorted(rows.items())))


def _is_current(workspace: Workspace, project: Project, rows: Mapping[str, Row], row: Row) -> bool:
    """Whether nothing would be written that does not stand there already."""
    name = row["work_item_id"]
    about = _read_dashboard(workspace)[0]
    return (
        rows.get(name) == row
        and about == _about(project)
        and _tracked(workspace, name) == row
        and dashboard_path(workspace, "html").is_file()
    )


def shown_open(workspace: Workspace) -> frozenset[str]:
    """The jobs that the dashboard shows as neither done nor cancelled."""
    rows = _dashboard(workspace).items()
    return frozenset(name for name, row in rows if row["status"] not in ("done", "cancelled"))


def tracker_path(workspace: Workspace) -> Path:
    """The tracker: the newest that is there, or one of today."""
    found = sorted((workspace.base / "outputs").glob("[0-9]*-task-tracker.csv"))
    return found[-1] if found else workspace.base / "outputs" / f"{workspace.now()[:10]}-task-tracker.csv"


def dashboard_path(workspace: Workspace, suffix: str = "json") -> Path:
    return workspace.base / "outputs" / f"dashboard.{suffix}"


def _all_rows(workspace: Workspace) -> dict[str, Row]:
    return {one.id: row_of(workspace.job_at(one.path)) for one in survey(workspace).jobs}


def _tracked(workspace: Workspace, job: str) -> Row | None:
    """The tracker's row of a job."""
    try:
        lines = tracker_path(workspace).read_text(encoding="utf-8").split("\n")
        # No cell holds a line break, so a row is a line.
        found = [line for line in lines if line.startswith(f"{job},")]
        if lines[0].rstrip("\r") != ",".join(COLUMNS) or len(found) != 1:
            return None
        cells = next(csv.reader(found))
    except (OSError, ValueError, csv.Error):
        return None
    return dict(zip(COLUMNS, map(_without_guard, cells), strict=False)) if len(cells) == len(COLUMNS) else None


def _dashboard(workspace: Workspace) -> Mapping[str, Row]:
    return _read_dashboard(workspace)[1]


def _read_dashboard(workspace: Workspace) -> tuple[object, Mapping[str, Row]]:
    """What the dashboard says of the project, and its rows."""
    try:
        return _understood(dashboard_path(workspace).read_bytes())
    except OSError:
        return None, {}


@lru_cache(maxsize=1)
def _understood(raw: bytes) -> tuple[object, Mapping[str, Row]]:
    """One command looks several times, and thousands of rows take a while."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None, {}
    if not isinstance(data, dict) or data.get("schema") != DASHBOARD:
        return None, {}
    jobs = data.get("jobs")
    return data.get("project"), jobs if isinstance(jobs, dict) and all(map(_is_row, jobs.values())) else {}


def _about(project: Project) -> dict[str, str]:
    return {"id": project.id, "title": one_line(project.title), "status": project.status}


def _is_row(row: object) -> bool:
    return isinstance(row, dict) and tuple(row) == COLUMNS and set(map(type, row.values())) == {str}


def _write(workspace: Workspace, project: Project, rows: Mapping[str, Row]) -> None:
    (workspace.base / "outputs").mkdir(exist_ok=True)
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _guarded(value) for name, value in row.items()} for row in rows.values())
    write_atomically(tracker_path(workspace), stream.getvalue().encode())
    counts = dict(sorted(Counter(row["status"] for row in rows.values()).items()))
    about = _about(project)
    # One job a line: quick to write, and readable as a difference.
    jobs = ",\n".join(f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in rows.items())
    head = f'{{"schema": "{DASHBOARD}",\n"project": {json.dumps(about, ensure_ascii=False)},\n'
    text = f'{head}"counts": {json.dumps(counts)},\n"jobs": {{\n{jobs}\n}}}}\n'
    write_atomically(dashboard_path(workspace), text.encode())
    write_atomically(dashboard_path(workspace, "html"), _page(project, counts, rows).encode())


def _page(project: Project, counts: Mapping[str, int], rows: Mapping[str, Row]) -> str:
    head = "".join(f"<th>{title}</th>" for title in _HEADINGS.values())
    body = "\n".join(
        f'<tr class="{html.escape(row["status"])}">'
        + "".join(f"<td>{html.escape(row[name])}</td>" for name in _HEADINGS)
        + "</tr>"
        for row in rows.values()
    )
    summary = " · ".join(f"{count} {html.escape(name)}" for name, count in counts.items())
    title = html.escape(one_line(project.title))
    return _PAGE.format(title=title, id=html.escape(project.id), summary=summary, head=head, body=body)


_HEADINGS = {
    "work_item_id": "job",
    "title": "title",
    "status": "status",
    "reward_last_score": "score",
    "truth_last_status": "truth",
    "iteration": "iteration",
    "next_action": "next action",
}

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #1b1f24; background: #fff }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #d8dee4; vertical-align: top }}
td:first-child {{ white-space: nowrap }}
td:nth-child(2) {{ min-width: 12rem }}
tr.done td:nth-child(3) {{ color: #116329; font-weight: 600 }}
tr.blocked td:nth-child(3) {{ color: #a40e26; font-weight: 600 }}
tr.cancelled {{ color: #6e7781 }}
p {{ color: #57606a }}
</style></head><body>
<h1>{title}</h1>
<p>{id} · {summary}</p>
<table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table>
</body></html>
"""


def _guarded(value: str) -> str:
    """A spreadsheet takes a cell that begins like this for a formula."""
    return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "'") else value


def _without_guard(value: Any) -> str:
    text = str(value)
    return text[1:] if text[:1] == "'" else text


def _text(fields: Document | Mapping[str, Any], name: str, default: str) -> str:
    value = fields.get(name) if isinstance(fields, Mapping) else None
    return default if value in (None, "") else str(value)
