"""Shows what probing the tests of a run has shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from donewhen.cli._output import Output
from donewhen.jobs.evidence.probe_record import ProbeRecord
from donewhen.jobs.evidence.probe_text import probe_lines
from donewhen.jobs.evidence.probes import probes_of
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import CommandRun


def probes_of_entry(store: EvidenceStore, entries: Sequence[Entry], entry: Entry | None) -> ProbeRecord | None:
    """The probes of a run of a command; None for anything else."""
    run = None if entry is None else entry.content
    return probes_of(store, entries, run) if isinstance(run, CommandRun) and run.passed else None


def show_probes(output: Output, record: ProbeRecord | None, indent: str) -> None:
    for line in () if record is None else probe_lines(record):
        output.say(f"{indent}{line}", dim=True)


def probes_data(record: ProbeRecord | None) -> dict[str, Any]:
    """The field of a result that has probes."""
    return {} if record is None else {"probes": msgspec.to_builtins(record)}
