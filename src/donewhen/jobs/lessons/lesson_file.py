"""Lessons: what a job has learned, as Markdown that people and another tool write as well.

``notes/lessons-learned.md`` is the truth about what a lesson says; the index beside it is made from it.
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
from donewhen.foundation.files import read_regular
from donewhen.foundation.plain_text import plain_text
from donewhen.jobs.plan.criteria import is_placeholder
from donewhen.jobs.plan.workspace import Workspace

TITLE = "# Lessons Learned"
_HEADING = re.compile(r"^#{1,6}[ \t].*?\b(LL-[\w-]+)(.*)$", re.MULTILINE)
_FIELD = re.compile(
    r"^[-*+ \t]*\**(applies to|linked|captured at|context|what worked|what failed|recommendation)\**[ \t]*:\**[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_ENDS_A_FIELD = re.compile(r"^#{1,6}[ \t]", re.MULTILINE)
_DATED = re.compile(r"LL-([0-9]{8})-([0-9]{3,18})")
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# A name such as parse_log is looked for by its parts; in Chinese and Japanese each character is a word.
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")
_SNIPPET_LINES = 12


class LessonError(DonewhenError):
    """The file of lessons can't be used, or a lesson is not one."""

    code = "lesson"
    exit_code = ExitCode.USAGE


@dataclass(frozen=True)
class Lesson:
    """One lesson as it stands in the file."""

    id: str
    title: str = ""
    """What stands beside the id."""
    tags: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    captured_at: str = ""
    context: str = ""
    worked: str = ""
    failed: str = ""
    recommendation: str = ""
    text: str = ""
    """The whole block, with whatever else stands in it."""
    line: int = 1

    @property
    def said(self) -> tuple[str, str, str, str]:
        return (self.context, self.worked, self.failed, self.recommendation)

    @cached_property
    def hash(self) -> str:
        """The name of what it says. Tags and links may be added later, so they have no part in it."""
        return digest_of([self.id, self.title, *self.said])

    @property
    def says_nothing(self) -> bool:
        return all(is_placeholder(one) for one in self.said)

    @property
    def substantive(self) -> bool:
        """Whether it says what happened, what worked and what to do; nothing has to have failed."""
        return not any(is_placeholder(one) for one in (self.context, self.worked, self.recommendation))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """What it says, word by word: two lessons with the same words are copies of each other."""
        return tuple(word for one in self.said for word in words_in(one))

    @cached_property
    def snippet(self) -> str:
        """Its first lines as one."""
        return " ".join(" ".join(self.text.split("\n")[:_SNIPPET_LINES]).split())

    @property
    def age(self) -> tuple[str, int, int]:
        """By day and number, and by its place where the id has none: what sorts last is the newest."""
        dated = _DATED.fullmatch(self.id)
        return (dated[1], int(dated[2]), self.line) if dated else ("", 0, self.line)

    def names(self, job: str) -> bool:
        """Whether a job's id stands anywhere in it."""
        return job in self.text and re.search(rf"\b{re.escape(job)}\b", self.text) is not None


def words_in(text: str) -> list[str]:
    """The words of a text in any script, in lower case and normal width."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.casefold())


def one_paragraph(text: str) -> str:
    """A text on one line, without what a reader would not see: control characters, and comments."""
    flat = " ".join(plain_text(text).split())
    while "<!--" in flat:
        flat = flat.replace("<!--", "<! --")
    return flat


def parse_lessons(text: str) -> tuple[Lesson, ...]:
    """Every lesson of a text, in order. What belongs to none is nobody's."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    headings = list(_HEADING.finditer(text))
    ends = [*(one.start() for one in headings), len(text)]
    line, counted, found = 1, 0, []
    for heading, (start, end) in zip(headings, pairwise(ends), strict=True):
        line, counted = line + text.count("\n", counted, start), start
        found.append(_lesson(heading, text[start:end], line))
    return tuple(found)


def render_lesson(lesson: Lesson) -> str:
    """A lesson in the form that is appended; each text is one line, so that none can look like another field."""
    head = (
        f"## {lesson.id}",
        f"- Applies to: {', '.join(lesson.tags)}".rstrip(),
        f"- Linked: {', '.join(lesson.linked)}".rstrip(),
        f"- Captured at: {lesson.captured_at}".rstrip(),
    )
    names = ("Context", "What worked", "What failed", "Recommendation")
    said = (f"\n**{name}:** {text}".rstrip() for name, text in zip(names, lesson.said, strict=True))
    return "\n".join((*head, *said)) + "\n"


def lessons_path(workspace: Workspace) -> Path:
    return workspace.base / "notes" / "lessons-learned.md"


def raw_lessons(workspace: Workspace) -> bytes | None:
    """The file of lessons as it is; None where there is none yet. Links are not followed."""
    path = lessons_path(workspace)
    inside = os.path.realpath(workspace.root)
    if not Path(os.path.realpath(path.parent)).is_relative_to(inside):
        raise LessonError("The folder of lessons is a link out of the project.", where=workspace.where(path.parent))
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        told = "it is a folder" if isinstance(error, IsADirectoryError) else str(error.strerror).lower()
        raise LessonError(
            f"The lessons can't be read: {told}.", where=workspace.where(path), next_step="Make it a file of your own."
        ) from error


def read_lessons(workspace: Workspace) -> tuple[Lesson, ...]:
    """Every lesson of a project, read now."""
    return parse_lessons_cached(raw_lessons(workspace) or b"")


@lru_cache(maxsize=2)
def parse_lessons_cached(raw: bytes) -> tuple[Lesson, ...]:
    """One command looks several times, and thousands of lessons take a while."""
    return parse_lessons(raw.decode("utf-8", errors="replace"))


def find_same_lesson(lesson: Lesson, lessons: Sequence[Lesson]) -> Lesson | None:
    """The first of these lessons that says, word for word, the same."""
    longest = max(lesson.words, key=len, default="")
    for one in lessons:
        # Taking thousands of texts apart takes a while; looking for one word in them does not.
        text = " ".join(one.said).casefold()
        if (longest in text or not text.isascii()) and one.words == lesson.words:
            return one
    return None


def _lesson(heading: re.Match[str], block: str, line: int) -> Lesson:
    fields = dict(_fields(block))
    return Lesson(
        heading[1],
        " ".join(heading[2].split()).strip(":—–- "),
        _listed(fields.get("applies to", "")),
        _listed(fields.get("linked", "")),
        fields.get("captured at", ""),
        fields.get("context", ""),
        fields.get("what worked", ""),
        fields.get("what failed", ""),
        fields.get("recommendation", ""),
        block,
        line,
    )


def _fields(block: str) -> Iterator[tuple[str, str]]:
    """Each field with its text, which may go over several lines; of two with one name, the first counts."""
    end = len(block)
    for one in reversed(list(_FIELD.finditer(block))):
        stop = _ENDS_A_FIELD.search(block, one.end(), end)
        yield one[1].lower(), " ".join(block[one.end() : stop.start() if stop else end].split())
        end = one.start()


def _listed(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
