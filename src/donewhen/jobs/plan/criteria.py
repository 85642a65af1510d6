"""Acceptance criteria in a plan's Markdown, and how each of them is checked."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.process import split_command
from donewhen.jobs.ledger.evidence_levels import NEEDED, NeededLevel
from donewhen.jobs.plan.frontmatter import LINE_END
from donewhen.jobs.plan.placeholders import is_placeholder as is_placeholder
from donewhen.jobs.plan.placeholders import is_unedited, is_weak

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})(.*)")
_MARKS = (" ", "`", "~")
_MAX_INDENT = 3
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(.*)")
_WITH_ID = re.compile(r"(?:\*\*)?([A-Z]{1,6}-?[0-9]+)(?:\*\*)?(?::|[.)](?=[ \t*]|\Z))(?:\*\*)?[ \t]*(.*)")
_CHECK = re.compile(r"[ \t]+(?:[-*+][ \t]+)?check:[ \t]*(.*)")
# Any other line that begins with `needs:` is a part of the text, as it always was.
_NEEDS = re.compile(
    rf"(?P<indent>[ \t]*)(?:[-*+][ \t]+)?needs:[ \t]*(?P<level>{'|'.join(NEEDED)})[ \t]*", re.IGNORECASE
)
_PROBE = re.compile(
    r"(?P<path>\"[^\"]+\"|\S+)"
    r"(?:[ \t]+(?:matches[ \t]+/(?P<regex>.*)/|schema[ \t]+(?P<schema>\"[^\"]+\"|\S+)|"
    r"rows[ \t]*>=[ \t]*(?P<rows>[0-9]{1,18})))?"
)
_JUDGE = re.compile(r"judge(?::[ \t]*|[ \t]+)([A-Za-z0-9][A-Za-z0-9._-]{0,99})")

CheckKind = Literal["run", "file", "judge", "manual", "verification", "gate"]


@dataclass(frozen=True)
class Check:
    """How a criterion is checked. ``verification`` means the job's own verification commands."""

    kind: CheckKind
    text: str = ""
    argv: tuple[str, ...] = ()
    path: str | None = None
    regex: str | None = None
    schema: str | None = None
    rows: int | None = None

    @property
    def reads_content(self) -> bool:
        """Whether it is a file check that asks for more than a file that is not empty."""
        return self.kind == "file" and (self.regex, self.schema, self.rows) != (None, None, None)

    @property
    def normal(self) -> str:
        """The check in normal form, without insignificant white space."""
        if self.kind == "run":
            return f"run {shlex.join(self.argv)}"
        if self.regex is not None:
            return f"file {_quoted(self.path)} matches /{self.regex}/"
        if self.schema is not None:
            return f"file {_quoted(self.path)} schema {_quoted(self.schema)}"
        if self.rows is not None:
            return f"file {_quoted(self.path)} rows >= {self.rows}"
        return f"{self.kind} {self.text}".rstrip()


@dataclass(frozen=True)
class Criterion:
    """A criterion, and its line in the file."""

    id: str
    text: str
    check: Check | None
    """None if the criterion names no check: then the job's verification commands decide, or a person."""
    line: int
    needs: NeededLevel | None = None
    """How strong the evidence for it has to be at least; None if the criterion does not say it."""

    @property
    def placeholder(self) -> bool:
        """Whether it says nothing that can be checked. With a check of its own, it is judged by that: then only the
        text of a template, or none at all, is a placeholder."""
        checked = self.check is not None and self.check.kind != "manual"
        return is_unedited(self.text) if checked else is_weak(self.text)


@dataclass(frozen=True)
class MarkdownSection:
    """A heading and its lines, up to the next heading of the same or a higher level."""

    title: str
    level: int
    line: int
    lines: tuple[tuple[int, str], ...]

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines).strip()


def markdown_sections(body: str, first_line: int = 1) -> list[MarkdownSection]:
    """The sections of a Markdown text; headings inside code fences and comments are ignored."""
    lines = LINE_END.split(body)
    if not lines[-1]:
        lines.pop()
    headings: list[tuple[int, int, str]] = []
    fence, comment = "", False
    commented = "<!--" in body
    for index, line in enumerate(lines):
        if commented and not fence:
            before, comment = comment, _comment_after(line, comment)
            if before or comment:
                continue
        if line[:1] in _MARKS:
            fence = fence_after(line, fence)
        if (
            not fence
            and line[:1] == "#"
            and (heading := _HEADING.fullmatch(line))
            and (title := _strip_closing_hashes(heading[2]))
        ):
            headings.append((index, len(heading[1]), title))
    sections = []
    for position, (index, level, title) in enumerate(headings):
        # By index: copying the rest for every heading would take minutes for a file of nothing but headings.
        following = range(position + 1, len(headings))
        end = next((headings[later][0] for later in following if headings[later][1] <= level), len(lines))
        below = tuple((first_line + number, lines[number]) for number in range(index + 1, end))
        sections.append(MarkdownSection(title, level, first_line + index, below))
    return sections


def fence_after(line: str, fence: str) -> str:
    """The code fence that is open after a line, if ``fence`` was open before it."""
    marker = _FENCE.fullmatch(line)
    if marker is None:
        return fence
    if fence:
        return "" if marker[1].startswith(fence) and not marker[2].strip() else fence
    return "" if marker[1][0] == "`" and "`" in marker[2] else marker[1]


def _comment_after(line: str, comment: bool) -> bool:
    """Whether an HTML comment is open after a line, if ``comment`` says so of the line before. As in CommonMark, such a
    comment begins at the start of a line; one inside a line is part of the text."""
    if comment:
        return "-->" not in line
    bare = line.lstrip(" ")
    return bare.startswith("<!--") and len(line) - len(bare) <= _MAX_INDENT and "-->" not in bare


