"""The facts of a job: everything that the gates need, read once. The gates read no files and no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.foundation.errors import ConfigError
from donewhen.jobs.board.validity import DependencyFact, ValidityChecker
from donewhen.jobs.board.views import ViewFact, view_status
from donewhen.jobs.contract.agreement import Agreement, job_agreement, project_agreement
from donewhen.jobs.contract.inputs import hash_file, locate_path, upstream_manifest
from donewhen.jobs.evidence.commands import evidence_name, evidence_store, newest_run
from donewhen.jobs.evidence.file_checks import FileState, file_state
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.evidence.test_config import hash_test_configs
from donewhen.jobs.gates.evidence_status import EvidenceStatus, evidence_statuses
from donewhen.jobs.issues.mirror_status import MirrorFact, mirror_fact
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entry_content import Agreed, CommandRun, Files, Started
from donewhen.jobs.ledger.ledger import Chain, Entry
from donewhen.jobs.lessons.lesson_use import LessonFact, lesson_fact
from donewhen.jobs.plan.criteria import is_placeholder, markdown_sections
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History, history_of
from donewhen.jobs.record.projection import Mismatch, mismatches

_MAX_PLACEHOLDER_BYTES = 1000


class FileFact(NamedTuple):
    """An output or evidence file of a job."""

    path: str
    state: FileState
    changed: bool = True
    """Whether it differs from when the job was started."""
    template: bool = False
    """Whether it contains only placeholder text, which earns no points."""


class SuiteFact(NamedTuple):
    """The tests of a command compared with an earlier run."""

    evidence: str
    lost: tuple[str, ...]
    skipped: tuple[str, ...]
    before: int
    now: int


class Facts(NamedTuple):
    """The current state of a job."""

    job: Job
    project: Project
    where: str
    agreement: Agreement
    project_agreement: Agreement
    history: History
    evidence: tuple[EvidenceStatus, ...]
    outputs: tuple[FileFact, ...]
    evidence_files: tuple[FileFact, ...]
    dependencies: tuple[DependencyFact, ...]
    upstream_changed: tuple[str, ...]
    """Outputs of other jobs that changed after this job was started."""
    suites: tuple[SuiteFact, ...]
    tampered: tuple[Mismatch, ...]
    chain_breaks: tuple[str, ...]
    runs: int
    """The number of runs by the gate for this job since it was started."""
    views: ViewFact
    lessons: LessonFact
    mirror: MirrorFact
    progress_lines: int
    sections: Mapping[str, str]
    """The text below each heading of the plan, by its lower-case title."""
    harness_changed: tuple[str, ...] = ()
    """Test configuration files that changed since the job was first started."""
    entries: tuple[Entry, ...] = ()
    """The events of the job, oldest first."""


def facts_of(workspace: Workspace, job: Job) -> Facts:
    """Return the current facts of a job. Runs and writes nothing; earlier runs are compared by content."""
    project = workspace.project()
    agreed_project = project_agreement(workspace, project)
    policy = Policy.of(agreed_project.seal.terms if agreed_project.seal else None)
    chain = workspace.ledger.read(job.id)
    history = history_of(job.id, chain.entries, policy)
    statuses = evidence_statuses(workspace, job)
    store = evidence_store(workspace)
    agreement = job_agreement(job, chain, agreed_project)
    agreed_at = agreement.seal.entry.seq if agreement.seal else 0
    suites, missing = _suites(store, chain.entries, statuses, agreed_at)
    texts = {section.title.casefold(): section.text for section in markdown_sections(job.document.body)}
    return Facts(
        job=job,
        project=project,
        where=workspace.where(job.path),
        agreement=agreement,
        project_agreement=agreed_project,
        history=history,
        evidence=statuses,
        outputs=_files(workspace, job, job.outputs, "outputs", _first_start(chain.entries)),
        evidence_files=_files(workspace, job, job.verification_evidence, "verification_evidence", None),
        dependencies=ValidityChecker(workspace, policy).dependencies_of(job),
        upstream_changed=_upstream_changed(workspace, job, history.started),
        suites=suites,
        tampered=mismatches(job.document.fields, chain.entries) if chain.entries else (),
        chain_breaks=(*_chain_problems(chain), *missing),
        runs=_count_runs(chain.entries, history.started, statuses),
        views=view_status(workspace, job, chain, agreed_project),
        lessons=lesson_fact(workspace, job.id, chain.entries),
        mirror=mirror_fact(workspace, project, job, chain.entries),
        progress_lines=_count_progress_lines(texts.get("progress log", "")),
        sections=texts,
        harness_changed=_changed_test_config(workspace, job, chain.entries),
        entries=chain.entries,
    )


def _files(
    workspace: Workspace, job: Job, paths: Sequence[str], field: str, started: Entry | None
) -> tuple[FileFact, ...]:
    before = _outputs_of(started) or {} if started is not None else {}
    files = []
    for path in paths:
        try:
            full = locate_path(workspace, job, path, field)
        except ConfigError:
            files.append(FileFact(path, "outside"))
            continue
        unchanged = started is not None and before.get(workspace.where(full)) == hash_file(full)
        state = file_state(full)
        files.append(FileFact(path, state, not unchanged, template=state == "good" and _is_only_placeholder(full)))
    return tuple(files)


def _is_only_placeholder(path: Path) -> bool:
    """Whether a file contains only placeholder text; long files are assumed to have content."""
    if path.stat().st_size > _MAX_PLACEHOLDER_BYTES:
        return False
    text = path.read_text(encoding="utf-8", errors="replace")
    return all(is_placeholder(line.lstrip("#-*+ ")) for line in text.splitlines() if line.strip())


def _first_start(entries: Sequence[Entry]) -> Entry | None:
    """Return the entry with the outputs before any work: the first start, or the agreement before it.

    Not the newest start, because an invalidated job may be completed again with the same output.
    """
    return next((entry for entry in entries if _outputs_of(entry) is not None), None)


def _outputs_of(entry: Entry) -> Files | None:
    return entry.content.outputs if isinstance(entry.content, Started | Agreed) else None


def _changed_test_config(workspace: Workspace, job: Job, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the test configuration files that changed since the first start, except agreed outputs.

    Since the first start, so that starting again does not legitimise a change.
    """
    starts = (entry.content for entry in entries if isinstance(entry.content, Started))
    first = next((start.harness for start in starts if start.harness is not None), None)
    if first is None:
        return ()
    now = hash_test_configs(workspace, job)
    agreed = set()
    for path in job.outputs:
        with suppress(ConfigError):
            agreed.add(workspace.where(locate_path(workspace, job, path, "outputs")))
    return tuple(sorted(name for name in {*first, *now} if first.get(name) != now.get(name) and name not in agreed))


