"""The facts of a job: everything that the gates need, read once. The gates read no files and no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.errors import ConfigError
from donewhen.jobs.board.recorded_files import names_of_outputs
from donewhen.jobs.board.validity import DependencyFact, ValidityChecker
from donewhen.jobs.board.views import ViewFact, view_status
from donewhen.jobs.contract.agreement import Agreement, job_agreement, project_agreement
from donewhen.jobs.contract.inputs import hash_file, locate_path, matching_paths, upstream_manifest
from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.evidence.file_checks import FileState, file_state
from donewhen.jobs.evidence.test_config import hash_test_configs
from donewhen.jobs.gates.evidence_status import EvidenceStatus, evidence_statuses
from donewhen.jobs.gates.output_words import is_data_file, is_placeholder_file
from donewhen.jobs.gates.suites import SuiteFact, suites_of
from donewhen.jobs.issues.mirror_status import MirrorFact, mirror_fact
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Chain, Entry
from donewhen.jobs.ledger.entry_content import Agreed, BaselineRun, Files, ProbeRun, Ran, Started
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.lessons.lesson_use import LessonFact, lesson_fact
from donewhen.jobs.plan.criteria import markdown_sections
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.placeholders import written_lines
from donewhen.jobs.plan.snapshot import snapshot_of
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History, history_of
from donewhen.jobs.record.projection import Mismatch, mismatches
from donewhen.jobs.room.basis import basis_of


class FileFact(NamedTuple):
    """An output or evidence file of a job."""

    path: str
    state: FileState
    changed: bool = True
    """Whether it differs from when the job was started."""
    template: bool = False
    """Whether it contains only placeholder text, which earns no points."""


class OtherVersion(NamedTuple):
    """Something that another version of donewhen wrote, in a format that this version can't use."""

    message: str
    where: str


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
    """The number of successful runs by the gate for this job since it was started."""
    views: ViewFact
    lessons: LessonFact
    mirror: MirrorFact
    progress_lines: int
    sections: Mapping[str, str]
    """The text below each heading of the plan, by its lower-case title."""
    harness_changed: tuple[str, ...] = ()
    """Test configuration files that changed since the job was first started."""
    project_breaks: tuple[str, ...] = ()
    other_versions: tuple[OtherVersion, ...] = ()
    """Lines of the job's and the project's ledger, and test reports, that this version can't use."""

    @property
    def record_intact(self) -> bool:
        """Whether the ledger can be read to its end, and the plan says what it says."""
        return not (self.tampered or self.chain_breaks or self.project_breaks or self.other_versions)

    entries: tuple[Entry, ...] = ()
    """The events of the job, oldest first."""


def facts_of(workspace: Workspace, job: Job, found: ViewFact | None = None) -> Facts:
    """Return the current facts of a job. Runs and writes nothing; earlier runs are compared by content.

    ``found`` says how the views were before the caller updated them: a view that had been edited by hand earns nothing
    this time.
    """
    workspace = snapshot_of(workspace)
    project = workspace.project()
    agreed_project = project_agreement(workspace, project)
    policy = Policy.of(agreed_project.seal.terms if agreed_project.seal else None)
    chain = workspace.ledger.read(job.id)
    project_chain = workspace.ledger.read(project.id)
    history = history_of(job.id, chain.entries, policy)
    statuses = evidence_statuses(workspace, job)
    agreement = job_agreement(job, chain, agreed_project)
    agreed_at = agreement.seal.entry.seq if agreement.seal else 0
    suites, unusable = suites_of(evidence_store(workspace), chain.entries, statuses, agreed_at)
    newer = [report for report in unusable if report.record.code == FindingCode.OTHER_VERSION]
    texts = {section.title.casefold(): section.text for section in markdown_sections(job.document.body)}
    return Facts(
        job=job,
        project=project,
        where=workspace.where(job.path),
        agreement=agreement,
        project_agreement=agreed_project,
        history=history,
        evidence=statuses,
        outputs=_outputs(workspace, job, _first_start(chain.entries), statuses),
        evidence_files=_files(workspace, job, job.verification_evidence, "verification_evidence", None),
        dependencies=ValidityChecker(workspace, policy).dependencies_of(job),
        upstream_changed=_upstream_changed(workspace, job, history.started),
        suites=suites,
        tampered=mismatches(job.document.fields, chain.entries) if chain.entries else (),
        chain_breaks=(*chain_problems(chain), *(report.message for report in unusable if report not in newer)),
        runs=_count_runs(chain.entries, history.started, statuses),
        views=_views(view_status(workspace, job, chain, agreed_project), found),
        lessons=lesson_fact(workspace, job.id, chain.entries),
        mirror=mirror_fact(workspace, project, job, chain.entries),
        progress_lines=_count_progress_lines(texts.get("progress log", "")),
        sections=texts,
        harness_changed=_changed_test_config(workspace, job, chain.entries),
        project_breaks=tuple(chain_problems(project_chain)),
        other_versions=(
            *_other_versions(workspace, chain),
            *_other_versions(workspace, project_chain),
            *(OtherVersion(report.sentence, _line(workspace, job.id, report.entry.seq)) for report in newer),
        ),
        entries=chain.entries,
    )


