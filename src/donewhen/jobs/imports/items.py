"""Items of a source in a common form, before they become jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol, get_args

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.plain_text import one_line, visible_text
from donewhen.jobs.ledger.finding_codes import FindingCode

Kind = Literal["backlog", "spec-kit", "openspec", "feature-list"]

KINDS: tuple[Kind, ...] = get_args(Kind)
KIND_LABELS: dict[Kind, str] = {
    "backlog": "Backlog.md tasks",
    "spec-kit": "spec-kit phases",
    "openspec": "OpenSpec changes",
    "feature-list": "features",
}
PRIORITIES = {
    "critical": 0, "urgent": 0, "highest": 0, "p0": 0,
    "high": 1, "p1": 1,
    "medium": 2, "normal": 2, "p2": 2,
    "low": 3, "lowest": 4, "p3": 3, "p4": 4,
}  # fmt: skip
USUAL_PRIORITY = 2
_MAX_KEY_LENGTH = 200


class SourceText(NamedTuple):
    """A file of the source: its name relative to the source, its name for messages, and its text."""

    name: str
    where: str
    text: str


class SourceClaim(NamedTuple):
    """What the source claims about progress. It is recorded as a claim and has no effect."""

    told: str = "nothing"
    done: bool = False
    status: str = ""
    """The status, as the source calls it; empty if it has none."""


class ImportItem(NamedTuple):
    """A work item of the source. Every text in it is untrusted."""

    key: str
    """Its permanent name: ``backlog:task-12``."""
    title: str
    where: str
    """The file, and the line if known."""
    objective: str = ""
    criteria: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    """Keys of other items as given in the source; they need not exist."""
    parts: tuple[str, ...] = ()
    """Keys of its parts, on which it depends, too. The parts' files name it, not the other way round."""
    notes: tuple[str, ...] = ()
    """Information without a field in the plan, one line each."""
    priority: int = USUAL_PRIORITY
    wave: str = ""
    claim: SourceClaim = SourceClaim()

    @property
    def name(self) -> str:
        """The key without the kind."""
        return self.key.partition(":")[2]

    @property
    def hash(self) -> str:
        """The hash of its content without the claim: ticking a box does not change the job."""
        asked = (self.title, self.objective, self.criteria, self.depends_on, self.notes, self.priority, self.wave)
        return digest_of(asked)


class ImportFinding(NamedTuple):
    """A message about an import."""

    code: FindingCode
    message: str
    where: str


class ReadSource(NamedTuple):
    """The result of a reader: the items in order, and findings about skipped or unreadable parts."""

    items: tuple[ImportItem, ...] = ()
    findings: tuple[ImportFinding, ...] = ()


class Reader(Protocol):
    """Reads one format from texts alone."""

    def __call__(self, texts: Sequence[SourceText]) -> ReadSource: ...


def not_understood_finding(message: str, where: str) -> ImportFinding:
    return ImportFinding(FindingCode.IMPORT_NOT_UNDERSTOOD, message, where)


def skipped_finding(message: str, where: str) -> ImportFinding:
    return ImportFinding(FindingCode.IMPORT_LEFT_OUT, message, where)


def priority_of(value: object) -> int | None:
    """Return a priority as a number, lower is more urgent; None if the value is unknown."""
    if value is None or value == "":
        return USUAL_PRIORITY
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= 1_000_000 else None
    return PRIORITIES.get(str(value).strip().casefold())


def clean_item(item: ImportItem) -> ImportItem:
    """Return an item without hidden characters, with names and notes of one line each."""
    return item._replace(
        key=one_line(item.key, _MAX_KEY_LENGTH),
        title=one_line(visible_text(item.title)),
        where=one_line(visible_text(item.where), 400),
        objective=visible_text(item.objective).strip(),
        criteria=tuple(text for criterion in item.criteria if (text := " ".join(visible_text(criterion).split()))),
        depends_on=tuple(one_line(dependency, _MAX_KEY_LENGTH) for dependency in item.depends_on),
        parts=tuple(one_line(part, _MAX_KEY_LENGTH) for part in item.parts),
        notes=tuple(" ".join(visible_text(note).split()) for note in item.notes),
        wave=one_line(visible_text(item.wave), 100),
        claim=item.claim._replace(told=one_line(visible_text(item.claim.told), 200)),
    )


def drop_duplicate_items(imported: ReadSource) -> ReadSource:
    """Keep the first item of each key, and report the others."""
    kept: dict[str, ImportItem] = {}
    findings = list(imported.findings)
    for item in imported.items:
        if item.key in kept:
            message = f"Duplicate item {item.name}, first in {kept[item.key].where}; this one was skipped."
            findings.append(not_understood_finding(message, item.where))
        else:
            kept[item.key] = item
    return ReadSource(tuple(kept.values()), tuple(findings))


def join_sources(parts: Iterable[ReadSource]) -> ReadSource:
    """Combine several results."""
    sources = list(parts)
    return ReadSource(
        tuple(item for source in sources for item in source.items),
        tuple(finding for source in sources for finding in source.findings),
    )
