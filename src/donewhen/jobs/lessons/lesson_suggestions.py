"""Lessons for a job that begins: those that fit, quoted in its plan.

What a lesson says are other people's and other agents' words. They stand in the plan as a quotation in which every
line is marked, so that none of them can become a heading, a criterion or a comment of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import write_atomically
from donewhen.foundation.plain_text import shorten
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.lessons.lesson_file import Lesson, LessonError, one_paragraph, read_lessons, words_in
from donewhen.jobs.lessons.lesson_recording import refresh_lesson_index
from donewhen.jobs.lessons.lesson_search import LessonMatch, LessonQuery, query_words, rank_lessons
from donewhen.jobs.lessons.lesson_use import lesson_usage, lessons_captured
from donewhen.jobs.plan.criteria import MarkdownSection, find_section, is_placeholder, markdown_sections
from donewhen.jobs.plan.document import Document, parse_document
from donewhen.jobs.plan.frontmatter import LINE_END
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.job import Job, read_job
from donewhen.jobs.plan.workspace import Workspace

HEADING = "Relevant Lessons Learned"
MOST = 3
"""How many a job is given: each wants an answer, and a long list is read by nobody."""
_LONGEST = 600
_INTRODUCTION = "Quoted from earlier jobs: advice to weigh, not instructions. Each wants an answer (donewhen lessons)."
_TOOLS_WORDS = re.compile(
    r"\(?(?:to be filled.*|auto-populated at job start.*|none( yet)?|no (?:matching|relevant) lessons.*)\)?[.]?",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<(?=[A-Za-z!/?])")


def lessons_for(workspace: Workspace, job: Job, entries: Sequence[Entry]) -> tuple[LessonMatch, ...]:
    """The lessons that a job is given when it begins: the few that really fit, and none that it has written itself."""
    try:
        lessons = read_lessons(workspace)
    except LessonError:
        return ()
    own = lessons_captured(entries)
    others = [lesson for lesson in lessons if lesson.id not in own and lesson.substantive]
    if not others:
        return ()
    with suppress(LessonError):
        refresh_lesson_index(workspace)
    found = rank_lessons(others, lesson_query_for(workspace, job, others), lesson_usage(workspace).used)
    return tuple([one for one in found if one.relevant][:MOST])


def lesson_query_for(workspace: Workspace, job: Job, lessons: Sequence[Lesson]) -> LessonQuery:
    """What a job asks for by what its plan says: its words, the tags that are among them, and the jobs around it."""
    objective = find_section(job.document.body, "Objective")
    about = f"{job.title} {objective.text if objective else ''}"
    criteria = [criterion.text for criterion in job.criteria if not criterion.placeholder]
    said = set(words_in(about))
    tags = {
        tag.casefold()
        for lesson in lessons
        for tag in lesson.tags
        if (words := words_in(tag)) and said.issuperset(words)
    }
    return LessonQuery(
        query_words(about, *criteria), frozenset(tags), job.id, frozenset(job.depends_on), _around(workspace, job)
    )


def quote_lesson(found: LessonMatch) -> list[str]:
    """A lesson as it stands in a plan."""
    lesson = found.lesson
    names = ("Context", "What worked", "What failed", "Recommendation")
    why = f" ({_harmless('; '.join(found.reasons))})" if found.reasons else ""
    said = [
        f"  > {name}: {_harmless(text)}"
        for name, text in zip(names, lesson.said, strict=True)
        if not is_placeholder(text)
    ]
    return [f"- {lesson.id}{why}", *said]


def write_lessons_into_plan(workspace: Workspace, job: Job, found: Sequence[LessonMatch]) -> Job:
    """Quote lessons in the plan; the caller holds the lock. What people wrote there stays, and no lesson stands twice.

    Nothing is written that would make anything else of the plan: an open code fence, for one, swallows what follows it.
    """
    body = with_lessons(job.document.body, found)
    text = job.document.text[: job.document.body_start] + body
    if text == job.document.text or not _says_the_same(job, text, found):
        return job
    write_atomically(job.path, text.encode())
    return workspace.job_at(job.path)


def with_lessons(body: str, found: Sequence[LessonMatch]) -> str:
    """The body of a plan with these lessons in their section; the section is made where there is none."""
    if not found:
        return body
    newline = ending.group() if (ending := LINE_END.search(body)) else "\n"
    section = find_section(body, HEADING)
    if section is None:
        lines = ["", f"{'#' * _level(body)} {HEADING}", "", *_lines(found, "")]
        gap = "" if not body or body.endswith(("\n", "\r")) else newline
        return body + gap + "".join(f"{line}{newline}" for line in lines)
    written = "" if _untouched(section) else section.text
    new = _lines(found, written)
    if not new:
        return body
    starts = _line_starts(body)
    if not written:
        # The heading stands on line section.line; what follows it up to the next one is a placeholder, or nothing.
        start, end = starts[section.line], starts[section.line + len(section.lines)]
        rest = ["", *new, *([""] if end < len(body) else [])]
        before = "" if body[:start].endswith(("\n", "\r")) else newline
        return body[:start] + before + "".join(f"{line}{newline}" for line in rest) + body[end:]
    last = max(number for number, line in section.lines if line.strip())
    start = starts[last]
    before = "" if body[:start].endswith(("\n", "\r")) else newline
    return body[:start] + before + "".join(f"{line}{newline}" for line in ("", *new)) + body[start:]


def _lines(found: Sequence[LessonMatch], written: str) -> list[str]:
    """What is to be added to what stands there; each lesson once."""
    new = [one for one in found if not re.search(rf"\b{re.escape(one.lesson.id)}\b", written)]
    lines = [] if _INTRODUCTION in written or not new else [_INTRODUCTION, ""]
    return [*lines, *(line for one in new for line in quote_lesson(one))]


def _untouched(section: MarkdownSection) -> bool:
    """Whether nobody has written anything there yet but a template."""
    lines = (line.strip().lstrip("-*+ ").strip() for _, line in section.lines)
    return all(not line or is_placeholder(line) or _TOOLS_WORDS.fullmatch(line) for line in lines)


def _says_the_same(job: Job, text: str, found: Sequence[LessonMatch]) -> bool:
    """Whether the plan with the lessons in it reads as before, and the lessons stand where they are meant to."""
    try:
        after = read_job(parse_document(text.encode(), str(job.path)), job.path, str(job.path))
    except (DonewhenError, UnicodeEncodeError):
        return False
    section = find_section(after.document.body, HEADING)
    return (
        section is not None
        and all(one.lesson.id in section.text for one in found)
        and after.document.fields == job.document.fields
        and [(criterion.id, criterion.text, criterion.check) for criterion in after.criteria]
        == [(criterion.id, criterion.text, criterion.check) for criterion in job.criteria]
        and _headings(after.document) == _headings(job.document)
    )


def _headings(document: Document) -> list[tuple[str, int]]:
    """The headings of a plan; that of the lessons may come to them, and its own text is left out."""
    found = [(section.title, section.level) for section in markdown_sections(document.body)]
    return [one for one in found if one[0].casefold() != HEADING.casefold()]


def _harmless(text: str) -> str:
    """One line in which nothing is markup: no comment, no tag, and nothing that looks like a promise."""
    return _MARKUP.sub("&lt;", shorten(one_paragraph(text), _LONGEST))


def _level(body: str) -> int:
    """The level of the plan's own headings: the highest, below its title."""
    levels = [section.level for section in markdown_sections(body)]
    if levels and levels[0] == 1 and levels.count(1) == 1:
        levels = levels[1:]
    return min(levels, default=2)


def _line_starts(body: str) -> list[int]:
    """Where each line begins, and where the last one ends."""
    starts = [0, *(one.end() for one in LINE_END.finditer(body))]
    return starts if starts[-1] == len(body) else [*starts, len(body)]


def _around(workspace: Workspace, job: Job) -> frozenset[str]:
    """The workstream of a job, and the jobs in it; there is none in the small form."""
    if workspace.form == "small":
        return frozenset()
    folder = job.folder.parent
    names = {folder.parent.name, *(path.name for path in folder.iterdir())}
    return frozenset(found for name in names if (found := id_in(name)) is not None) - {job.id}
