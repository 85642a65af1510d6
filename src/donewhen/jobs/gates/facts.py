"""Everything that the gates look at, collected once; they themselves read no file and ask no clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from donewhen.jobs.contract.agreement import Agreement
from donewhen.jobs.record.history import History
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.evidence.file_checks import FileState
from donewhen.jobs.record.projection import Mismatch
from donewhen.jobs.gates.evidence_status import Standing

DependencyState = Literal["done", "open", "cancelled", "invalid", "missing", "cycle"]


class FileFact(NamedTuple):
    """A file that a job has to put out, or to keep as evidence."""

    path: str
    state: FileState
    changed: bool = True
    """Whether it is another than when the job was started."""
    template: bool = False
    """Whether it holds no more than a placeholder, which earns nothing."""


class DependencyFact(NamedTuple):
    """A job that has to be done before, and through which others it matters."""

    id: str
    state: DependencyState
    chain: tuple[str, ...]
    why: str = ""


class SuiteFact(NamedTuple):
    """How the tests of a command compare with those that were there before."""

    evidence: str
    lost: tuple[str, ...]
    skipped: tuple[str, ...]
    before: int
    now: int


class ViewFact(NamedTuple):
    """Whether tracker and dashboard say of this job what the ledger says."""

    tracker: bool
    dashboard: bool


class LessonFact(NamedTuple):
    """Lessons that are linked to this job."""

    captured: int
    empty: int
    """Those that say nothing."""
    kept: tuple[str, ...] = ()
    """Those that are on record since the job was started, stand in the file as they were, and say something new."""
    lacking: tuple[str, ...] = ()
    """What the others lack, in words."""
    given: tuple[str, ...] = ()
    """Lessons of others that the job was given when it was started."""
    answered: tuple[str, ...] = ()
    """Those of them that it has answered: how it used them, or why they are not relevant."""


class MirrorFact(NamedTuple):
    """Whether the job's issue on GitHub says what the job says, by what was seen at the last sync."""

    enabled: bool
    current: bool
    why: str = ""


class Facts(NamedTuple):
    """A job as it is now."""

    job: Job
    project: Project
    where: str
    agreement: Agreement
    project_agreement: Agreement
    history: History
    standings: tuple[Standing, ...]
    outputs: tuple[FileFact, ...]
    evidence_files: tuple[FileFact, ...]
    dependencies: tuple[DependencyFact, ...]
    upstream_changed: tuple[str, ...]
    """Outputs of other jobs that changed after this job was started."""
    suites: tuple[SuiteFact, ...]
    tampered: tuple[Mismatch, ...]
    chain_breaks: tuple[str, ...]
    runs: int
    """Commands that the gate ran for this job since it was started."""
    views: ViewFact
    lessons: LessonFact
    mirror: MirrorFact
    progress_lines: int
    sections: Mapping[str, str]
    """The text below each heading of the plan, by its lower-case title."""
    harness_changed: tuple[str, ...] = ()
    """What tells the test framework how to report, and has changed since the job was first started."""
