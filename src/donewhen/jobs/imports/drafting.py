"""Turn an imported item into a proposed job: the source's text is quoted, and none of it becomes a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from donewhen.foundation.plain_text import shorten
from donewhen.jobs.imports.items import ImportFinding, ImportItem
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.creating import NewJob

MAX_OBJECTIVE_LENGTH = 20_000
MAX_CRITERION_LENGTH = 4_000
MAX_NOTE_LENGTH = 2_000
MAX_CRITERIA = 500


class Draft(NamedTuple):
    """The job to create from an item, and findings about it."""

    job: NewJob
    findings: tuple[ImportFinding, ...]


def draft_job(item: ImportItem, identity: str, commands: Sequence[str], ids: Mapping[str, str]) -> Draft:
    """Draft a job; ``identity`` is the hash of the item, ``ids`` are the jobs of other items by key."""
    findings: list[ImportFinding] = []
    criteria = [shorten(criterion, MAX_CRITERION_LENGTH) for criterion in item.criteria[:MAX_CRITERIA]]
    objective = shorten(item.objective, MAX_OBJECTIVE_LENGTH)
    notes = [shorten(note, MAX_NOTE_LENGTH) for note in item.notes]
    if (criteria, objective, notes) != ([*item.criteria], item.objective, [*item.notes]):
        message = f"{item.name} is too long for a plan; it was shortened."
        findings.append(ImportFinding(FindingCode.IMPORT_SHORTENED, message, item.where))
    if not criteria:
        message = f"{item.name} has no acceptance criteria."
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
    claimed = f'The source says "{item.claim.told}". There is no evidence for it yet.'
    progress = "The source does not state its progress." if item.claim.told == "nothing" else claimed
    parts = [f"Imported from {item.key}. {progress}"]
    # Quoted line by line, so that no heading, fence or list of the source becomes part of the plan.
    parts += [_quote(text) for text in (objective, "\n".join(notes)) if text]
    return "\n\n".join(parts)


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
