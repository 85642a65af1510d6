"""An item as a job that nobody has agreed to: the source's words, quoted, and not one of them a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from donewhen.foundation.plain_text import shorten
from donewhen.jobs.imports.items import ImportFinding, ImportItem
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.creating import NewJob

LONGEST_OBJECTIVE = 20_000
LONGEST_CRITERION = 4_000
LONGEST_NOTE = 2_000
MOST_CRITERIA = 500


class Draft(NamedTuple):
    """The job to be made of an item, and what a person should know of it."""

    job: NewJob
    findings: tuple[ImportFinding, ...]


def draft_job(item: ImportItem, identity: str, commands: Sequence[str], ids: Mapping[str, str]) -> Draft:
    """``identity`` is the hash of what the source asks for, ``ids`` are the jobs of other items."""
    findings: list[ImportFinding] = []
    criteria = [shorten(criterion, LONGEST_CRITERION) for criterion in item.criteria[:MOST_CRITERIA]]
    objective = shorten(item.objective, LONGEST_OBJECTIVE)
    notes = [shorten(note, LONGEST_NOTE) for note in item.notes]
    if (criteria, objective, notes) != ([*item.criteria], item.objective, [*item.notes]):
        message = f"{item.name} is too long for a plan; a part of it was cut off."
        findings.append(ImportFinding(FindingCode.IMPORT_SHORTENED, message, item.where))
    if not criteria:
        message = f"{item.name} does not say when it would be done."
        findings.append(ImportFinding(FindingCode.IMPORT_NO_CRITERIA, message, item.where))
    job = NewJob(
        title=item.title or item.name or "Untitled",
        depends_on=tuple(ids[key] for key in item.depends_on),
        commands=tuple(commands),
        criteria=criteria,
        objective=_objective(item, objective, notes),
        priority=item.priority,
        wave=item.wave,
        more={"imported_from": item.key, "imported_hash": identity},
    )
    return Draft(job, tuple(findings))


def _objective(item: ImportItem, objective: str, notes: Sequence[str]) -> str:
    claimed = f'The source says "{item.claim.told}". Nothing shows it yet.'
    said = "The source says nothing of how far it is." if item.claim.told == "nothing" else claimed
    parts = [f"Imported from {item.key}. {said}"]
    # Quoted, line by line: a heading, a fence or a list in it is the source's, and none of the plan.
    parts += [_quoted(text) for text in (objective, "\n".join(notes)) if text]
    return "\n\n".join(parts)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
