"""What a source holds, before it is a job: items in a form that is the same for every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol, get_args

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.plain_text import one_line, visible_text
from donewhen.jobs.ledger.finding_codes import FindingCode

Kind = Literal["backlog", "spec-kit", "openspec", "feature-list"]

KINDS: tuple[Kind, ...] = get_args(Kind)
NAMES: dict[Kind, str] = {
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
_LONGEST_KEY = 200


class SourceText(NamedTuple):
    """A file of the source: its name below the source with slashes, for people its name, and what it says."""

    name: str
    where: str
    text: str


class SourceClaim(NamedTuple):
    """What the source says about how far it is. It is kept as its word, and nothing follows from it."""

    told: str = "nothing"
    done: bool = False


class ImportItem(NamedTuple):
    """One thing to do, as the source has it. Every text in it is anybody's."""

    key: str
    """Its name for good: ``backlog:task-12``."""
    title: str
    where: str
    """The file, and the line where there is one."""
    objective: str = ""
    criteria: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    """Keys of other items, as the source means them; they need not exist."""
    parts: tuple[str, ...] = ()
    """Keys of the items that it consists of: it comes after them, too. Their files say so, not its own."""
    notes: tuple[str, ...] = ()
    """What a plan has no field for, one line each."""
    priority: int = USUAL_PRIORITY
    wave: str = ""
    claim: SourceClaim = SourceClaim()

    @property
    def name(self) -> str:
        """The key without the kind."""
        return self.key.partition(":")[2]

    @property
    def hash(self) -> str:
        """The name of what it asks for. What it claims is left out: a box that is ticked changes no job."""
        asked = (self.title, self.objective, self.criteria, self.depends_on, self.notes, self.priority, self.wave)
        return digest_of(asked)


class ImportFinding(NamedTuple):
    """Something that a person should know about an import."""

    code: FindingCode
    message: str
    where: str


class ReadSource(NamedTuple):
    """What a reader made of a source: items in its order, and everything that it left out or could not read."""

    items: tuple[ImportItem, ...] = ()
    findings: tuple[ImportFinding, ...] = ()


class Reader(Protocol):
    """One format. It looks at texts, and at nothing else."""

    def __call__(self, texts: Sequence[SourceText]) -> ReadSource: ...


def not_understood_finding(message: str, where: str) -> ImportFinding:
    return ImportFinding(FindingCode.IMPORT_NOT_UNDERSTOOD, message, where)


def skipped_finding(message: str, where: str) -> ImportFinding:
    return ImportFinding(FindingCode.IMPORT_LEFT_OUT, message, where)


def priority_of(value: object) -> int | None:
    """A priority as a number, the smaller the sooner; None where the word is not known."""
    if value is None or value == "":
        return USUAL_PRIORITY
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= 1_000_000 else None
    return PRIORITIES.get(str(value).strip().casefold())


def clean_item(item: ImportItem) -> ImportItem:
    """An item without hidden characters, with names and notes of one line each."""
    return item._replace(
        key=one_line(item.key, _LONGEST_KEY),
        title=one_line(visible_text(item.title)),
        where=one_line(visible_text(item.where), 400),
        objective=visible_text(item.objective).strip(),
        criteria=tuple(text for criterion in item.criteria if (text := " ".join(visible_text(criterion).split()))),
        depends_on=tuple(one_line(one, _LONGEST_KEY) for one in item.depends_on),
        parts=tuple(one_line(part, _LONGEST_KEY) for part in item.parts),
        notes=tuple(" ".join(visible_text(note).split()) for note in item.notes),
        wave=one_line(visible_text(item.wave), 100),
        claim=item.claim._replace(told=one_line(visible_text(item.claim.told), 200)),
    )


def drop_duplicate_items(imported: ReadSource) -> ReadSource:
    """The first of the items that go by one name; the others are told."""
    kept: dict[str, ImportItem] = {}
    findings = list(imported.findings)
    for item in imported.items:
        if item.key in kept:
            message = f"{item.name} is there twice, first in {kept[item.key].where}; this one was left out."
            findings.append(not_understood_finding(message, item.where))
        else:
            kept[item.key] = item
    return ReadSource(tuple(kept.values()), tuple(findings))


def join_sources(parts: Iterable[ReadSource]) -> ReadSource:
    """Several readings as one."""
    every = list(parts)
    return ReadSource(
        tuple(item for one in every for item in one.items),
        tuple(finding for one in every for finding in one.findings),
    )
