"""Read and write lessons as Markdown, which people and another tool write as well.

``notes/lessons-learned.md`` is the source of truth; the index beside it is generated from it.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.files import TooLargeError, read_regular
from donewhen.foundation.plain_text import plain_text
from donewhen.foundation.size_limits import LESSONS
from donewhen.jobs.plan.criteria import is_placeholder
from donewhen.jobs.plan.workspace import Workspace

TITLE = "# Lessons Learned"
# The patterns are compiled when a file has lessons: every gate imports this module, and most projects have none.
_HEADING = r"(?m)^#{1,6}[ \t].*?\b(LL-[\w-]+)(.*)$"
_FIELD = (
    r"(?im)^[-*+ \t]*\**(applies to|linked|captured at|context|what worked|what failed|recommendation)\**"
    r"[ \t]*:\**[ \t]*"
)
_FIELD_END = r"(?m)^#{1,6}[ \t]"
_DATED = r"LL-([0-9]{8})-([0-9]{3,18})"
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# A name such as parse_log is split into its parts; in Chinese and Japanese each character is a word.
_WORD = rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+"
_SNIPPET_LINES = 12


class LessonError(DonewhenError):
    """The lessons file can't be used, or a lesson is invalid."""

    code = "lesson"
    exit_code = ExitCode.USAGE


@dataclass(frozen=True)
class Lesson:
    """A lesson in the file."""

    id: str
    title: str = ""
    """The text after the id in the heading."""
    tags: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    captured_at: str = ""
    context: str = ""
    worked: str = ""
    failed: str = ""
    recommendation: str = ""
    text: str = ""
    """The whole block, including unknown content."""
    line: int = 1

    @property
    def texts(self) -> tuple[str, str, str, str]:
        return (self.context, self.worked, self.failed, self.recommendation)

    @cached_property
    def hash(self) -> str:
        """The hash of its content. Tags and links may be added later, so they are not included."""
        return digest_of([self.id, self.title, *self.texts])

    @property
    def is_empty(self) -> bool:
        return all(is_placeholder(text) for text in self.texts)

    @property
    def substantive(self) -> bool:
        """Whether context, what worked and recommendation are filled in; "what failed" is optional."""
        return not any(is_placeholder(text) for text in (self.context, self.worked, self.recommendation))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of its content: two lessons with the same words are copies of each other."""
        return tuple(word for text in self.texts for word in words_in(text))

    @cached_property
    def snippet(self) -> str:
        """Its first lines, joined into one."""
        return " ".join(" ".join(self.text.split("\n")[:_SNIPPET_LINES]).split())

    @property
    def age(self) -> tuple[str, int, int]:
        """The sort key by day and number of the id, else by line: the newest sorts last."""
        dated = re.fullmatch(_DATED, self.id)
        return (dated[1], int(dated[2]), self.line) if dated else ("", 0, self.line)

    def names(self, job: str) -> bool:
        """Whether the lesson mentions a job's id."""
        return job in self.text and re.search(rf"\b{re.escape(job)}\b", self.text) is not None


def words_in(text: str) -> list[str]:
    """The words of a text in any script, in lower case and normal width."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return re.findall(_WORD, text.casefold())


def one_paragraph(text: str) -> str:
    """The text on one line, without control characters and HTML comments."""
    flat = " ".join(plain_text(text).split())
    while "<!--" in flat:
        flat = flat.replace("<!--", "<! --")
    return flat


def parse_lessons(text: str) -> tuple[Lesson, ...]:
    """Return every lesson of a text, in order. Text before the first lesson is ignored."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    headings = list(re.finditer(_HEADING, text))
    ends = [*(heading.start() for heading in headings), len(text)]
    line, counted, lessons = 1, 0, []
    for heading, (start, end) in zip(headings, pairwise(ends), strict=True):
        line, counted = line + text.count("\n", counted, start), start
        lessons.append(_lesson(heading, text[start:end], line))
    return tuple(lessons)


def render_lesson(lesson: Lesson) -> str:
    """Render a lesson for appending; each text is one line, so that none can look like another field."""
    head = (
        f"## {lesson.id}",
        f"- Applies to: {', '.join(lesson.tags)}".rstrip(),
        f"- Linked: {', '.join(lesson.linked)}".rstrip(),
        f"- Captured at: {lesson.captured_at}".rstrip(),
    )
    names = ("Context", "What worked", "What failed", "Recommendation")
    body = (f"\n**{name}:** {text}".rstrip() for name, text in zip(names, lesson.texts, strict=True))
    return "\n".join((*head, *body)) + "\n"


def lessons_path(workspace: Workspace) -> Path:
    return workspace.base / "notes" / "lessons-learned.md"


def raw_lessons(workspace: Workspace) -> bytes | None:
    """Return the raw lessons file, or None if there is none yet. Links are not followed."""
    path = lessons_path(workspace)
    inside = os.path.realpath(workspace.root)
    if not Path(os.path.realpath(path.parent)).is_relative_to(inside):
        raise LessonError("The lessons folder is a link that leaves the project.", where=workspace.where(path.parent))
    try:
        return read_regular(path, LESSONS)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = "it is a folder" if isinstance(error, IsADirectoryError) else str(error.strerror).lower()
        if isinstance(error, TooLargeError):
            raise LessonError(f"The lessons can't be read: {error.strerror}.", where=workspace.where(path)) from error
        raise LessonError(
            f"The lessons can't be read: {problem}.",
            where=workspace.where(path),
            next_step="Replace it by a regular file.",
        ) from error


def read_lessons(workspace: Workspace) -> tuple[Lesson, ...]:
    """Read every lesson of a project."""
    return parse_lessons_cached(raw_lessons(workspace) or b"")


@lru_cache(maxsize=2)
def parse_lessons_cached(raw: bytes) -> tuple[Lesson, ...]:
    """Cached, because one command reads the file several times and thousands of lessons take a while."""
    return parse_lessons(raw.decode("utf-8", errors="replace"))


def find_same_lesson(lesson: Lesson, lessons: Sequence[Lesson]) -> Lesson | None:
    """Return the first lesson that has the same words."""
    longest = max(lesson.words, key=len, default="")
    for candidate in lessons:
        # Splitting thousands of texts into words is slow; searching them for the longest word is not.
        text = " ".join(candidate.texts).casefold()
        if (longest in text or not text.isascii()) and candidate.words == lesson.words:
            return candidate
    return None


def _lesson(heading: re.Match[str], block: str, line: int) -> Lesson:
    fields = dict(_fields(block))
    return Lesson(
        heading[1],
        " ".join(heading[2].split()).strip(":—–- "),
        _split_list(fields.get("applies to", "")),
        _split_list(fields.get("linked", "")),
        fields.get("captured at", ""),
        fields.get("context", ""),
        fields.get("what worked", ""),
        fields.get("what failed", ""),
        fields.get("recommendation", ""),
        block,
        line,
    )


def _fields(block: str) -> Iterator[tuple[str, str]]:
    """Yield each field with its text, which may span several lines; of duplicate fields, the first counts."""
    end = len(block)
    for field in reversed(list(re.finditer(_FIELD, block))):
        stop = re.compile(_FIELD_END).search(block, field.end(), end)
        yield field[1].lower(), " ".join(block[field.end() : stop.start() if stop else end].split())
        end = field.start()


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
