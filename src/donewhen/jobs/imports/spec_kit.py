"""Read spec-kit: ``specs/001-feature/tasks.md`` with phases of tasks, and ``spec.md`` with user stories.

A phase becomes a job: single tasks say what to do, not what must be true. A phase for a user story has that story's
acceptance scenarios as criteria. The others (setup, foundations, polish) have only their tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.imports.items import (
    USUAL_PRIORITY,
    ImportFinding,
    ImportItem,
    ReadSource,
    SourceClaim,
    SourceText,
    drop_duplicate_items,
    join_sources,
    not_understood_finding,
    skipped_finding,
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
from donewhen.jobs.plan.criteria import markdown_sections
from donewhen.jobs.plan.ids import slug

_TASK = re.compile(r"\*{0,2}\[?(T[0-9]{1,6}[a-z]?)\]?:?\*{0,2}:?[ \t]+(.+)")
_PHASE = re.compile(r"Phase[ ]+([0-9A-Z]+(?:\.[0-9]+)*)[ ]*[:.–—-][ ]*(.*)", re.IGNORECASE)
_STORY = re.compile(r"User Stor(?:y|ies)[ ]+([0-9]{1,4})\b", re.IGNORECASE)
_STORY_MARK = re.compile(r"\[US([0-9]{1,4})\]")
_PRIORITY = re.compile(r"\((?:Priority:[ ]*)?P([0-9])\)", re.IGNORECASE)
_DEPENDS_ON = re.compile(r"depends on ((?:T[0-9]{1,6}[a-z]?(?:,?[ ]+(?:and[ ]+)?|,|\b))+)", re.IGNORECASE)
_TASK_ID = re.compile(r"T[0-9]{1,6}[a-z]?")
_LABEL = re.compile(r"\*\*([^*]+?):?\*\*:?[ \t]*(.*)")
_DECORATION = re.compile(r"[^\w)\]\"'.!?]+(?:MVP)?[^\w)]*\Z")


class _Story(NamedTuple):
    """A user story of ``spec.md``."""

    number: int
    text: str
    test: str
    scenarios: tuple[str, ...]


class _Phase(NamedTuple):
    """A phase of ``tasks.md`` with its tasks."""

    label: str
    title: str
    line: int
    story: int | None
    priority: int
    goal: str
    test: str
    tasks: tuple[tuple[str, Box], ...]


def read_spec_kit(texts: Sequence[SourceText]) -> ReadSource:
    """Return one item per phase, for every feature that has tasks."""
    features: dict[str, dict[str, SourceText]] = {}
    for text in texts:
        folder, _, name = text.name.rpartition("/")
        features.setdefault(folder.split("/")[-1], {})[name] = text
    return drop_duplicate_items(join_sources(_feature(name, files) for name, files in features.items()))


def _feature(name: str, files: dict[str, SourceText]) -> ReadSource:
    tasks, spec = files.get("tasks.md"), files.get("spec.md")
    if tasks is None:
        where = spec.where if spec is not None else name
        return ReadSource((), (skipped_finding("The feature has no tasks.md yet, so it was skipped.", where),))
    findings: list[ImportFinding] = []
    phases = _phases(tasks, findings)
    stories = {} if spec is None else {story.number: story for story in _stories(spec, findings)}
    phase_stories = {phase.story for phase in phases}
    for number in stories.keys() - phase_stories:
        where = spec.where if spec is not None else name
        findings.append(skipped_finding(f"User Story {number} has no tasks yet, so it was skipped.", where))
    if not phases:
        findings.append(not_understood_finding("No task like `- [ ] T001 …` was found.", tasks.where))
    phase_of_task = {task: phase.label for phase in phases for task, _ in phase.tasks}
    items = tuple(
        _item(name, phase, phases[:place], stories.get(phase.story or 0), phase_of_task, tasks.where)
        for place, phase in enumerate(phases)
    )
    return ReadSource(items, tuple(findings))


def _item(
    feature: str,
    phase: _Phase,
    before: Sequence[_Phase],
    story: _Story | None,
    phase_of_task: dict[str, str],
    where: str,
) -> ImportItem:
    tests = [text for text in (story.test if story else "", phase.test) if text][:1]
    criteria = (*(story.scenarios if story else ()), *(f"Independent test: {text}" for text in tests))
    tasks = [f"{name} {box.text}" for name, box in phase.tasks]
    parts = [phase.goal, story.text if story else ""]
    if criteria:
        # The scenarios become criteria; the tasks are only described.
        parts.append("\n".join(("Tasks:", *(f"- {task}" for task in tasks))))
    ticked = sum(box.ticked for _, box in phase.tasks)
    return ImportItem(
        key=f"spec-kit:{feature}/{phase.label}",
        title=f"{feature}: {phase.title}",
        where=f"{where}:{phase.line}",
        objective="\n\n".join(part for part in parts if part),
        criteria=criteria or tuple(tasks),
        depends_on=tuple(f"spec-kit:{feature}/{label}" for label in _dependencies(phase, before, phase_of_task)),
        priority=phase.priority,
        claim=SourceClaim(f"{ticked} of {len(tasks)} tasks ticked" if ticked else "nothing", ticked == len(tasks)),
    )


def _dependencies(phase: _Phase, before: Sequence[_Phase], phase_of_task: dict[str, str]) -> list[str]:
    """Stories depend on the last phase that is not a story, and are independent of each other; other phases depend on
    what comes before them.

    That is the order of the format: setup, foundations, stories in any order, polish. Tasks may name further
    dependencies.
    """
    labels: list[str] = []
    for earlier in reversed(before):
        if earlier.story is None:
            if not labels or phase.story is not None:
                labels.append(earlier.label)
            break
        if phase.story is None:
            labels.insert(0, earlier.label)
    named = (
        task for _, box in phase.tasks for found in _DEPENDS_ON.findall(box.text) for task in _TASK_ID.findall(found)
    )
    labels += (phase_of_task.get(task, task) for task in named)
    return [label for label in dict.fromkeys(labels) if label != phase.label]


def _phases(tasks: SourceText, findings: list[ImportFinding]) -> list[_Phase]:
    text = normalise_text(tasks.text)
    phases: dict[str, _Phase] = {}
    headings = [heading for heading in markdown_sections(text) if heading.level > 1]
    phase_levels = [heading.level for heading in headings if _PHASE.fullmatch(heading.title)]
    level = min(phase_levels, default=2)
    lines_in_phases: set[int] = set()
    for section in (heading for heading in headings if heading.level == level):
        lines_in_phases.update(number for number, _ in section.lines)
        phase = _phase(section.title, section.line, section.lines, tasks.where, findings)
        if phase is None:
            continue
        same = phases.get(phase.label)
        phases[phase.label] = phase if same is None else same._replace(tasks=(*same.tasks, *phase.tasks))
    for box in checkbox_items(enumerate(text.split("\n"), 1)).items:
        if box.line not in lines_in_phases:
            message = "The task is not in a phase; it was skipped."
            findings.append(not_understood_finding(message, f"{tasks.where}:{box.line}"))
    seen: set[str] = set()
    for phase in phases.values():
        for task, box in phase.tasks:
            if task in seen:
                findings.append(not_understood_finding(f"Duplicate task {task}.", f"{tasks.where}:{box.line}"))
            seen.add(task)
    return list(phases.values())


def _phase(
    heading: str, line: int, lines: Sequence[tuple[int, str]], where: str, findings: list[ImportFinding]
) -> _Phase | None:
    tasks: list[tuple[str, Box]] = []
    for box in checkbox_items(lines).items:
        task = _TASK.fullmatch(box.text)
        if task is None:
            message = f"{one_line(box.text, 60)!r} has no number like T001; it was skipped."
            findings.append(not_understood_finding(message, f"{where}:{box.line}"))
        else:
            tasks.append((task[1], box._replace(text=task[2])))
    if not tasks:
        return None
    heading = one_line(heading, 300)
    numbered = _PHASE.fullmatch(heading)
    title = numbered[2] if numbered else heading
    story = _story_of(title, tasks)
    label = f"US{story}" if story is not None else f"phase-{numbered[1].lower()}" if numbered else slug(heading)
    priority = _PRIORITY.search(title)
    stated = _labels(own_lines(lines))
    short_title = _DECORATION.sub("", _PRIORITY.sub("", title)).strip()
    return _Phase(
        label=label,
        title=short_title or heading,
        line=line,
        story=story,
        priority=int(priority[1]) if priority else USUAL_PRIORITY,
        goal=stated.get("goal") or stated.get("purpose", ""),
        test=stated.get("independent test", ""),
        tasks=tuple(tasks),
    )


def _story_of(title: str, tasks: Sequence[tuple[str, Box]]) -> int | None:
    """The story of a phase: by its title, or because every task in it is marked with the same story."""
    if named := _STORY.search(title):
        return int(named[1])
    marks = {tuple(_STORY_MARK.findall(box.text)) for _, box in tasks}
    only = next(iter(marks)) if len(marks) == 1 else ()
    return int(only[0]) if len(only) == 1 else None


def _labels(lines: Sequence[tuple[int, str]]) -> dict[str, str]:
    """Parse lines like ``**Goal**: text``; each text ends at the next blank line."""
    labels: dict[str, str] = {}
    name = ""
    for _, line in lines:
        label = _LABEL.fullmatch(line.strip())
        if label:
            name = label[1].strip().casefold()
            labels.setdefault(name, label[2].strip())
        elif not line.strip():
            name = ""
        elif name:
            labels[name] = f"{labels[name]} {line.strip()}".strip()
    return labels


def _stories(spec: SourceText, findings: list[ImportFinding]) -> Iterator[_Story]:
    sections = markdown_sections(normalise_text(spec.text))
    numbered = False
    for section in sections:
        named = _STORY.match(section.title)
        if named is None or section.level < 2:
            continue
        numbered = True
        before, scenarios = _scenarios(section.lines)
        if not scenarios and len(before) < len(section.lines):
            message = f"User Story {named[1]} has a heading for acceptance scenarios, but no list below it."
            findings.append(not_understood_finding(message, f"{spec.where}:{section.line}"))
        labels = _labels(before)
        text = prose(own_lines(before))
        yield _Story(int(named[1]), text, labels.get("independent test", ""), scenarios)
    if not numbered:
        loose = next(
            (section for section in sections if section.title.casefold().startswith("acceptance scenarios")), None
        )
        count = len(list_items(loose.lines).items) if loose else 0
        if loose and count:
            message = f"{count} acceptance scenarios belong to no numbered user story, so they were skipped."
            findings.append(not_understood_finding(message, f"{spec.where}:{loose.line}"))


def _scenarios(lines: Sequence[tuple[int, str]]) -> tuple[tuple[tuple[int, str], ...], tuple[str, ...]]:
    """Return the lines above *Acceptance Scenarios*, and the scenarios."""
    start = next((place for place, line in enumerate(lines) if _is_scenarios(line[1])), None)
    if start is None:
        return tuple(lines), ()
    end = next((place for place in range(start + 1, len(lines)) if _ends_list(lines[place][1])), len(lines))
    items = list_items(lines[start + 1 : end]).items
    return tuple(lines[:start]), tuple(without_marks(item.text) for item in items)


def _is_scenarios(line: str) -> bool:
    return without_marks(line).lstrip("# ").casefold().rstrip(":").strip() in (
        "acceptance scenarios",
        "acceptance criteria",
    )


def _ends_list(line: str) -> bool:
    return line.startswith(("#", "---")) or _LABEL.fullmatch(line) is not None