def _views(now: ViewFact, found: ViewFact | None) -> ViewFact:
    if found is None:
        return now
    return now._replace(tracker=now.tracker and found.tracker, dashboard=now.dashboard and found.dashboard)


def _other_versions(workspace: Workspace, chain: Chain) -> Iterator[OtherVersion]:
    for broken in chain.breaks:
        if broken.other_version:
            message = f"The ledger of {broken.chain} can't be used: {broken.problem}."
            yield OtherVersion(message, _line(workspace, broken.chain, broken.line))


def _line(workspace: Workspace, chain: str, line: int) -> str:
    return f"{workspace.where(workspace.ledger.place_of(chain))}:{line}"


def _files(
    workspace: Workspace, job: Job, paths: Sequence[str], field: str, started: Entry | None
) -> tuple[FileFact, ...]:
    before = _outputs_of(started) or {} if started is not None else {}
    files = []
    for path in chain.from_iterable(matching_paths(workspace, job, path, field) for path in paths):
        try:
            full = locate_path(workspace, job, path, field)
        except ConfigError:
            files.append(FileFact(path, "outside"))
            continue
        unchanged = started is not None and before.get(workspace.where(full)) == hash_file(full)
        state = file_state(full)
        files.append(FileFact(path, state, not unchanged, template=state == "good" and is_placeholder_file(full)))
    return tuple(files)


def _outputs(
    workspace: Workspace, job: Job, started: Entry | None, statuses: Sequence[EvidenceStatus]
) -> tuple[FileFact, ...]:
    """Return the outputs. A placeholder is none if a check speaks for it: for any text a file check about its content
    that is met, and for short data such as `7` or `<svg/>` any evidence that has passed. That a command has passed, or
    that the file exists, says nothing about the words in it."""
    files = _files(workspace, job, job.outputs, "outputs", started)
    passed = [status.requirement.check for status in statuses if status.is_met]
    if not passed or not any(file.template for file in files):
        return files
    read = {_path_of(workspace, job, check.path) for check in passed if check.path and check.reads_content}
    return tuple(
        file._replace(template=False)
        if file.template and (path := _path_of(workspace, job, file.path)) and (path in read or is_data_file(path))
        else file
        for file in files
    )


def _path_of(workspace: Workspace, job: Job, path: str) -> Path | None:
    try:
        return locate_path(workspace, job, path, "outputs")
    except ConfigError:
        return None


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
    # In a room, everything that judges is as agreed, so there is nothing to look for.
    if first is None or basis_of(workspace, job) is not None:
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
    changed = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    # What the job itself makes of them is its work.
    return tuple(sorted(changed.difference(names_of_outputs(workspace, job)) if changed else ()))


def chain_problems(chain: Chain) -> Iterator[str]:
    """Return why a chain is broken; lines of other versions are not breaks."""
    return (broken.problem for broken in chain.breaks if not broken.torn and not broken.other_version)


def _count_runs(entries: Sequence[Entry], started: Entry | None, statuses: Sequence[EvidenceStatus]) -> int:
    """Count the successful runs since the start, and the earlier ones that are still valid evidence."""
    since = started.seq if started is not None else 0
    valid = {status.entry.seq for status in statuses if status.entry is not None and status.is_met}
    runs = (
        entry
        for entry in entries
        if isinstance(entry.content, Ran)
        and entry.content.passed
        and not isinstance(entry.content, BaselineRun | ProbeRun)
    )
    return sum(entry.seq > since or entry.seq in valid for entry in runs)


def _count_progress_lines(text: str) -> int:
    return len(written_lines(text))
