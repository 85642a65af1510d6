"""The task tracker: a table for spreadsheets, with the columns of the existing tool."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from donewhen.dashboard.data import JobRow
from donewhen.foundation.plain_text import plain_text
from donewhen.jobs.plan.workspace import Workspace

COLUMNS = (
    "id",
    "work_item_id",
    "workstream_id",
    "workstream_title",
    "wave_id",
    "task",
    "status",
    "priority",
    "due_date",
    "estimate_hours",
    "depends_on",
    "started_at",
    "completed_at",
    "blocked_reason",
    "rework_count",
    "rework_reason",
    "reward_target",
    "reward_last_score",
    "reward_last_next_action",
    "notes",
)
_LONGEST_NOTE = 4000
_FORMULA = frozenset("=+-@\t'")

Row = tuple[str, ...]
"""A row without its last cell: what people write under notes is theirs."""


def tracker_path(workspace: Workspace) -> Path:
    """The tracker: the newest that is there, or one of today."""
    found = sorted((workspace.base / "outputs").glob("[0-9]*-task-tracker.csv"))
    return found[-1] if found else workspace.base / "outputs" / f"{workspace.now()[:10]}-task-tracker.csv"


def row_of(job: JobRow) -> Row:
    """What the tracker says of a job."""
    return (
        job.id,
        job.id,
        job.workstream,
        job.workstream_title,
        job.wave,
        job.title,
        job.status,
        job.priority,
        job.due_date,
        str(job.estimate_hours),
        ", ".join(job.depends_on),
        job.started_at,
        job.completed_at,
        job.blocked_reason,
        str(job.rework_count),
        job.rework_reason,
        str(job.target),
        str(job.score or 0),
        job.next_action,
    )


def render_tracker(jobs: Iterable[JobRow], notes: Mapping[str, str]) -> bytes:
    """The table."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([*map(_guarded, row_of(job)), _guarded(notes.get(job.id, ""))] for job in jobs)
    return stream.getvalue().encode()


class TrackerRows(dict[str, Row]):
    """The rows that a table has, by id, and what people wrote beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: dict[str, str] = {}
        self.sound = False
        """Whether it is the table that donewhen writes: with its columns, and each job once."""


@lru_cache(maxsize=1)
def read_tracker(raw: bytes) -> TrackerRows:
    """What a table says; one of the existing tool, or one that a spreadsheet has saved, is understood, too."""
    found = TrackerRows()
    try:
        text = raw.decode("utf-8-sig")
        first = text.partition("\n")[0].rstrip("\r")
        separator = next((one for one in ",;\t" if first.replace('"', "").split(one) == [*COLUMNS]), None)
        if separator is None:
            return found
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        next(rows)
        found.sound = separator == ","
        for cells in rows:
            if len(cells) != len(COLUMNS) or cells[0] in found:
                found.sound = False
                continue
            *row, note = map(_without_guard, cells)
            found[row[0]] = tuple(row)
            if note.strip():
                found.notes[row[0]] = plain_text(note)[:_LONGEST_NOTE]
    except (ValueError, csv.Error):
        found.sound = False
    return found


def _guarded(value: str) -> str:
    """A spreadsheet takes a cell that begins like this for a formula."""
    return f"'{value}" if value[:1] in _FORMULA else value


def _without_guard(value: str) -> str:
    return value[1:] if value[:1] == "'" else value
