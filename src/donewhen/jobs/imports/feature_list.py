"""Read a JSON list of features, as harnesses for long-running agents keep it: each with steps, and ``passes``.

A feature becomes a job. Its criterion is the description with its steps, so that removing a step later changes what was
agreed. Acceptance criteria are used instead, if the list has them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from donewhen.foundation.canonical import digest
from donewhen.foundation.errors import UsageError
from donewhen.foundation.json_parsing import parse_json
from donewhen.foundation.plain_text import one_line, visible_text
from donewhen.jobs.imports.items import (
    USUAL_PRIORITY,
    ImportFinding,
    ImportItem,
    ReadSource,
    SourceClaim,
    SourceText,
    join_sources,
    not_understood_finding,
    priority_of,
)
from donewhen.jobs.ledger.finding_codes import FindingCode

LISTS = ("features", "feature_list", "userStories", "user_stories", "tests", "tasks")
_TITLES = ("title", "name")
_WORDS = ("description", "user_visible_behavior", "behavior", "story")
_CRITERIA = ("acceptance", "acceptance_criteria", "acceptanceCriteria", "criteria")
_STEPS = ("steps", "test_steps", "verification_steps")
_DEPENDENCIES = ("depends_on", "dependsOn", "dependencies", "blocked_by")
_COMMANDS = ("verification_command", "verify_command", "test_command", "command", "verify", "gate")
_STATES = ("status", "state")
_WAVES = ("phase", "milestone", "wave")
_DONE = ("done", "complete", "completed", "pass", "passed", "passing", "verified", "true", "yes")
_MAX_ID_LENGTH = 80


def read_feature_list(texts: Sequence[SourceText]) -> ReadSource:
    """Return one item per feature."""
    return join_sources(_list(text) for text in texts)


def _list(text: SourceText) -> ReadSource:
    findings: list[ImportFinding] = []
    items: dict[str, ImportItem] = {}
    counts: Counter[str] = Counter()
    for number, entry in enumerate(_entries(text)):
        where = f"{text.where} [{number}]"
        if not isinstance(entry, dict):
            findings.append(not_understood_finding("A feature must be a JSON object; it was skipped.", where))
            continue
        item = _feature(entry, where, findings)
        if item is None:
            continue
        if "id" not in entry:
            # Without ids, features with the same text are numbered in their order.
            counts[item.key] += 1
            item = item._replace(key=f"{item.key}-{counts[item.key]}") if counts[item.key] > 1 else item
        if item.key in items:
            message = f"Duplicate item {item.name}, first in {items[item.key].where}; this one was skipped."
            findings.append(not_understood_finding(message, where))
            continue
        items[item.key] = item
    return ReadSource(tuple(items.values()), tuple(findings))


def _entries(text: SourceText) -> list[Any]:
    try:
        data = parse_json(text.text)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"The file is not JSON: {error.msg}.", where=f"{text.where}:{error.lineno}:{error.colno}"
        ) from error
    except RecursionError as error:
        raise UsageError("The JSON is nested too deeply.", where=text.where) from error
    except ValueError as error:
        raise UsageError(f"The JSON can't be used: {one_line(str(error), 120)}.", where=text.where) from error
    if isinstance(data, list):
        return data
    lists = [name for name in LISTS if isinstance(data, dict) and isinstance(data.get(name), list)]
    if len(lists) != 1:
        message = (
            f"has several lists ({', '.join(lists)})"
            if lists
            else f"is neither a list nor has one of {', '.join(LISTS)}"
        )
        raise UsageError(f"The list of features was not found: the JSON {message}.", where=text.where)
    entries: list[Any] = data[lists[0]]
    return entries


def _feature(feature: Mapping[str, Any], where: str, findings: list[ImportFinding]) -> ImportItem | None:
    description = _first(feature, _WORDS)
    title = _first(feature, _TITLES) or description
    if not title.strip():
        findings.append(
            not_understood_finding("The feature has neither a description nor a title; it was skipped.", where)
        )
        return None
    identifier = _text(feature.get("id"))
    if "id" in feature and (not identifier or len(identifier) > _MAX_ID_LENGTH):
        findings.append(not_understood_finding("The feature's id is not a short text; the feature was skipped.", where))
        return None
    criteria = tuple(_texts(feature, _CRITERIA, where, findings))
    steps = tuple(_texts(feature, _STEPS, where, findings))
    objective = [description if title != description else ""]
    if criteria:
        objective.append(
            "\n".join(("Steps:", *(f"{place}. {step}" for place, step in enumerate(steps, 1)))) if steps else ""
        )
    else:
        step_text = " ".join(f"({place}) {step}" for place, step in enumerate(steps, 1))
        text = description or title
        criteria = (f"{text.rstrip('.')}. Steps: {step_text}" if step_text else text,)
    priority = priority_of(feature.get("priority"))
    if priority is None:
        message = f"The priority {one_line(str(feature.get('priority')), 40)!r} is unknown; the default was used."
        findings.append(not_understood_finding(message, where))
    return ImportItem(
        key=f"feature-list:{one_line(identifier, _MAX_ID_LENGTH) or _key_for(description or title)}",
        title=title,
        where=where,
        objective="\n\n".join(part for part in objective if part),
        criteria=criteria,
        depends_on=tuple(
            f"feature-list:{one_line(name, _MAX_ID_LENGTH)}" for name in _texts(feature, _DEPENDENCIES, where, findings)
        ),
        notes=tuple(_notes(feature, where, findings)),
        priority=USUAL_PRIORITY if priority is None else priority,
        wave=one_line(_first(feature, _WAVES), 100),
        claim=_claim(feature),
    )


def _key_for(text: str) -> str:
    """Derive a key from the text, so that it does not depend on the position in the list."""
    return digest(text.encode("utf-8", "replace")).partition(":")[2][:12]


def _claim(feature: Mapping[str, Any]) -> SourceClaim:
    parts = []
    done = False
    if "passes" in feature:
        parts.append(f"passes: {one_line(json.dumps(feature['passes'], default=str), 40)}")
        done = feature["passes"] is True or _text(feature["passes"]).casefold() in _DONE
    state = _first(feature, _STATES)
    if state:
        parts.append(f"status {one_line(state, 40)}")
        done = done or state.strip().casefold() in _DONE
    return SourceClaim(", ".join(parts) or "nothing", done, state)


def _notes(feature: Mapping[str, Any], where: str, findings: list[ImportFinding]) -> Iterator[str]:
    for name, label in (("category", "Category"), ("area", "Area"), ("module", "Module")):
        if words := _text(feature.get(name)):
            yield f"{label}: {words}"
    for name in _COMMANDS:
        if words := _text(feature.get(name)):
            command = one_line(words, 120)
            findings.append(
                ImportFinding(FindingCode.IMPORT_COMMAND, f"{name} was not made a check of the job: {command}", where)
            )
            yield f"The source names a command, which nothing runs unless somebody makes it a check: {words}"


def _first(feature: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((words for name in names if (words := _text(feature.get(name)))), "")


def _text(value: object) -> str:
    """Return a string or a number as text, and "" for anything else."""
    if isinstance(value, str):
        return visible_text(value).strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _texts(
    feature: Mapping[str, Any], names: Sequence[str], where: str, findings: list[ImportFinding]
) -> Iterator[str]:
    for name in names:
        value = feature.get(name)
        if value is None or value == "" or value == []:
            continue
        for entry in value if isinstance(value, list) else [value]:
            words = _text(entry)
            if words:
                yield words
            else:
                findings.append(not_understood_finding(f"A value in {name} is not text; it was skipped.", where))
        return
