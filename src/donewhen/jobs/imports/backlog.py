"""Read Backlog.md: one file per task, ``tasks/task-12 - Title.md``, with frontmatter and sections.

Besides ``tasks/`` there are ``completed/`` (claimed done), ``drafts/`` (undecided) and ``archive/`` (archived).
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
# Written by Backlog.md without quotation marks, which YAML does not allow.
_UNQUOTED_NAME = re.compile(
    r"^(?P<field>[ \t]*(?:[A-Za-z_]+:|-)[ \t]+)(?P<name>@[^\s'\"#,\[\]{}]+)(?P<rest>[ \t]*\r?)$", re.MULTILINE
)
_ID_NUMBER = re.compile(r"(?:[a-z][a-z0-9_]*-)?(?P<number>[0-9]+(?:\.[0-9]+)*)")
_LEADING_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
_DONE = ("done", "completed", "complete", "closed")
_SKIPPED_FOLDERS = {"drafts": "a draft", "archive": "archived"}


def read_backlog(texts: Sequence[SourceText]) -> ReadSource:
    """Return one item per task. A task with subtasks depends on them: it is not done before its parts are."""
    findings: list[ImportFinding] = []
    done = _done_statuses(texts, findings)
    tasks: list[tuple[ImportItem, str | None]] = []
    for text in texts:
        folder = text.name.split("/")[0] if "/" in text.name else ""
        if text.name in CONFIGS:
            continue
        if folder in _SKIPPED_FOLDERS:
            findings.append(skipped_finding(f"Skipped: the task is {_SKIPPED_FOLDERS[folder]}.", text.where))
            continue
        try:
            tasks.append(_task(text, done, folder == "completed", findings))
        except DonewhenError as error:
            findings.append(not_understood_finding(f"{error.message} The task was skipped.", error.where or text.where))
    linked = tuple(_link_parts(_with_known_ids(tasks), findings))
    return drop_duplicate_items(ReadSource(linked, tuple(findings)))


def normal_id(identifier: str) -> str:
    """Normalise an id for comparison: ``BACK-007.01`` and ``back-7.1`` are the same."""
    return _LEADING_ZEROS.sub("", identifier.strip().casefold())


def _with_quoted_names(text: str) -> str:
    """The text with quotation marks around names such as ``@mira`` in its frontmatter, on the same lines."""
    start, fence, rest = text.partition("---")
    fields, end, body = rest.partition("\n---")
    return "".join((start, fence, _UNQUOTED_NAME.sub(r'\g<field>"\g<name>"\g<rest>', fields), end, body))


def _with_known_ids(tasks: Sequence[tuple[ImportItem, str | None]]) -> list[tuple[ImportItem, str | None]]:
    """The tasks with ids of other tasks as these have them now. A project that has changed the prefix of its ids, from
    ``task-12`` to ``shop-12``, still has the earlier ones in its links; so do links with the number alone."""
    by_number: dict[str, set[str]] = {}
    for item, _ in tasks:
        if (match := _ID_NUMBER.fullmatch(item.name)) is not None:
            by_number.setdefault(match["number"], set()).add(item.key)
    known = {item.key for item, _ in tasks}

    def current(key: str) -> str:
        match = _ID_NUMBER.fullmatch(key.partition(":")[2])
        same = by_number.get(match["number"], set()) if match is not None else set()
        return next(iter(same)) if key not in known and len(same) == 1 else key

    return [
        (
            item._replace(depends_on=tuple(dict.fromkeys(map(current, item.depends_on)))),
            None if parent is None else current(f"backlog:{normal_id(parent)}").partition(":")[2],
        )
        for item, parent in tasks
    ]


def _done_statuses(texts: Sequence[SourceText], findings: list[ImportFinding]) -> tuple[str, ...]:
    """The names of the done status: the last column of the board, as in Backlog.md, and the usual names."""
    for text in texts:
        if text.name not in CONFIGS:
            continue
        try:
            fields, _ = read_yaml_fields(text.text, 0, len(text.text), text.where)
        except DonewhenError as error:
            findings.append(
                not_understood_finding(f"{error.message} Its columns are unknown.", error.where or text.where)
            )
            continue
        columns = fields.get("statuses")
        if isinstance(columns, list) and columns:
            return (*_DONE, str(columns[-1]).strip().casefold())
    return _DONE


def _task(
    text: SourceText, done: tuple[str, ...], completed: bool, findings: list[ImportFinding]
) -> tuple[ImportItem, str | None]:
    """Parse a task; return it with the id of its parent task."""
    document = parse_document(_with_quoted_names(text.text).encode(), text.where)
    fields = document.fields
    named = TASK_FILE.fullmatch(text.name.split("/")[-1])
    identifier = _text_of(document, "id") or (named["id"] if named else "")
    if not _ID.fullmatch(identifier):
        raise DonewhenError(f"The task has no valid id: {one_line(identifier, 40)!r}.", where=text.where)
    priority = priority_of(fields.get("priority"))
    if priority is None:
        message = f"The priority {one_line(_text_of(document, 'priority'), 40)!r} is unknown; the default was used."
        findings.append(not_understood_finding(message, _location(text, document, "priority")))
    criteria, ticked = _criteria(text, document, findings)
    status = _text_of(document, "status")
    item = ImportItem(
        key=f"backlog:{normal_id(identifier)}",
        title=_text_of(document, "title") or identifier,
        where=text.where,
        objective=_description(document),
        criteria=criteria,
        depends_on=tuple(f"backlog:{normal_id(word)}" for word in _texts_of(document, "dependencies", text, findings)),
        notes=tuple(_notes(document, text, findings)),
        priority=USUAL_PRIORITY if priority is None else priority,
        wave=one_line(_text_of(document, "milestone"), 100),
        claim=_claim(status, completed, ticked, len(criteria), done),
    )
    return item, _text_of(document, "parent_task_id") or _text_of(document, "parent") or None


def _claim(status: str, completed: bool, ticked: int, criteria: int, done: tuple[str, ...]) -> SourceClaim:
    parts = [f"status {one_line(status, 40)}"] if status else []
    parts += ["completed"] if completed else []
    parts += [f"{ticked} of {criteria} ticked"] if ticked else []
    return SourceClaim(", ".join(parts) or "nothing", completed or status.casefold() in done, status)


def _link_parts(tasks: Sequence[tuple[ImportItem, str | None]], findings: list[ImportFinding]) -> Iterator[ImportItem]:
    """Yield the tasks with their parts; each part names its parent."""
    known = {item.key for item, _ in tasks}
    parts: dict[str, list[str]] = {}
    for item, parent in tasks:
        if parent is None:
            continue
        parent_key = f"backlog:{normal_id(parent)}"
        parts.setdefault(parent_key, []).append(item.key)
        if parent_key not in known:
            message = f"{item.name} is a part of {one_line(parent, 60)}, which does not exist."
            findings.append(ImportFinding(FindingCode.IMPORT_DEPENDENCY, message, item.where))
    for item, parent in tasks:
        notes = item.notes if parent is None else (*item.notes, f"Part of: {parent}")
        yield item._replace(parts=tuple(parts.get(item.key, ())), notes=notes)


def _description(document: Document) -> str:
    marked = _DESCRIPTION.search(document.body)
    if marked:
        return normalise_text(marked[1]).strip()
    section = _section(_sections(document), "description")
    return section.text if section else ""


def _sections(document: Document) -> list[MarkdownSection]:
    """The sections outside of the description, whose own headings count as text."""
    body = _DESCRIPTION.sub(lambda found: "\n" * found[0].count("\n"), document.body)
    return markdown_sections(normalise_text(body), document.first_body_line)


def _section(sections: Sequence[MarkdownSection], title: str) -> MarkdownSection | None:
    return next((section for section in sections if section.title.casefold() == title), None)


def _criteria(text: SourceText, document: Document, findings: list[ImportFinding]) -> tuple[tuple[str, ...], int]:
    """Return acceptance criteria and definition of done, both of which must hold, and how many are ticked."""
    criteria: list[str] = []
    ticked = 0
    for title, prefix in (("acceptance criteria", ""), ("definition of done", "Definition of done: ")):
        for section in (section for section in _sections(document) if section.title.casefold() == title):
            listed = list_items(section.lines)
            for box in listed.items:
                criteria.append(prefix + _NUMBER.sub("", box.text, count=1))
                ticked += box.ticked
            for number, line in listed.others:
                if line.lstrip().startswith("#"):
                    continue  # a heading that groups the items
                message = f"{one_line(line, 60)!r} is not a list item; it was skipped."
                findings.append(not_understood_finding(message, f"{text.where}:{number}"))
    return tuple(criteria), ticked


def _notes(document: Document, text: SourceText, findings: list[ImportFinding]) -> Iterator[str]:
    for name, label in (("labels", "Labels"), ("assignee", "Assignee")):
        if words := _texts_of(document, name, text, findings):
            yield f"{label}: {', '.join(words)}"


def _text_of(document: Document, name: str) -> str:
    """Return a field as written, without YAML's conversion of values."""
    value = document.fields.get(name)
    if value is None or isinstance(value, list | dict):
        return ""
    span = document.spans.get(name)
    if not isinstance(value, str) and span is not None:
        return document.text[span.start : span.end].strip()
    return str(value).strip()


def _texts_of(document: Document, name: str, text: SourceText, findings: list[ImportFinding]) -> tuple[str, ...]:
    fields: Mapping[str, Value] = document.fields
    value = fields.get(name)
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and not any(isinstance(item, list | dict) or item is None for item in value):
        return tuple(str(item) for item in value)
    findings.append(
        not_understood_finding(f"{name} is not a list of strings; it was skipped.", _location(text, document, name))
    )
    return ()


def _location(text: SourceText, document: Document, name: str) -> str:
    line = document.line_of(name)
    return f"{text.where}:{line}" if line else text.where
