"""The records of the evidence store as typed values: what a run, a judge or a review stored.

Records are decoded here and nowhere else. The name of a record is its hash, so a record is never rewritten. Command
records and tickets name their version in ``schema``; the list of input files and the outcomes of tests are plain tables
without a version of their own, because the first is named by the hash of the inputs, which is part of a run's key.
Fields have defaults, because older versions wrote less; unknown fields say nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from donewhen.foundation.canonical import digest
from donewhen.jobs.evidence.probe_record import PROBES, ProbeRecord
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.ledger.versions import NewerVersionError, refuse_newer
from donewhen.test_reports.junit import Outcome

RECORD = "donewhen/evidence/v1"
TICKET = "donewhen/ticket/v1"

FileHashes: TypeAlias = dict[str, str]
"""The inputs of a run, with the hashes of their contents."""
TestOutcomes: TypeAlias = dict[str, Outcome]
"""The tests of a run, with their outcomes."""

T = TypeVar("T")


class RecordedProgram(msgspec.Struct, frozen=True, kw_only=True):
    """The program that was run."""

    path: str = ""
    hash: str = ""


class InputList(msgspec.Struct, frozen=True, kw_only=True):
    """The name of the list of inputs, and whether the job declares them."""

    manifest: str = ""
    declared: bool = False


class RecordedReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The numbers of a test report, and the name of the outcomes. A report of coverage alone counts no tests."""

    formats: tuple[str, ...] = ()
    passed: int | UnsetType = UNSET
    failed: int | UnsetType = UNSET
    skipped: int | UnsetType = UNSET
    coverage: int | float | UnsetType = UNSET
    outcomes: str = ""
    failures: dict[str, str] = {}
    """What the first failed tests say, one line each. Empty in records of versions that did not keep it."""


class CommandRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag=RECORD):
    """A command that was run as evidence."""

    job: str = ""
    argv: tuple[str, ...] = ()
    executable: RecordedProgram = RecordedProgram()
    environment: dict[str, str] = {}
    """Short hashes of the variables that the run depends on, and the platform."""
    inputs: InputList = InputList()
    changed_meanwhile: tuple[str, ...] = ()
    started_at: str = ""
    seconds: int | float = 0
    ending: str = ""
    exit_code: int | None = None
    output: str = ""
    report: RecordedReport | None = None
    report_problem: str | None = None


class StoredTicket(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag=TICKET):
    """What a judge was shown."""

    group_id: str
    mission: str
    cluster: str
    evidence: dict[str, str]


class UnusableRecord(NamedTuple):
    """Why a record can't be used: it is missing, changed, invalid, or of a newer version."""

    code: FindingCode
    problem: str


def read_command(store: EvidenceStore, name: str | None) -> CommandRecord | UnusableRecord:
    """The record of a command."""
    return _read(store, name, CommandRecord, RECORD)


def read_ticket(store: EvidenceStore, name: str | None) -> StoredTicket | UnusableRecord:
    """The ticket of a judge."""
    return _read(store, name, StoredTicket, TICKET)


def read_probes(store: EvidenceStore, name: str | None) -> ProbeRecord | UnusableRecord:
    """What probing the tests of a run has shown."""
    return _read(store, name, ProbeRecord, PROBES)


def read_file_hashes(store: EvidenceStore, name: str | None) -> FileHashes | UnusableRecord:
    """A list of inputs."""
    return _read(store, name, FileHashes)


def read_outcomes(store: EvidenceStore, name: str | None) -> TestOutcomes | UnusableRecord:
    """The outcomes of tests."""
    return _read(store, name, TestOutcomes)


def read_run_outcomes(store: EvidenceStore, name: str | None) -> TestOutcomes | UnusableRecord:
    """The outcomes of the tests that the command with this record ran."""
    record = read_command(store, name)
    if isinstance(record, UnusableRecord):
        return record
    return read_outcomes(store, None if record.report is None else record.report.outcomes)


def put_record(store: EvidenceStore, record: CommandRecord | StoredTicket | ProbeRecord) -> str:
    """Store a record and return its name."""
    return store.put_json(msgspec.to_builtins(record))


def _read(store: EvidenceStore, name: str | None, kind: type[T], schema: str | None = None) -> T | UnusableRecord:
    content = store.get_unverified(name or "")
    if content is None:
        return UnusableRecord(FindingCode.EVIDENCE_MISSING, "it is missing")
    if digest(content) != name:
        return UnusableRecord(FindingCode.EVIDENCE_CHANGED, "it does not match its hash")
    try:
        data: Any = msgspec.json.decode(content)
        if schema is not None and isinstance(data, dict):
            refuse_newer(data.get("schema"), schema)
            if "schema" not in data:
                return UnusableRecord(FindingCode.EVIDENCE_INVALID, f"it is invalid: its schema is not {schema}")
        return msgspec.convert(data, kind)
    except NewerVersionError as error:
        problem = f"it was written by a newer version of donewhen ({error})"
        return UnusableRecord(FindingCode.OTHER_VERSION, problem)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return UnusableRecord(FindingCode.EVIDENCE_INVALID, f"it is invalid: {error}")
