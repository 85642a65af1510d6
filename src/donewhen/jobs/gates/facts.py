"""The facts of a job: everything that the gates look at, read once. The gates read no file and no clock."""

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
from donewhen.jobs.evidence.test_config import test_config_hashes
from donewhen.jobs.gates.evidence_status import EvidenceStatus, evidence_statuses
from donewhen.jobs.issues.mirror_status import MirrorFact, mirror_fact
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.ledger import Chain, Entry
from donewhen.jobs.lessons.lesson_use import LessonFact, lesson_fact
from donewhen.jobs.plan.criteria import is_placeholder, markdown_sections
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History, history_of
from donewhen.jobs.record.projection import Mismatch, mismatches

_LONGEST_PLACEHOLDER = 1000


class FileFact(NamedTuple):
    """A file that a job has to put out, or to keep as evidence."""

    path: str
    state: FileState
    changed: bool = True
    """Whether it is another than when the job was started."""
    template: bool = False
    """Whether it holds no more than a placeholder, which earns nothing."""


class SuiteFact(NamedTuple):
    """How the tests of a command compare with those that were there before."""

    evidence: str
    lost: tuple[str, ...]
    skipped: tuple[str, ...]
    before: int
    now: int


class Facts(NamedTuple):
    """A job as it is now."""

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
    """Commands that the gate ran for this job since it was started."""
    views: ViewFact
    lessons: LessonFact
    mirror: MirrorFact
    progress_lines: int
    sections: Mapping[str, str]
    """The text below each heading of the plan, by its lower-case title."""
    harness_changed: tuple[str, ...] = ()
    """What tells the test framework how to report, and has changed since the job was first started."""


def facts_of(workspace: Workspace, job: Job) -> Facts:
    """A job as it is now. Nothing is run and nothing is written; what was run is compared by content."""
    project = workspace.project()
    about_project = project_agreement(workspace, project)
    policy = Policy.of(about_project.seal.terms if about_project.seal else None)
    chain = workspace.ledger.read(job.id)
    history = history_of(job.id, chain.entries, policy)
    shown = evidence_statuses(workspace, job)
    store = evidence_store(workspace)
    agreement = job_agreement(job, chain, about_project)
    agreed_at = agreement.seal.entry.seq if agreement.seal else 0
    suites, missing = _suites(store, chain.entries, shown, agreed_at)
    texts = {section.title.casefold(): section.text for section in markdown_sections(job.document.body)}
    return Facts(
        job=job,
        project=project,
        where=workspace.where(job.path),
        agreement=agreement,
        project_agreement=about_project,
        history=history,
        evidence=shown,
        outputs=_files(workspace, job, job.outputs, "outputs", _first_start(chain.entries)),
        evidence_files=_files(workspace, job, job.verification_evidence, "verification_evidence", None),
        dependencies=ValidityChecker(workspace, policy).dependencies_of(job),
        upstream_changed=_upstream_changed(workspace, job, history.started),
        suites=suites,
        tampered=mismatches(job.document.fields, chain.entries) if chain.entries else (),
        chain_breaks=(*_breaks(chain), *missing),
        runs=_runs(chain.entries, history.started, shown),
        views=view_status(workspace, job, chain, about_project),
        lessons=lesson_fact(workspace, job.id, chain.entries),
        mirror=mirror_fact(workspace, project, job, chain.entries),
        progress_lines=_progress(texts.get("progress log", "")),
        sections=texts,
        harness_changed=_harness_changed(workspace, job, chain.entries),
    )


def _files(
    workspace: Workspace, job: Job, paths: Sequence[str], field: str, started: Entry | None
) -> tuple[FileFact, ...]:
    before = started.data.get("outputs", {}) if started is not None else {}
    found = []
    for path in paths:
        try:
            full = locate_path(workspace, job, path, field)
        except ConfigError:
            found.append(FileFact(path, "outside"))
            continue
        unchanged = started is not None and before.get(workspace.where(full)) == hash_file(full)
        state = file_state(full)
        found.append(FileFact(path, state, not unchanged, template=state == "good" and _says_nothing(full)))
    return tuple(found)