def _upstream_changed(workspace: Workspace, job: Job, started: Entry | None) -> tuple[str, ...]:
    if started is None or not job.depends_on:
        return ()
    before = started.read_as(Started).upstream
    now = upstream_manifest(workspace, job).files
    return tuple(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))


def _suites(
    store: EvidenceStore, entries: Sequence[Entry], statuses: Sequence[EvidenceStatus], agreed_at: int
) -> tuple[tuple[SuiteFact, ...], tuple[str, ...]]:
    """Compare each test command's newest report with the one from before the work, or else the first one.

    Also return the problems with reports that are missing from the store.
    """
    facts: list[SuiteFact] = []
    missing: list[str] = []
    # The baseline is the last report before the first start (starting runs the tests) or before the latest agreement.
    # An earlier report may be of a temporarily incomplete suite.
    begun = max(agreed_at, next((entry.seq for entry in entries if entry.type == "started"), 0))
    requirements = [status.requirement for status in statuses if status.requirement.check.kind == "run"]
    for evidence in dict.fromkeys(requirement.evidence for requirement in requirements):
        newest = newest_run(entries, evidence)
        name = evidence_name(evidence)
        reports = [entry for entry in entries if _has_test_report(entry, name)]
        if newest is None or newest not in reports:
            continue
        earlier = [report for report in reports if report.seq < begun]
        now, before = test_outcomes(store, newest), test_outcomes(store, earlier[-1] if earlier else reports[0])
        if now is None or before is None:
            missing.append(f"the test ids of a run of `{evidence}` are missing")
            continue
        facts.append(compare_suites(evidence, now, before))
    return tuple(facts), tuple(missing)


def compare_suites(evidence: str, now: Mapping[str, str], before: Mapping[str, str]) -> SuiteFact:
    """Return the tests of ``before`` that are missing or skipped in ``now``."""
    executed = {name for name, outcome in before.items() if outcome != "skipped"}
    skipped = sorted(name for name in executed if now.get(name) == "skipped")
    return SuiteFact(evidence, tuple(sorted(before.keys() - now.keys())), tuple(skipped), len(executed), len(now))


def _has_test_report(entry: Entry, evidence: str) -> bool:
    run = entry.content
    return (
        isinstance(run, CommandRun)
        and run.evidence == evidence
        and run.report is not None
        and run.report.passed is not None
    )


def test_outcomes(store: EvidenceStore, entry: Entry) -> dict[str, str] | None:
    """Return the outcome of each test in a run; None if the store does not have it."""
    record: Any = store.get_json(entry.read_as(CommandRun).record or "")
    report = record.get("report") if isinstance(record, dict) else None
    outcomes: Any = store.get_json(str(report.get("outcomes"))) if isinstance(report, dict) else None
    return outcomes if isinstance(outcomes, dict) else None


def _chain_problems(chain: Chain) -> Iterator[str]:
    return (chain_break.problem for chain_break in chain.breaks if not chain_break.torn)


def _count_runs(entries: Sequence[Entry], started: Entry | None, statuses: Sequence[EvidenceStatus]) -> int:
    """Count the runs since the start, and the earlier ones that are still valid evidence."""
    since = started.seq if started is not None else 0
    valid = {status.entry.seq for status in statuses if status.entry is not None and status.state == "passed"}
    return sum(entry.type == "ran" and (entry.seq > since or entry.seq in valid) for entry in entries)


def _count_progress_lines(text: str) -> int:
    return sum(not is_placeholder(line.lstrip("-*+ ")) for line in text.splitlines() if line.strip())
