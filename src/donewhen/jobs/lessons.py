"""Lessons that were written down, and which of them say something."""

from __future__ import annotations

import re
from itertools import pairwise

from donewhen.jobs.criteria import is_placeholder
from donewhen.jobs.facts import LessonFact
from donewhen.jobs.workspace import Workspace

_LESSON = re.compile(r"^#{1,6}[ \t].*?\bLL-[\w-]+", re.MULTILINE)
_FIELD = re.compile(
    r"^[-*+ \t]*\**(?:context|what worked|what failed|recommendation)\**[ \t]*:\**[ \t]*(.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def lessons_of(workspace: Workspace, job: str) -> LessonFact:
    """The lessons in ``notes/lessons-learned.md`` that name this job."""
    try:
        text = (workspace.base / "notes" / "lessons-learned.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return LessonFact(0, 0)
    starts = [found.start() for found in _LESSON.finditer(text)]
    blocks = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    linked = [one for one in blocks if re.search(rf"\b{re.escape(job)}\b", one)]
    return LessonFact(len(linked), sum(_says_nothing(one) for one in linked))


def _says_nothing(block: str) -> bool:
    said = _FIELD.findall(block)
    return not said or all(is_placeholder(one) for one in said)
