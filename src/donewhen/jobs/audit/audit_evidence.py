"""Audit what the runs of a chain stored: everything is there, has the hash in its name, and can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from donewhen.foundation.canonical import digest
from donewhen.jobs.evidence.records import (
    CommandRecord,
    UnusableRecord,
    read_command,
    read_file_hashes,
    read_outcomes,
    read_probes,
    read_ticket,
)
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.ledger.entry_content import EntryContent, Ran
from donewhen.jobs.ledger.finding_codes import FindingCode

_STORED = ("record", "output", "manifest", "ticket", "probes")
_READERS: Mapping[str, Callable[[EvidenceStore, str], object]] = {
    "record": read_command,
    "manifest": read_file_hashes,
    "ticket": read_ticket,
    "probes": read_probes,
    "outcomes": read_outcomes,
}


@dataclass(frozen=True)
class EvidenceProblem:
    """A problem with something in the evidence store."""

    code: FindingCode
    message: str
    harmless: bool = False


def stored_names(content: EntryContent) -> dict[str, str]:
    """The name of each file in the evidence store that an entry refers to."""
    names = ((kind, getattr(content, kind, None)) for kind in _STORED)
    return {kind: name for kind, name in names if isinstance(name, str)}


def evidence_problems(store: EvidenceStore, run: Ran) -> Iterator[EvidenceProblem]:
    """Yield what is wrong with what a run stored."""
    for kind, name in _stored_blobs(store, run):
        content = store.get_unverified(name)
        short = f"({name[:19]}…)"
        if content is None:
            message = f"The {kind} of a run is missing {short}."
            yield EvidenceProblem(FindingCode.EVIDENCE_MISSING, message, harmless=kind == "manifest")
        elif digest(content) != name:
            message = f"The {kind} of a run was changed: it does not match its hash {short}."
            yield EvidenceProblem(FindingCode.EVIDENCE_CHANGED, message)
        elif kind in _READERS and isinstance(found := _READERS[kind](store, name), UnusableRecord):
            yield EvidenceProblem(found.code, f"The {kind} of a run can't be used: {found.problem} {short}.")


def _stored_blobs(store: EvidenceStore, run: Ran) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of everything that a run stored; test outcomes are named in its record."""
    names = stored_names(run)
    yield from names.items()
    record = read_command(store, names.get("record"))
    if isinstance(record, CommandRecord) and record.report is not None:
        yield "outcomes", record.report.outcomes
