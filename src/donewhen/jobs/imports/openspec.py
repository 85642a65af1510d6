"""Read OpenSpec: one folder per change, ``changes/<id>/`` with ``proposal.md``, ``tasks.md`` and ``specs/*/spec.md``.

A change becomes a job, because OpenSpec archives whole changes. Its criteria are the scenarios of its deltas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.imports.items import (
    ImportFinding,
    ImportItem,
    ReadSource,
    SourceClaim,
    SourceText,
    drop_duplicate_items,
    not_understood_finding,
)
from donewhen.jobs.imports.markdown import (
    Box,
    checkbox_items,
    list_items,
    normalise_text,
    own_lines,
    prose,
    without_marks,
)
from donewhen.jobs.plan.criteria import MarkdownSection, markdown_sections

_DELTA = re.compile(r"(ADDED|MODIFIED|REMOVED|RENAMED)[ \t]+Requirements", re.IGNORECASE)
_REQUIREMENT = re.compile(r"Requirement:[ \t]*(.+)", re.IGNORECASE)
_SCENARIO = re.compile(r"Scenario:[ \t]*(.+)", re.IGNORECASE)
_DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-(.+)")
_RENAMED = re.compile(r"(FROM|TO):[ \t]*`?(?:#+[ \t]*)?(?:Requirement:[ \t]*)?(.*?)`?", re.IGNORECASE)


def read_openspec(texts: Sequence[SourceText]) -> ReadSource:
    """Return one item per change, archived or not: being archived is only a claim of the source."""
    changes: dict[tuple[bool, str], list[SourceText]] = {}
    for text in texts:
        parts = text.name.split("/")
        archived = parts[0] == "archive"
        name = parts[1 if archived else 0]
        changes.setdefault((archived, name), []).append(text)
    findings: list[ImportFinding] = []
    items: list[ImportItem] = []
    taken = {name for archived, name in changes if not archived}
    for (archived, folder), files in changes.items():
        dated = _DATED.fullmatch(folder) if archived else None
        # A change keeps its name when it is archived; the date is needed only if the name was used again.
        name = dated[1] if dated and dated[1] not in taken else folder
        taken.add(name)
        item = _change(name, archived, files, findings)
        if item is not None:
            items.append(item)
    return drop_duplicate_items(ReadSource(tuple(items), tuple(findings)))


def _change(name: str, archived: bool, files: Sequence[SourceText], findings: list[ImportFinding]) -> ImportItem | None:
    files_by_name = {text.name.split("/", 2 if archived else 1)[-1]: text for text in files}
    proposal, tasks = files_by_name.get("proposal.md"), files_by_name.get("tasks.md")
    deltas = [text for path, text in sorted(files_by_name.items()) if path.startswith("specs/")]
    first = proposal or tasks or (deltas[0] if deltas else None)
    if first is None:
        message = f"The change {one_line(name, 60)!r} has neither proposal.md nor tasks.md nor specs; it was skipped."
        findings.append(not_understood_finding(message, files[0].where))
        return None
    boxes = _tasks(tasks, findings) if tasks is not None else ()
    criteria = tuple(criterion for text in deltas for criterion in _requirements(text, findings))
    steps = [box.text for box in boxes]
    title, objective = _proposal(proposal) if proposal is not None else ("", "")
    if criteria and steps:
        objective = "\n\n".join((objective, "\n".join(("Tasks:", *(f"- {step}" for step in steps))))).strip()
    ticked = sum(box.ticked for box in boxes)
    claims = ["archived"] if archived else []
    claims += [f"{ticked} of {len(boxes)} tasks ticked"] if ticked else []
    return ImportItem(
        key=f"openspec:{name}",
        title=title or name,
        where=first.where,
        objective=objective,
        criteria=criteria or tuple(steps),
        claim=SourceClaim(", ".join(claims) or "nothing", archived or (bool(boxes) and ticked == len(boxes))),
    )


def _proposal(text: SourceText) -> tuple[str, str]:
    """Return the title, or "", and the sections Why and What Changes."""
    sections = markdown_sections(normalise_text(text.text))
    top = next((section.title for section in sections if section.level == 1), "")
    title = re.sub(r"\A(?:Change(?: Proposal)?|Proposal):[ \t]*", "", top, flags=re.IGNORECASE)
    parts = [
        f"{section.title}:\n{section.text}"
        for section in sections
        if section.level == 2 and section.title.casefold() in ("why", "what changes") and section.text
    ]
    return ("" if title.casefold() in ("proposal", "change") else title), "\n\n".join(parts)


def _tasks(text: SourceText, findings: list[ImportFinding]) -> tuple[Box, ...]:
    boxes = checkbox_items(enumerate(normalise_text(text.text).split("\n"), 1)).items
    if not boxes:
        findings.append(not_understood_finding("No task like `- [ ] 1.1 …` was found.", text.where))
    return boxes


def _requirements(text: SourceText, findings: list[ImportFinding]) -> Iterator[str]:
    """Yield what must hold afterwards, one sentence per scenario."""
    kind = ""
    seen = False
    requirement: str | None = None
    sections = markdown_sections(normalise_text(text.text))
    for place, section in enumerate(sections):
        where = f"{text.where}:{section.line}"
        if section.level <= 2:
            delta = _DELTA.fullmatch(section.title)
            kind, requirement = (delta[1].upper() if delta else ""), None
            seen = seen or delta is not None
            if kind == "RENAMED":
                yield from _renamed_requirements(section, where, findings)
        elif kind and section.level == 3:
            named = _REQUIREMENT.fullmatch(section.title)
            requirement = named[1] if named else None
            if named is None:
                message = f"{one_line(section.title, 60)!r} is not a `### Requirement:`; it was skipped."
                findings.append(not_understood_finding(message, where))
            elif kind == "REMOVED":
                yield f"{named[1]}: this requirement holds no more."
            elif kind != "RENAMED" and not _has_scenario(sections, place):
                yield f"{named[1]}: {prose(own_lines(section.lines))}".rstrip(": ")
        elif kind in ("ADDED", "MODIFIED") and section.level == 4 and requirement is not None:
            yield _scenario(section, requirement, where, findings)
    if not seen:
        message = "There is no `## ADDED Requirements`, nor MODIFIED, REMOVED or RENAMED; it was skipped."
        findings.append(not_understood_finding(message, text.where))


def _has_scenario(sections: Sequence[MarkdownSection], place: int) -> bool:
    for position in range(place + 1, len(sections)):
        if sections[position].level <= 3:
            return False
        if sections[position].level == 4 and _SCENARIO.fullmatch(sections[position].title):
            return True
    return False


def _scenario(section: MarkdownSection, requirement: str, where: str, findings: list[ImportFinding]) -> str:
    named = _SCENARIO.fullmatch(section.title)
    if named is None:
        message = f"{one_line(section.title, 60)!r} is not a `#### Scenario:`; it was read as a scenario."
        findings.append(not_understood_finding(message, where))
    lines = own_lines(section.lines)
    steps = [without_marks(item.text) for item in list_items(lines).items] or [without_marks(prose(lines))]
    return f"{requirement} ({named[1] if named else section.title}): {', '.join(step for step in steps if step)}"


def _renamed_requirements(section: MarkdownSection, where: str, findings: list[ImportFinding]) -> Iterator[str]:
    old_name = ""
    for box in list_items(section.lines).items:
        match = _RENAMED.fullmatch(without_marks(box.text))
        if match is None:
            findings.append(
                not_understood_finding(f"{one_line(box.text, 60)!r} is neither FROM nor TO; it was skipped.", where)
            )
        elif match[1].upper() == "FROM":
            old_name = match[2]
        else:
            yield f"The requirement {old_name!r} is called {match[2]!r}."
