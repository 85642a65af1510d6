"""The parts of a ticket: its task, what answers it, its diff, and its blocks between separating lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

HEADING = re.compile(
    r"^(?:#{1,6}[ \t]+(?P<hash>\S.*?)[ \t#]*|\*\*(?P<bold>[^*\n]{1,60})\*\*:?|(?P<caps>[A-Z][A-Z'’ /&\-]{2,59}):?|"
    r"【(?P<bracket>[^】\n]{1,30})】)[ \t]*$",
    re.MULTILINE,
)
_SEPARATOR = re.compile(r"^[ \t]*(?:-{3,}|={3,}|\*{3,}|_{3,})[ \t]*$", re.MULTILINE)
_TASK = re.compile(
    r"task|issue|request|question|instruction|problem|goal|prompt|criterion|requirement|任务|要求|问题|需求",
    re.IGNORECASE,
)
_DIFF = re.compile(r"^(?:diff --git |--- (?:a/|/dev/null))", re.MULTILINE)
_FILE = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Diff:
    """The changes of a diff, line by line."""

    text: str
    files: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]


class TicketParts(NamedTuple):
    """A ticket's text with its parts. Without a task of its own, task and answer are empty."""

    text: str
    task: str
    answer: str
    blocks: tuple[str, ...]
    diff: Diff | None


def heading_name(heading: re.Match[str]) -> str:
    """Return the text of a heading without its marks."""
    return str(next(filter(None, heading.groups())))


def parts_of(evidence: Mapping[str, str], text: str) -> TicketParts:
    """Divide a ticket. Several texts are its sections; a single text is divided at its headings."""
    sections = list(evidence.items()) if len(evidence) > 1 else _sections(text)
    named = [(name, body) for name, body in sections if body.strip()]
    task = answer = ""
    if len(named) > 1:
        at = next((number for number, (name, _) in enumerate(named) if _TASK.search(name)), 0)
        task = named[at][1]
        answer = "\n\n".join(body for number, (_, body) in enumerate(named) if number != at)
    blocks = tuple(block for block in _SEPARATOR.split(text) if block.strip())
    return TicketParts(text, task, answer, blocks, _diff_in(text))


def _sections(text: str) -> list[tuple[str, str]]:
    headings = list(HEADING.finditer(text))
    starts = [0, *(heading.end() for heading in headings)]
    ends = [*(heading.start() for heading in headings), len(text)]
    names = ["", *map(heading_name, headings)]
    return [(name, text[start:end]) for name, start, end in zip(names, starts, ends, strict=True)]


def _diff_in(text: str) -> Diff | None:
    start = _DIFF.search(text)
    if start is None:
        return None
    diff = text[start.start() :]
    lines = diff.splitlines()
    return Diff(diff, tuple(_FILE.findall(diff)), _marked(lines, "+"), _marked(lines, "-"))


def _marked(lines: Sequence[str], mark: str) -> tuple[str, ...]:
    return tuple(line[1:] for line in lines if line.startswith(mark) and not line.startswith(mark * 3))
