"""Facts for gates that look at nothing else, and a bench: a real workspace in which a job is done step by step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.board.views import ViewFact
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import Agreement
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.gates.facts import Facts, FileFact, facts_of
from donewhen.jobs.issues.mirror_status import MirrorFact
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry, EventKind
from donewhen.jobs.lessons.lesson_use import LessonFact
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.start import StartResult, start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import parse_document, rewrite_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job, read_job, read_project
from donewhen.jobs.plan.templates import job_plan, project_plan
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History

AGENT = Actor("bot")
PERSON = Approval(Actor("ada", "person"))
JOB_ID = "WI-20260214-001"
PROJECT_ID = "PJ-20260214-001"
NOW = "2026-02-14T10:00:00Z"
WHERE = f"jobs/{JOB_ID}-parser/plan.md"


def entry_of(kind: EventKind, seq: int = 1, by: Actor = AGENT, **data: Any) -> Entry:
    """An entry as the ledger would give it back; its hash only tells it apart."""
    return Entry(seq, f"sha256:{seq - 1:064x}", kind, NOW, by, data, f"sha256:{seq:064x}")


def job_of(
    *,
    criteria: Sequence[str] = ("The log is parsed.\n  check: run sh check.sh",),
    commands: Sequence[str] = (),
    body: str = "",
    **fields: Value,
) -> Job:
    """A job as its plan file would give it, with other values in some fields."""
    raw = job_plan(JOB_ID, "Parser", NOW, criteria=criteria, commands=commands) + body.encode()
    raw = rewrite_fields(parse_document(raw, WHERE), fields)
    return read_job(parse_document(raw, WHERE), Path("/project", WHERE), WHERE)


def history(**values: Any) -> History:
    """The history of a job that was started and not tried yet."""
    begun = entry_of("started", 2, outputs={}, upstream={})
    whole = History("in_progress", 0, begun, None, False, False, (), None)
    return whole._replace(**values)


def facts(job: Job | None = None, *, states: Mapping[str, str] | None = None, **values: Any) -> Facts:
    """Facts with which every gate is open; ``states`` gives needs another state, ``values`` replaces whole facts."""
    job = job_of() if job is None else job
    given = states or {}
    shown = tuple(
        EvidenceStatus(requirement, given.get(requirement.name, "passed")) for requirement in requirements_of(job)
    )  # type: ignore[arg-type]
    path = Path("/project/jobs/plan.md")
    project = read_project(parse_document(project_plan(PROJECT_ID, "Demo", NOW), "jobs/plan.md"), path, "jobs/plan.md")
    good = Facts(
        job=job,
        project=project,
        where=WHERE,
        agreement=Agreement("agreed", {}, None),
        project_agreement=Agreement("agreed", {}, None),
        history=history(),
        evidence=shown,
        outputs=tuple(FileFact(output, "good") for output in job.outputs),
        evidence_files=tuple(FileFact(item, "good") for item in job.verification_evidence),
        dependencies=(),
        upstream_changed=(),
        suites=(),
        tampered=(),
        chain_breaks=(),
        runs=1,
        views=ViewFact(tracker=True, dashboard=True),
        lessons=LessonFact(captured=1, empty=0, kept=("LL-20260214-001",)),
        mirror=MirrorFact(enabled=False, current=False, why="mirroring is off"),
        progress_lines=1,
        sections={"verification": "The check parses a log of every kind."},
    )
    return good._replace(**values)


@pytest.fixture
def make_job() -> Callable[..., Job]:
    """``make_job(criteria=[…], commands=[…], stakes="high")``."""
    return job_of


@pytest.fixture
def make_facts() -> Callable[..., Facts]:
    """``make_facts(job, states={"AC-1": "stale"}, runs=0)``: all is well but for what is named."""
    return facts


@pytest.fixture
def make_history() -> Callable[..., History]:
    """``make_history(iteration=4)``."""
    return history


@pytest.fixture
def make_entry() -> Callable[..., Entry]:
    """``make_entry("refused", 3, score=70)``."""
    return entry_of


class Ticking:
    """A clock on which no two moments are the same, so that what was written later can be told."""

    def __init__(self) -> None:
        self._seconds = itertools.count()

    def now(self) -> datetime:
        return datetime(2026, 2, 14, 10, tzinfo=UTC) + timedelta(seconds=next(self._seconds))


class Bench:
    """A repository with a project, whose jobs are agreed to, done and completed as in real life."""

    def __init__(self, root: Path, git: Callable[..., str]) -> None:
        self.root = root
        self.git = git
        self.workspace: Workspace = create_project(root, "Demo", clock=Ticking())

    def job(self, title: str = "Parser", *, agreed: bool = True, started: bool = True, **options: Any) -> Job:
        """A new job; its one criterion is that its output is there, unless others are named."""
        options.setdefault("criteria", ["The result is written down.\n  check: file outputs/primary.md"])
        made = add_job(self.workspace, title, **options)
        if agreed:
            self.agree(made)
        if agreed and started:
            assert self.start(made).started
        return self.read(made)

    def read(self, job: Job) -> Job:
        """The job as it is now."""
        return self.workspace.job_at(job.path)

    def agree(self, *jobs: Job) -> None:
        """A person agrees to the project and to these jobs."""
        for proposal in agreement_proposals(self.workspace, [self.read(job) for job in jobs]):
            agree(self.workspace, proposal, PERSON)

    def start(self, job: Job) -> StartResult:
        return start_job(self.workspace, job.id, AGENT)

    def write(self, job: Job, text: str = "The log has 12 lines.\n", name: str = "outputs/primary.md") -> Path:
        """Write an output (or another file of the job)."""
        path = job.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def edit(self, job: Job, before: str, after: str) -> Job:
        """Edit a plan file by hand."""
        text = job.path.read_text(encoding="utf-8")
        assert before in text
        job.path.write_text(text.replace(before, after, 1), encoding="utf-8")
        return self.read(job)

    def complete(self, job: Job) -> Completion:
        return complete(self.workspace, job.id, AGENT)

    def done(self, title: str = "Parser", **options: Any) -> Job:
        """A job that is done."""
        made = self.job(title, **options)
        self.write(made)
        assert self.complete(made).done
        return self.read(made)

    def facts(self, job: Job) -> Facts:
        return facts_of(self.workspace, self.read(job))


@pytest.fixture
def bench(repository: Path, git: Callable[..., str]) -> Bench:
    """A bench to do jobs on."""
    return Bench(repository, git)
