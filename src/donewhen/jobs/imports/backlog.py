"""Backlog.md: a file a task, ``tasks/task-12 - Title.md``, with frontmatter and sections.

Beside ``tasks/`` stand ``completed/`` (done, it says), ``drafts/`` (not decided on) and ``archive/`` (put away).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.imports.items import (
    USUAL_PRIORITY,
    ImportFinding,
    ImportItem,
    ReadSource,
    SourceClaim,
    SourceText,
    drop_duplicate_items,
    not_understood_finding,
    priority_of,
    skipped_finding,
)
from donewhen.jobs.imports.markdown import list_items, normalise_text
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.criteria import MarkdownSection, markdown_sections
from donewhen.jobs.plan.document import Document, parse_document
from donewhen.jobs.plan.frontmatter import Value, read_yaml_fields

TASK_FILE = re.compile(r"(?P<id>[A-Za-z][A-Za-z0-9_]*-[0-9]+(?:\.[0-9]+)*)(?: - .*)?\.md")
CONFIGS = ("config.yml", "config.yaml")
_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]*-[0-9]+(?:\.[0-9]+)*")
_DESCRIPTION = re.compile(
    r"<!--[ ]*SECTION:DESCRIPTION:BEGIN[ ]*-->(.*?)<!--[ ]*SECTION:DESCRIPTION:END[ ]*-->", re.DOTALL
)
_NUMBER = re.compile(r"#[0-9]+[ \t]+")
_LEADING_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
_DONE = ("done", "completed", "complete", "closed")
_PUT_ASIDE = {"drafts": "a draft: nobody has decided on it yet", "archive": "archived: Backlog.md has put it away"}


def read_backlog(texts: Sequence[SourceText]) -> ReadSource:
    """A job a task. A task with subtasks comes after them: it is not done before its parts are."""
    findings: list[ImportFinding] = []
    done = _done_statuses(texts, findings)
    tasks: list[tuple[ImportItem, str | None]] = []
    for text in texts:
        folder = text.name.split("/")[0] if "/" in text.name else ""
        if text.name in CONFIGS:
            continue
        if folder in _PUT_ASIDE:
            findings.append(skipped_finding(f"It is {_PUT_ASIDE[folder]}.", text.where))
            continue
        try:
            tasks.append(_task(text, done, folder == "completed", findings))
        except DonewhenError as error:
            findings.append(
                not_understood_finding(f"{error.message} The task was left out.", error.where or text.where)
            )
    linked = tuple(_linked(tasks, findings))
    return drop_duplicate_items(ReadSource(linked, tuple(findings)))


def normal_id(identifier: str) -> str:
    """An id as it is compared: ``BACK-007.01`` and ``back-7.1`` are one."""
    return _LEADING_ZEROS.sub("", identifier.strip().casefold())


def _done_statuses(texts: Sequence[SourceText], findings: list[ImportFinding]) -> tuple[str, ...]:
    """The words for done: the last of the board's columns, as Backlog.md has it, and the usual ones."""
    for text in texts:
        if text.name not in CONFIGS:
            continue
        try:
            fields, _ = read_yaml_fields(text.text, 0, len(text.text), text.where)
        except DonewhenError as error:
            findings.append(
                not_understood_finding(f"{error.message} Its columns are not known.", error.where or text.where)
            )
            continue
        columns = fields.get("statuses")
        if isinstance(columns, list) and columns:
            return (*_DONE, str(columns[-1]).strip().casefold())
    return _DONE


def _task(
    text: SourceText, done: tuple[str, ...], completed: bool, findings: list[ImportFinding]
) -> tuple[ImportItem, str | None]:
    """A task, and the id of the one that it is a part of."""
    document = parse_document(text.text.encode(), text.where)
    fields = document.fields
    named = TASK_FILE.fullmatch(text.name.split("/")[-1])
    identifier = _word(document, "id") or (named["id"] if named else "")
    if not _ID.fullmatch(identifier):
        raise DonewhenError(f"It has no id that can be one: {one_line(identifier, 40)!r}.", where=text.where)
    priority = priority_of(fields.get("priority"))
    if priority is None:
        message = f"The priority {one_line(_word(document, 'priority'), 40)!r} is not known; the usual one was taken."
        findings.append(not_understood_finding(message, _at(text, document, "priority")))
    criteria, ticked = _criteria(text, document, findings)
    status = _word(document, "status")
    item = ImportItem(
        key=f"backlog:{normal_id(identifier)}",
        title=_word(document, "title") or identifier,
        where=text.where,
        objective=_description(document),
        criteria=criteria,
        depends_on=tuple(f"backlog:{normal_id(word)}" for word in _words(document, "dependencies", text, findings)),
        notes=tuple(_notes(document, text, findings)),
        priority=USUAL_PRIORITY if priority is None else priority,
        wave=one_line(_word(document, "milestone"), 100),
        claim=_claim(status, completed, ticked, len(criteria), done),
    )
    return item, _word(document, "parent_task_id") or _word(document, "parent") or None