def _says_nothing(path: Path) -> bool:
    """Whether a file holds no more than a placeholder; a long one is taken to say something."""
    if path.stat().st_size > _LONGEST_PLACEHOLDER:
        return False
    text = path.read_text(encoding="utf-8", errors="replace")
    return all(is_placeholder(line.lstrip("#-*+ ")) for line in text.splitlines() if line.strip())


def _first_start(entries: Sequence[Entry]) -> Entry | None:
    """The entry that knows the outputs before any work: the very first start, or the agreement before it.

    The very first, because a job that was invalidated and is completed again with the same output is honest.
    """
    return next((entry for entry in entries if entry.type in ("started", "agreed") and "outputs" in entry.data), None)


def _harness_changed(workspace: Workspace, job: Job, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Since the very first start: beginning again must not make it right. What was agreed as an output may change."""
    first = next(
        (entry.data["harness"] for entry in entries if entry.type == "started" and "harness" in entry.data), None
    )
    if not isinstance(first, Mapping):
        return ()
    now = test_config_hashes(workspace, job)
    agreed = set()
    for path in job.outputs:
        with suppress(ConfigError):
            agreed.add(workspace.where(locate_path(workspace, job, path, "outputs")))
    return tuple(sorted(one for one in {*first, *now} if first.get(one) != now.get(one) and one not in agreed))


def _upstream_changed(workspace: Workspace, job: Job, started: Entry | None) -> tuple[str, ...]:
    if started is None or not job.depends_on:
        return ()
    before = started.data.get("upstream", {})
    now = upstream_manifest(workspace, job).files
    return tuple(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))


def _suites(
    store: EvidenceStore, entries: Sequence[Entry], shown: Sequence[EvidenceStatus], agreed_at: int
) -> tuple[tuple[SuiteFact, ...], tuple[str, ...]]:
    """Each test command's newest report against the one that was there when it was agreed, or the first one after.

    Also what of them can't be found.
    """
    facts: list[SuiteFact] = []
    missing: list[str] = []
    # Before any work: the last report before the first start, which starting itself has made, or before a person agreed
    # anew. An earlier one may be of a suite from which something was missing for a moment.
    begun = max(agreed_at, next((entry.seq for entry in entries if entry.type == "started"), 0))
    for evidence in dict.fromkeys(one.requirement.evidence for one in shown if one.requirement.check.kind == "run"):
        newest = newest_run(entries, evidence)
        name = evidence_name(evidence)
        reports = [entry for entry in entries if _reports(entry, name)]
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
    """Which tests were there before and are not there, or don't run, now."""
    executed = {name for name, one in before.items() if one != "skipped"}
    skipped = sorted(name for name in executed if now.get(name) == "skipped")
    return SuiteFact(evidence, tuple(sorted(before.keys() - now.keys())), tuple(skipped), len(executed), len(now))


def _reports(entry: Entry, evidence: str) -> bool:
    report = entry.data.get("report")
    return (
        entry.type == "ran"
        and entry.data.get("evidence") == evidence
        and isinstance(report, Mapping)
        and "passed" in report
    )


def test_outcomes(store: EvidenceStore, entry: Entry) -> dict[str, str] | None:
    """What became of each test in a run; None where that is not known."""
    record: Any = store.get_json(str(entry.data.get("record")))
    report = record.get("report") if isinstance(record, dict) else None
    found: Any = store.get_json(str(report.get("outcomes"))) if isinstance(report, dict) else None
    return found if isinstance(found, dict) else None


def _breaks(chain: Chain) -> Iterator[str]:
    return (one.problem for one in chain.breaks if not one.torn)


def _runs(entries: Sequence[Entry], started: Entry | None, shown: Sequence[EvidenceStatus]) -> int:
    """What the gate ran since the start, and what it ran before and still holds."""
    since = started.seq if started is not None else 0
    holding = {one.entry.seq for one in shown if one.entry is not None and one.state == "passed"}
    return sum(entry.type == "ran" and (entry.seq > since or entry.seq in holding) for entry in entries)


def _progress(text: str) -> int:
    return sum(not is_placeholder(line.lstrip("-*+ ")) for line in text.splitlines() if line.strip())