def _strip_closing_hashes(title: str) -> str:
    stripped = title.strip(" \t")
    bare = stripped.rstrip("#")
    return bare.rstrip(" \t") if not bare or bare[-1] in " \t" else stripped


def find_section(body: str, title: str, first_line: int = 1) -> MarkdownSection | None:
    """The first section with this title; case is ignored."""
    wanted = title.casefold()
    return next(
        (section for section in markdown_sections(body, first_line) if section.title.casefold() == wanted), None
    )


def read_criteria(section: MarkdownSection | None, where: str) -> tuple[Criterion, ...]:
    """Parse the criteria of a section; those without ids are numbered in order."""
    if section is None:
        return ()
    criteria: list[Criterion] = []
    for line, text, check, needs in _items(section, where):
        with_id = _WITH_ID.fullmatch(text)
        name, prose = (with_id[1], with_id[2]) if with_id else (f"AC-{len(criteria) + 1}", text)
        if any(criterion.id == name for criterion in criteria):
            raise ConfigError(f"Duplicate criterion id {name}.", where=f"{where}:{line}")
        parsed = None if check is None else parse_check(check[1], f"{where}:{check[0]}")
        criteria.append(Criterion(name, " ".join(prose.split()), parsed, line, needs))
    return tuple(criteria)


def parse_check(text: str, where: str) -> Check:
    """Parse ``run CMD…``, ``file PATH [matches /RE/ | schema PATH | rows >= N]``, ``judge:MISSION`` or ``manual``."""
    words = text.split(None, 1)
    kind, rest = (words[0], words[1].strip() if len(words) > 1 else "") if words else ("", "")
    if kind == "manual" and not rest:
        return Check("manual")
    if (judge := _JUDGE.fullmatch(text.strip())) is not None:
        return Check("judge", judge[1])
    if kind == "run" and rest:
        try:
            return Check("run", rest, argv=split_command(rest))
        except UsageError as error:
            raise ConfigError(error.message, where=where, next_step=error.next_step) from error
    if kind == "file" and (probe := _PROBE.fullmatch(rest)):
        return _file_check(rest, probe, where)
    raise ConfigError(
        f"Unknown check {text.strip()!r}.",
        where=where,
        next_step="Write: run CMD, file PATH [matches /RE/ | schema PATH | rows >= N], judge:MISSION, or manual.",
    )


def criterion_item(text: str, where: str) -> str:
    """A criterion, given as ``TEXT`` or ``TEXT :: CHECK``, as it is written in a plan; raise an error if invalid."""
    words, _, check = (one_line(part, 2000) for part in text.partition("::"))
    if not words:
        raise UsageError(f"The criterion {text!r} has no text.")
    if not check:
        return words
    parse_check(check, where)
    return f"{words}\n  check: {check}"


def _file_check(rest: str, probe: re.Match[str], where: str) -> Check:
    if probe["regex"] is not None:
        try:
            re.compile(probe["regex"])
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigError(f"The pattern /{probe['regex']}/ can't be compiled: {error}.", where=where) from error
    rows = int(probe["rows"]) if probe["rows"] is not None else None
    path, schema = _unquoted(probe["path"]), _unquoted(probe["schema"])
    return Check("file", rest, path=path, regex=probe["regex"], schema=schema, rows=rows)


def _unquoted(path: str | None) -> str | None:
    return path[1:-1] if path is not None and len(path) > 2 and path[0] == path[-1] == '"' else path


def _quoted(path: str | None) -> str:
    """A path as it is written in a check: in quotes if it has white space."""
    return f'"{path}"' if path is not None and len(path.split()) > 1 else str(path)


class _Item(NamedTuple):
    """A list item at the left margin, with what is said below it."""

    line: int
    text: str
    check: tuple[int, str] | None
    """The line and the text of its check."""
    needs: NeededLevel | None


def _items(section: MarkdownSection, where: str) -> Iterator[_Item]:
    """Yield each list item at the left margin, its text with continuation lines. What is in a comment is no item."""
    line, texts, check, fence, comment = 0, [""], None, "", False
    needs: NeededLevel | None = None
    for number, content in section.lines:
        if not fence:
            before, comment = comment, _comment_after(content, comment)
            if before or comment:
                continue
        fence = fence_after(content, fence)
        item = None if fence else _ITEM.fullmatch(content)
        stated = None if fence else _CHECK.fullmatch(content)
        level = None if fence else _NEEDS.fullmatch(content)
        if level and (not line or not level["indent"]):
            raise ConfigError(
                "The level of evidence belongs to no criterion.",
                where=f"{where}:{number}",
                next_step="Indent it below its criterion.",
            )
        if level:
            if needs is not None:
                raise ConfigError(
                    "The criterion asks for more than one level of evidence.",
                    where=f"{where}:{number}",
                    next_step="Keep one line: needs: strong, or needs: fair.",
                )
            needs = next(known for known in NEEDED if known == level["level"].casefold())
        elif item:
            if line:
                yield _Item(line, " ".join(texts), check, needs)
            line, texts, check, needs = number, [item[1].strip()], None, None
        elif stated and line:
            if check is not None:
                raise ConfigError(
                    "The criterion has more than one check.",
                    where=f"{where}:{number}",
                    next_step="Split it into two criteria.",
                )
            check = (number, stated[1])
        elif not fence and content.startswith("check:"):
            raise ConfigError(
                "The check belongs to no criterion.",
                where=f"{where}:{number}",
                next_step="Indent it below its criterion.",
            )
        elif content.strip() and line and content[:1] in " \t":
            texts.append(content.strip())
    if line:
        yield _Item(line, " ".join(texts), check, needs)
