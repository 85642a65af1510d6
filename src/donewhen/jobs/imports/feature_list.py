"""A list of features in JSON, as harnesses for long-running agents keep it: each with steps, and ``passes``.

A job is a feature. Its criterion is the description with its steps: the steps are how one sees it, and a step that is
taken out later has to show in what was agreed. Harnesses that list acceptance criteria beside have those.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from donewhen.foundation.canonical import digest, refuse_duplicate_keys
from donewhen.foundation.errors import UsageError
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
_AFTER = ("depends_on", "dependsOn", "dependencies", "blocked_by")
_COMMANDS = ("verification_command", "verify_command", "test_command", "command", "verify", "gate")
_STATES = ("status", "state")
_WAVES = ("phase", "milestone", "wave")
_DONE = ("done", "complete", "completed", "pass", "passed", "passing", "verified", "true", "yes")
_LONGEST_ID = 80


def read_feature_list(texts: Sequence[SourceText]) -> ReadSource:
    """A job a feature."""
    return join_sources(_list(text) for text in texts)


def _list(text: SourceText) -> ReadSource:
    findings: list[ImportFinding] = []
    items: dict[str, ImportItem] = {}
    counts: Counter[str] = Counter()
    for number, one in enumerate(_entries(text)):
        where = f"{text.where} [{number}]"
        if not isinstance(one, dict):
            findings.append(
                not_understood_finding("This is no feature: an object was expected. It was left out.", where)
            )
            continue
        item = _feature(one, where, findings)
        if item is None:
            continue
        if "id" not in one:
            # Without ids, two of the same words are told apart by their order.
            counts[item.key] += 1
            item = item._replace(key=f"{item.key}-{counts[item.key]}") if counts[item.key] > 1 else item
        if item.key in items:
            message = f"{item.name} is there twice, first in {items[item.key].where}; this one was left out."
            findings.append(not_understood_finding(message, where))
            continue
        items[item.key] = item
    return ReadSource(tuple(items.values()), tuple(findings))


def _entries(text: SourceText) -> list[Any]:
    try:
        data = json.loads(text.text, object_pairs_hook=refuse_duplicate_keys, parse_constant=_refused)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"This is no JSON: {error.msg}.", where=f"{text.where}:{error.lineno}:{error.colno}"
        ) from error
    except RecursionError as error:
        raise UsageError("The JSON is nested too deeply.", where=text.where) from error
    except ValueError as error:
        raise UsageError(f"The JSON can't be used: {one_line(str(error), 120)}.", where=text.where) from error
    if isinstance(data, list):
        return data
    found = [name for name in LISTS if isinstance(data, dict) and isinstance(data.get(name), list)]
    if len(found) != 1:
        message = (
            f"has several lists ({', '.join(found)})"
            if found
            else f"is neither a list nor has one of {', '.join(LISTS)}"
        )
        raise UsageError(f"It is not clear which are the features: the JSON {message}.", where=text.where)
    entries: list[Any] = data[found[0]]
    return entries


def _refused(name: str) -> object:
    raise ValueError(f"{name} is no value in JSON")


def _feature(one: Mapping[str, Any], where: str, findings: list[ImportFinding]) -> ImportItem | None:
    description = _first(one, _WORDS)
    title = _first(one, _TITLES) or description
    if not title.strip():
        findings.append(
            not_understood_finding("The feature has neither a description nor a title; it was left out.", where)
        )
        return None
    identifier = _text(one.get("id"))
    if "id" in one and (not identifier or len(identifier) > _LONGEST_ID):
        findings.append(not_understood_finding("The feature's id is no short text; the feature was left out.", where))
        return None
    criteria = tuple(_texts(one, _CRITERIA, where, findings))
    steps = tuple(_texts(one, _STEPS, where, findings))
    objective = [description if title != description else ""]
    if criteria:
        objective.append(
            "\n".join(("Steps:", *(f"{place}. {step}" for place, step in enumerate(steps, 1)))) if steps else ""
        )
    else:
        shown = " ".join(f"({place}) {step}" for place, step in enumerate(steps, 1))
        asked = description or title
        criteria = (f"{asked.rstrip('.')}. Steps: {shown}" if shown else asked,)
    priority = priority_of(one.get("priority"))
    if priority is None:
        message = f"The priority {one_line(str(one.get('priority')), 40)!r} is not known; the usual one was taken."
        findings.append(not_understood_finding(message, where))
    return ImportItem(
        key=f"feature-list:{one_line(identifier, _LONGEST_ID) or _name_of(description or title)}",
        title=title,
        where=where,
        objective="\n\n".join(part for part in objective if part),
        criteria=criteria,
        depends_on=tuple(
            f"feature-list:{one_line(name, _LONGEST_ID)}" for name in _texts(one, _AFTER, where, findings)
        ),
        notes=tuple(_notes(one, where, findings)),
        priority=USUAL_PRIORITY if priority is None else priority,
        wave=one_line(_first(one, _WAVES), 100),
        claim=_claim(one),
    )


def _name_of(text: str) -> str:
    """A name for what has none: by its words, so that it stays the same wherever it stands in the list."""
    return digest(text.encode("utf-8", "replace")).partition(":")[2][:12]


def _claim(one: Mapping[str, Any]) -> SourceClaim:
    parts = []
    done = False
    if "passes" in one:
        parts.append(f"passes: {one_line(json.dumps(one['passes'], default=str), 40)}")
        done = one["passes"] is True or _text(one["passes"]).casefold() in _DONE
    if state := _first(one, _STATES):
        parts.append(f"status {one_line(state, 40)}")
        done = done or state.strip().casefold() in _DONE
    return SourceClaim(", ".join(parts) or "nothing", done)


def _notes(one: Mapping[str, Any], where: str, findings: list[ImportFinding]) -> Iterator[str]:
    for name, told in (("category", "Category"), ("area", "Area"), ("module", "Module")):
        if words := _text(one.get(name)):
            yield f"{told}: {words}"
    for name in _COMMANDS:
        if words := _text(one.get(name)):
            shown = one_line(words, 120)
            findings.append(ImportFinding(FindingCode.IMPORT_COMMAND, f"{name} is no check of the job: {shown}", where))
            yield f"The source names a command, which nothing runs unless somebody makes it a check: {words}"


def _first(one: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((words for name in names if (words := _text(one.get(name)))), "")


def _text(value: object) -> str:
    """A text, or a number as one; nothing else."""
    if isinstance(value, str):
        return visible_text(value).strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _texts(one: Mapping[str, Any], names: Sequence[str], where: str, findings: list[ImportFinding]) -> Iterator[str]:
    for name in names:
        value = one.get(name)
        if value is None or value == "" or value == []:
            continue
        for entry in value if isinstance(value, list) else [value]:
            words = _text(entry)
            if words:
                yield words
            else:
                findings.append(not_understood_finding(f"Something in {name} is no text; it was left out.", where))
        return
