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
_MAX_NOTE_LENGTH = 4000
_FORMULA_START = frozenset("=+-@\t'")

Row = tuple[str, ...]
"""A row without its last cell: the notes column belongs to people."""


def tracker_path(workspace: Workspace) -> Path:
    """The path of the newest tracker, or of a new one with today's date."""
    trackers = sorted((workspace.base / "outputs").glob("[0-9]*-task-tracker.csv"))
    return trackers[-1] if trackers else workspace.base / "outputs" / f"{workspace.now()[:10]}-task-tracker.csv"


def row_of(job: JobRow) -> Row:
    """The row of a job, without notes."""
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
    """Render the table as CSV."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_escape_formulas((*row_of(job), notes.get(job.id, ""))) for job in jobs)
    return stream.getvalue().encode()


class TrackerRows(dict[str, Row]):
    """The rows of a table by job id, and the notes that people added."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: dict[str, str] = {}
        self.sound = False
        """Whether it has the form that donewhen writes: its columns, and each job once."""


@lru_cache(maxsize=1)
def read_tracker(raw: bytes) -> TrackerRows:
    """Parse a table; files of the existing tool and files saved by a spreadsheet are accepted, too."""
    tracker = TrackerRows()
    try:
        text = raw.decode("utf-8-sig")
        first = text.partition("\n")[0].rstrip("\r")
        separator = next(
            (character for character in ",;\t" if first.replace('"', "").split(character) == [*COLUMNS]), None
        )
        if separator is None:
            return tracker
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        next(rows)
        tracker.sound = separator == ","
        escaped = "'" in text
        for cells in rows:
            if len(cells) != len(COLUMNS) or cells[0] in tracker:
                tracker.sound = False
                continue
            row = _unescape_formulas(cells) if escaped else cells
            note = row.pop()
            tracker[row[0]] = tuple(row)
            if note and not note.isspace():
                tracker.notes[row[0]] = plain_text(note)[:_MAX_NOTE_LENGTH]
    except (ValueError, csv.Error):
        tracker.sound = False
    return tracker


# Whole rows, because a call for each cell is most of the cost of a large table.
def _escape_formulas(cells: Iterable[str]) -> list[str]:
    """Prefix each cell that a spreadsheet would evaluate as a formula."""
    return [f"'{cell}" if cell[:1] in _FORMULA_START else cell for cell in cells]


def _unescape_formulas(cells: Iterable[str]) -> list[str]:
    return [cell[1:] if cell[:1] == "'" else cell for cell in cells]