def _claim(status: str, completed: bool, ticked: int, criteria: int, done: tuple[str, ...]) -> SourceClaim:
    parts = [f"status {one_line(status, 40)}"] if status else []
    parts += ["completed"] if completed else []
    parts += [f"{ticked} of {criteria} ticked"] if ticked else []
    return SourceClaim(", ".join(parts) or "nothing", completed or status.casefold() in done)


def _linked(tasks: Sequence[tuple[ImportItem, str | None]], findings: list[ImportFinding]) -> Iterator[ImportItem]:
    """The tasks with their parts, as the parts name what they belong to."""
    known = {item.key for item, _ in tasks}
    parts: dict[str, list[str]] = {}
    for item, parent in tasks:
        if parent is None:
            continue
        above = f"backlog:{normal_id(parent)}"
        parts.setdefault(above, []).append(item.key)
        if above not in known:
            message = f"{item.name} is a part of {one_line(parent, 60)}, which is not there."
            findings.append(ImportFinding(FindingCode.IMPORT_DEPENDENCY, message, item.where))
    for item, parent in tasks:
        notes = item.notes if parent is None else (*item.notes, f"Part of: {parent}")
        yield item._replace(parts=tuple(parts.get(item.key, ())), notes=notes)


def _description(document: Document) -> str:
    marked = _DESCRIPTION.search(document.body)
    if marked:
        return normalise_text(marked[1]).strip()
    found = _section(_sections(document), "description")
    return found.text if found else ""


def _sections(document: Document) -> list[MarkdownSection]:
    """The sections outside of the description, whose own headings are text."""
    body = _DESCRIPTION.sub(lambda found: "\n" * found[0].count("\n"), document.body)
    return markdown_sections(normalise_text(body), document.first_body_line)


def _section(found: Sequence[MarkdownSection], title: str) -> MarkdownSection | None:
    return next((one for one in found if one.title.casefold() == title), None)


def _criteria(text: SourceText, document: Document, findings: list[ImportFinding]) -> tuple[tuple[str, ...], int]:
    """Acceptance criteria and definition of done: both have to hold. And how many of them are ticked."""
    criteria: list[str] = []
    ticked = 0
    for title, before in (("acceptance criteria", ""), ("definition of done", "Definition of done: ")):
        same = [one for one in _sections(document) if one.title.casefold() == title]
        for section in same:
            found = list_items(section.lines)
            for box in found.items:
                criteria.append(before + _NUMBER.sub("", box.text, count=1))
                ticked += box.ticked
            for number, line in found.others:
                message = f"{one_line(line, 60)!r} is no item of a list, so it became no criterion."
                findings.append(not_understood_finding(message, f"{text.where}:{number}"))
    return tuple(criteria), ticked


def _notes(document: Document, text: SourceText, findings: list[ImportFinding]) -> Iterator[str]:
    for name, told in (("labels", "Labels"), ("assignee", "Assignee")):
        if words := _words(document, name, text, findings):
            yield f"{told}: {', '.join(words)}"


def _word(document: Document, name: str) -> str:
    """A field as one text: as it stands there, whatever YAML would make of it."""
    value = document.fields.get(name)
    if value is None or isinstance(value, list | dict):
        return ""
    span = document.spans.get(name)
    if not isinstance(value, str) and span is not None:
        return document.text[span.start : span.end].strip()
    return str(value).strip()


def _words(document: Document, name: str, text: SourceText, findings: list[ImportFinding]) -> tuple[str, ...]:
    fields: Mapping[str, Value] = document.fields
    value = fields.get(name)
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and not any(isinstance(one, list | dict) or one is None for one in value):
        return tuple(str(one) for one in value)
    findings.append(
        not_understood_finding(f"{name} is no list of texts; it was passed over.", _at(text, document, name))
    )
    return ()


def _at(text: SourceText, document: Document, name: str) -> str:
    line = document.line_of(name)
    return f"{text.where}:{line}" if line else text.where
