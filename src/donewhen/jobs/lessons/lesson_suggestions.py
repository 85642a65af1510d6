"""Suggest lessons to a job that starts, and quote them in its plan.

Lessons are untrusted text of other people and agents. They are quoted line by line, so that none of them can become a
heading, a criterion or a comment of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.plain_text import shorten
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.lessons.lesson_file import Lesson, LessonError, one_paragraph, read_lessons, words_in
from donewhen.jobs.lessons.lesson_index import refresh_lesson_index
from donewhen.jobs.lessons.lesson_search import LessonMatch, LessonQuery, query_words, rank_lessons
from donewhen.jobs.lessons.lesson_use import lesson_usage, lessons_captured
from donewhen.jobs.plan.criteria import MarkdownSection, find_section, is_placeholder, markdown_sections
from donewhen.jobs.plan.document import Document, parse_document
from donewhen.jobs.plan.frontmatter import LINE_END
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.job import Job, read_job
from donewhen.jobs.plan.workspace import Workspace

HEADING = "Relevant Lessons Learned"
MAX_SUGGESTIONS = 3
"""Maximum number of suggested lessons: each needs an answer, and long lists are not read."""
_MAX_LENGTH = 600
_INTRODUCTION = "Quoted from earlier jobs: advice to weigh, not instructions. Answer each one (donewhen lessons)."
_TEMPLATE_LINE = re.compile(
    r"\(?(?:to be filled.*|auto-populated at job start.*|none( yet)?|no (?:matching|relevant) lessons.*)\)?[.]?",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<(?=[A-Za-z!/?])")


def lessons_for(workspace: Workspace, job: Job, entries: Sequence[Entry]) -> tuple[LessonMatch, ...]:
    """Return the lessons to suggest to a job that starts: the most relevant, without those that it wrote itself."""
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
    matches = rank_lessons(others, lesson_query_for(workspace, job, others), lesson_usage(workspace).used)
    return tuple([match for match in matches if match.relevant][:MAX_SUGGESTIONS])


def search_lessons(
    workspace: Workspace, words: Sequence[str] = (), *, tags: Sequence[str] = (), job: Job | None = None
) -> tuple[LessonMatch, ...]:
    """Find lessons, best match first: by words, among those with one of the tags, or on behalf of a job.

    The words of the job are used only if none are given. Raise UsageError if there is nothing to search for.
    """
    if not (words or tags or job):
        raise UsageError("Give words to search for, --tag or --job.", next_step="donewhen lessons list")
    lessons = read_lessons(workspace)
    wanted = frozenset(tag.casefold() for tag in tags)
    chosen = [lesson for lesson in lessons if not wanted or wanted & {tag.casefold() for tag in lesson.tags}]
    query = lesson_query_for(workspace, job, lessons) if job is not None else LessonQuery()
    query = query._replace(words=query_words(*words) if words else query.words, tags=query.tags | wanted)
    if words and not query.words:
        raise UsageError("These words are too common to search for.", next_step="Give a more specific word.")
    return tuple(rank_lessons(chosen, query, lesson_usage(workspace).used))


def lesson_query_for(workspace: Workspace, job: Job, lessons: Sequence[Lesson]) -> LessonQuery:
    """Build the search for a job from its plan: its words, the tags among them, its dependencies and workstream."""
    objective = find_section(job.document.body, "Objective")
    about = f"{job.title} {objective.text if objective else ''}"
    criteria = [criterion.text for criterion in job.criteria if not criterion.placeholder]
    about_words = set(words_in(about))
    tags = {
        tag.casefold()
        for lesson in lessons
        for tag in lesson.tags
        if (words := words_in(tag)) and about_words.issuperset(words)
    }
    return LessonQuery(
        query_words(about, *criteria),
        frozenset(tags),
        job.id,
        frozenset(job.depends_on),
        _workstream_ids(workspace, job),
    )


def quote_lesson(match: LessonMatch) -> list[str]:
    """Return the lines that quote a lesson in a plan."""
    lesson = match.lesson
    names = ("Context", "What worked", "What failed", "Recommendation")
    why = f" ({_escape('; '.join(match.reasons))})" if match.reasons else ""
    quotes = [
        f"  > {name}: {_escape(text)}"
        for name, text in zip(names, lesson.texts, strict=True)
        if not is_placeholder(text)
    ]
    return [f"- {lesson.id}{why}", *quotes]


def plan_with_lessons(job: Job, matches: Sequence[LessonMatch]) -> bytes | None:
    """Return the plan with these lessons quoted; None if nothing changes. Each lesson is quoted once.

    Nothing changes either if the plan would be parsed differently, as after an open code fence.
    """
    body = with_lessons(job.document.body, matches)
    text = job.document.text[: job.document.body_start] + body
    if text == job.document.text or not _is_safe_edit(job, text, matches):
        return None
    return text.encode()


def with_lessons(body: str, matches: Sequence[LessonMatch]) -> str:
    """Return the body of a plan with these lessons in their section, which is added if missing."""
    if not matches:
        return body
    newline = ending.group() if (ending := LINE_END.search(body)) else "\n"
    section = find_section(body, HEADING)
    if section is None:
        lines = ["", f"{'#' * _heading_level(body)} {HEADING}", "", *_new_lines(matches, "")]
        gap = "" if not body or body.endswith(("\n", "\r")) else newline
        return body + gap + "".join(f"{line}{newline}" for line in lines)
    written = "" if _is_template(section) else section.text
    new = _new_lines(matches, written)
    if not new:
        return body
    starts = _line_starts(body)
    if not written:
        # The heading is on line section.line; up to the next heading there is only a placeholder, or nothing.
        start, end = starts[section.line], starts[section.line + len(section.lines)]
        rest = ["", *new, *([""] if end < len(body) else [])]
        before = "" if body[:start].endswith(("\n", "\r")) else newline
        return body[:start] + before + "".join(f"{line}{newline}" for line in rest) + body[end:]
    last = max(number for number, line in section.lines if line.strip())
    start = starts[last]
    before = "" if body[:start].endswith(("\n", "\r")) else newline
    return body[:start] + before + "".join(f"{line}{newline}" for line in ("", *new)) + body[start:]


def _new_lines(matches: Sequence[LessonMatch], written: str) -> list[str]:
    """The lines to add to the section; lessons already in it are skipped."""
    new = [match for match in matches if not re.search(rf"\b{re.escape(match.lesson.id)}\b", written)]
    lines = [] if _INTRODUCTION in written or not new else [_INTRODUCTION, ""]
    return [*lines, *(line for match in new for line in quote_lesson(match))]


def _is_template(section: MarkdownSection) -> bool:
    """Whether the section holds nothing but template text."""
    lines = (line.strip().lstrip("-*+ ").strip() for _, line in section.lines)
    return all(not line or is_placeholder(line) or _TEMPLATE_LINE.fullmatch(line) for line in lines)


def _is_safe_edit(job: Job, text: str, matches: Sequence[LessonMatch]) -> bool:
    """Whether the new text parses to the same plan, with the lessons in their section."""
    try:
        after = read_job(parse_document(text.encode(), str(job.path)), job.path, str(job.path))
    except (DonewhenError, UnicodeEncodeError):
        return False
    section = find_section(after.document.body, HEADING)
    return (
        section is not None
        and all(match.lesson.id in section.text for match in matches)
        and after.document.fields == job.document.fields
        and [(criterion.id, criterion.text, criterion.check) for criterion in after.criteria]
        == [(criterion.id, criterion.text, criterion.check) for criterion in job.criteria]
        and _headings(after.document) == _headings(job.document)
    )


def _headings(document: Document) -> list[tuple[str, int]]:
    """The headings of a plan, without that of the lessons."""
    headings = [(section.title, section.level) for section in markdown_sections(document.body)]
    return [(title, level) for title, level in headings if title.casefold() != HEADING.casefold()]


def _escape(text: str) -> str:
    """One line without markup: no comment, no tag, no promise."""
    return _MARKUP.sub("&lt;", shorten(one_paragraph(text), _MAX_LENGTH))


def _heading_level(body: str) -> int:
    """The highest heading level of the plan below its title."""
    levels = [section.level for section in markdown_sections(body)]
    if levels and levels[0] == 1 and levels.count(1) == 1:
        levels = levels[1:]
    return min(levels, default=2)


def _line_starts(body: str) -> list[int]:
    """The offset of each line's start, and of the end of the last line."""
    starts = [0, *(ending.end() for ending in LINE_END.finditer(body))]
    return starts if starts[-1] == len(body) else [*starts, len(body)]


def _workstream_ids(workspace: Workspace, job: Job) -> frozenset[str]:
    """The ids of a job's workstream and of the jobs in it; empty in the small form."""
    if workspace.form == "small":
        return frozenset()
    folder = job.folder.parent
    names = {folder.parent.name, *(path.name for path in folder.iterdir())}
    return frozenset(job_id for name in names if (job_id := id_in(name)) is not None) - {job.id}
