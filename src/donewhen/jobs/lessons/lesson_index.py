"""The index of the lessons: the same as JSON, for programs. It is generated from the lessons file."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

from donewhen.foundation.canonical import digest
from donewhen.foundation.files import opened
from donewhen.jobs.lessons.lesson_file import lessons_path, parse_lessons_cached, raw_lessons
from donewhen.jobs.lessons.pending_lesson import lessons_lock
from donewhen.jobs.plan.generated_files import keep_out_of_git
from donewhen.jobs.plan.workspace import Workspace, WorkspaceError

SCHEMA = "theworkshop.lessons.v1"
_SOURCE = re.compile(rb'"source": "(sha256:[0-9a-f]{64})"')
_HEAD_BYTES = 400


def refresh_lesson_index(workspace: Workspace) -> None:
    """Rewrite the index if the lessons file has changed since it was generated."""
    raw = raw_lessons(workspace)
    if raw is None or not workspace.folder.is_dir() or _is_current(workspace, raw):
        return
    # A reader may lack write permission; the lessons file holds everything that the index holds.
    with suppress(OSError), lessons_lock(workspace):
        write_lesson_index(workspace, raw)


def _is_current(workspace: Workspace, raw: bytes) -> bool:
    try:
        with opened(_index_path(workspace)) as file:
            source = _SOURCE.search(file.read(_HEAD_BYTES))
    except OSError:
        return False
    return source is not None and source[1].decode() == digest(raw)


def write_lesson_index(workspace: Workspace, raw: bytes) -> None:
    """Write the lessons as JSON for programs. The file's hash comes first, so that staleness is cheap to detect."""
    rows = [
        {
            "id": lesson.id,
            "tags": list(lesson.tags),
            "linked": list(lesson.linked),
            "snippet": lesson.snippet,
            "captured_at": lesson.captured_at,
            "context": lesson.context,
            "worked": lesson.worked,
            "failed": lesson.failed,
            "recommendation": lesson.recommendation,
        }
        for lesson in parse_lessons_cached(raw)
    ]
    content = {"schema": SCHEMA, "generated_at": workspace.now(), "source": digest(raw), "lessons": rows}
    # The index is only a view: if it can't be written, the lesson is kept, and the next start rewrites it.
    path = _index_path(workspace)
    with suppress(OSError, WorkspaceError):
        keep_out_of_git(workspace, path.parent)
        workspace.put(path, f"{json.dumps(content, indent=2)}\n".encode())


def _index_path(workspace: Workspace) -> Path:
    return lessons_path(workspace).with_name("lessons-index.json")
