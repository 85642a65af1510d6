"""Read the state of all jobs at once. Unreadable files are reported as problems and skipped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from donewhen import __version__
from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.size_limits import LEDGER_CHAIN, PLAN_FILE
from donewhen.jobs.board.file_index import FileIndex
from donewhen.jobs.board.index_records import (
    IndexedChain,
    IndexedFiles,
    IndexedPlan,
    IndexedProblem,
    IndexedSeal,
    UnreadablePlan,
    decode_chain,
    decode_plan,
)
from donewhen.jobs.board.job_state import KnownState
from donewhen.jobs.board.recorded_files import RecordedFiles, files_at
from donewhen.jobs.board.recorded_state import broken_code, recorded_state
from donewhen.jobs.board.validity import DependencyRecord
from donewhen.jobs.contract.agreement import (
    AgreementProblem,
    AgreementState,
    current_seal,
    project_agreement,
    terms_as_recorded,
)
from donewhen.jobs.contract.terms import compare_terms, job_terms, terms_hash
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import verify_chain
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.field_names import misspelled_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.ids import id_in, is_parent
from donewhen.jobs.plan.job import Job, Project, read_job, unknown_format
from donewhen.jobs.plan.workspace import JobPlace, Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import (
    WRITTEN_BY_DONEWHEN,
    Mismatch,
    compare_fields,
    expected_fields,
    last_writes,
    unwritten_fields,
)

_MAX_HOURS = 1e6


class JobRecord(NamedTuple):
    """The state of a job in the overview."""

    id: str
    title: str
    status: str
    stakes: str
    depends_on: tuple[str, ...]
    iteration: int
    max_iterations: int
    estimate_hours: float
    agreement: AgreementState
    tampered: tuple[Mismatch, ...]
    path: Path
    events: int
    recorded: str = ""
    """The status according to the ledger."""
    built: DependencyRecord | None = None
    """What dependent jobs build on; None if it was not read."""
    judged: bool = False
    """Whether a judge decides one of its criteria."""
    known: KnownState = KnownState()
    """What the ledger says about its state."""
    reward_target: int = 0
    shown: Mapping[str, Value] = {}
    """The fields of the plan that donewhen writes, as they are."""
    unknown_format: str = ""
    """What is unknown about the format of the plan."""
    misspelled: tuple[tuple[str, str], ...] = ()
    """Fields that are probably misspelled, each with the one that was meant."""


@dataclass(frozen=True)
class Survey:
    """All jobs, and the problems found."""

    project: Project
    project_agreement: AgreementState
    jobs: tuple[JobRecord, ...]
    problems: tuple[AgreementProblem, ...]
    unseen: tuple[str, ...] = ()
    """Jobs in progress according to the ledger whose plan is missing or unreadable."""
    unreadable: tuple[str, ...] = ()
    """Jobs whose plan can't be read."""
    missing: tuple[str, ...] = ()
    """Jobs of the ledger without a plan, unless they were cancelled."""
    damaged: frozenset[str] = frozenset()
    """Jobs whose chain is broken, or was written by another version."""


def only_job_in_progress(workspace: Workspace) -> Job | None:
    """The job in progress; None if there is none, or more than one."""
    working = [job for job in survey_jobs(workspace).jobs if job.status == "in_progress"]
    return workspace.job_at(working[0].path) if len(working) == 1 else None


def survey_jobs(workspace: Workspace) -> Survey:
    """Read the state of every job; unchanged files come from the index."""
    project = workspace.project()
    agreement = project_agreement(workspace, project)
    policy = Policy.of(agreement.seal.terms if agreement.seal else None)
    problems: list[AgreementProblem] = []
    records: list[JobRecord] = []
    # A project that donewhen has never written to stays as it is.
    with FileIndex(workspace.folder / "index.sqlite" if workspace.folder.is_dir() else None) as index:
        lost = _survey_places(workspace, index, agreement.state == "unsealed", policy, records, problems, project.id)
    problems += _duplicate_ids(workspace, records)
    damaged = frozenset(job.id for job in records if job.known.broken)
    broken = broken_code(workspace.ledger.read(project.id))
    if broken:
        # Who may approve is not known then, so no job's record counts.
        records = [job._replace(known=job.known._replace(broken=job.known.broken or broken)) for job in records]
    return Survey(project, agreement.state, tuple(records), tuple(problems), *lost, damaged)


def _survey_places(
    workspace: Workspace,
    index: FileIndex,
    typed: bool,
    policy: Policy,
    records: list[JobRecord],
    problems: list[AgreementProblem],
    project: str,
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Add the records and problems; return the jobs in progress without a readable plan, all unreadable jobs, and all
    missing ones."""
    unreadable: list[str] = []
    chains = set(workspace.ledger.chains())
    reader = _CachedReader(index, policy)
    for place in workspace.places():
        try:
            plan = reader.plan(place, workspace.where(place.path))
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            message = "The plan file is missing." if missing else f"The plan file can't be read: {error.strerror}."
            problems.append(AgreementProblem("document", message, workspace.where(place.path)))
            unreadable += [] if missing else [place.id]
            continue
        try:
            chain = reader.chain(workspace, plan.id) if plan.id in chains else IndexedChain()
        except OSError as error:
            where = workspace.where(workspace.folder / "ledger" / f"{plan.id}.jsonl")
            problems.append(
                AgreementProblem(FindingCode.CHAIN_BROKEN, f"The chain can't be read: {error.strerror}.", where)
            )
            chain = IndexedChain(known=KnownState(broken=GateCode.RECORD_BROKEN))
        if isinstance(plan, UnreadablePlan):
            problems.append(_problem(plan.problem))
            unreadable.append(plan.id)
            continue
        problems += map(_problem, chain.breaks)
        records.append(_record(plan, chain, place, typed))
    lost = sorted(chains.difference(record.id for record in records))
    statuses = {name: _status_of_lost(workspace, reader, name) for name in lost if not is_parent(name, project)}
    unseen = tuple(name for name, status in statuses.items() if status in ("in_progress", None))
    gone = tuple(name for name, status in statuses.items() if status != "cancelled" and name not in unreadable)
    return unseen, tuple(unreadable), gone


def _status_of_lost(workspace: Workspace, reader: _CachedReader, name: str) -> str | None:
    """The status of a job by its chain; None if the chain can't be read, so that the job may be in progress."""
    try:
        return _recorded_status(reader.chain(workspace, name)) or "planned"
    except OSError:
        return None


class _CachedReader:
    """Reads plans and chains through the index, reduced to what the overview needs."""

    def __init__(self, index: FileIndex, policy: Policy) -> None:
        self._index = index
        # Cached data depends on the version that parsed it, and seals depend on the approval policy.
        self._plan_kind = f"plan {__version__}"
        self._chain_kind = f"chain {__version__} {digest_of([policy.ci, sorted(policy.keys)])}"
        self._policy = policy
        self._ledger = ""

    def plan(self, place: JobPlace, where: str) -> IndexedPlan | UnreadablePlan:
        plan: IndexedPlan | UnreadablePlan = self._index.get_or_read(
            f"{self._plan_kind} {where}",
            place.path,
            lambda raw: _indexed_plan(raw, place.path, where),
            decode=decode_plan,
            limit=PLAN_FILE,
        )
        return plan

    def chain(self, workspace: Workspace, name: str) -> IndexedChain:
        self._ledger = self._ledger or str(workspace.folder / "ledger")
        # A string: thousands of paths take a while to build.
        path = f"{self._ledger}/{name}.jsonl"
        chain: IndexedChain = self._index.get_or_read(
            f"{self._chain_kind} {name}",
            path,
            lambda raw: _indexed_chain(raw, name, self._policy, workspace.where(Path(path))),
            decode=decode_chain,
            limit=LEDGER_CHAIN,
        )
        return chain


def _problem(found: IndexedProblem) -> AgreementProblem:
    return AgreementProblem(found.code, found.message, found.where)


def _indexed_plan(raw: bytes, path: Path, where: str) -> IndexedPlan | UnreadablePlan:
    folder_id = id_in(path.parent.name) or path.parent.name
    try:
        document = parse_document(raw, where)
        job = read_job(document, path, where)
    except DonewhenError as error:
        return UnreadablePlan(folder_id, IndexedProblem(error.code, str(error.message), error.where or where))
    if id_in(path.parent.name) not in (None, job.id):
        message = f"The folder says {folder_id}, but the plan file says {job.id}."
        return UnreadablePlan(folder_id, IndexedProblem("workspace", message, where))
    terms = job_terms(job)
    return IndexedPlan(
        id=job.id,
        title=job.title,
        status=job.status,
        stakes=job.stakes,
        depends_on=job.depends_on,
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        estimate_hours=_hours(document.fields.get("estimate_hours")),
        terms=terms,
        hash=terms_hash(terms),
        projected={name: document.fields[name] for name in _WRITTEN_FIELDS if name in document.fields},
        agreed=document.fields.get("agreement_status") == "agreed",
        outputs=job.outputs,
        inputs=job.inputs,
        unknown_format=unknown_format(document, "job"),
        misspelled=misspelled_fields(document.fields),
    )


def _indexed_chain(raw: bytes, name: str, policy: Policy, where: str) -> IndexedChain:
    chain = verify_chain(name, raw)
    seal = current_seal(name, chain.entries, policy)
    history = history_of(name, chain.entries, policy)
    built_on = files_at(history.completed, chain.entries)
    return IndexedChain(
        events=len(chain.entries),
        breaks=tuple(
            IndexedProblem(
                (FindingCode.OTHER_VERSION if broken.other_version else FindingCode.CHAIN_BROKEN).value,
                f"Line {broken.line}: {broken.problem}.",
                f"{where}:{broken.line}",
            )
            for broken in chain.breaks
            if not broken.torn
        ),
        seal=None if seal is None else IndexedSeal(seal.terms, seal.hash),
        expected=expected_fields(chain.entries),
        last=dict(last_writes(chain.entries)),
        cancelled=history.status == "cancelled",
        completed=None
        if built_on is None
        else IndexedFiles(
            dict(built_on.upstream),
            dict(built_on.declared),
            dict(built_on.outputs),
            built_on.at,
            built_on.failed_again,
        ),
        known=recorded_state(history, chain.entries, broken=broken_code(chain)),
    )


# Not only the projected fields: an interrupted write is detected by all fields that it was to change.
_WRITTEN_FIELDS = tuple(sorted(WRITTEN_BY_DONEWHEN))


def _record(plan: IndexedPlan, chain: IndexedChain, place: JobPlace, typed: bool) -> JobRecord:
    built_on = chain.completed
    agreement = _agreement(plan, chain, typed or plan.agreed)
    return JobRecord(
        plan.id,
        plan.title,
        plan.status,
        plan.stakes,
        plan.depends_on,
        plan.iteration,
        plan.max_iterations,
        plan.estimate_hours,
        agreement,
        _mismatches(plan.projected, chain),
        place.path,
        chain.events,
        _recorded_status(chain) or plan.status,
        DependencyRecord(
            place.path,
            plan.depends_on,
            plan.outputs,
            plan.inputs,
            chain.cancelled,
            None
            if built_on is None
            else RecordedFiles(
                built_on.upstream, built_on.declared, built_on.outputs, built_on.at, built_on.failed_again
            ),
            built_on is not None and agreement == "voided",
        ),
        any("[check: judge " in criterion for criterion in plan.terms.criteria),
        chain.known,
        plan.terms.reward_target,
        plan.projected,
        plan.unknown_format,
        plan.misspelled,
    )


def _recorded_status(chain: IndexedChain) -> str:
    return str(chain.expected["status"]) if chain.events else ""


def _agreement(plan: IndexedPlan, chain: IndexedChain, typed: bool) -> AgreementState:
    seal = chain.seal
    if seal is None:
        return "unsealed" if typed else "proposed"
    if seal.hash == plan.hash:
        return "agreed"
    terms = terms_as_recorded(plan.terms, unwritten_fields(plan.projected, chain.last))
    return "voided" if any(term.voids for term in compare_terms(seal.terms, terms)) else "agreed"


def _mismatches(fields: Mapping[str, Value], chain: IndexedChain) -> tuple[Mismatch, ...]:
    return compare_fields(fields, chain.expected, chain.last) if chain.events else ()


def _duplicate_ids(workspace: Workspace, records: Sequence[JobRecord]) -> list[AgreementProblem]:
    if len({record.id for record in records}) == len(records):
        return []
    places: dict[str, list[str]] = defaultdict(list)
    for record in records:
        places[record.id].append(workspace.where(record.path))
    return [
        AgreementProblem(
            FindingCode.DUPLICATE_ID, f"{len(paths)} jobs have the id {name}: {', '.join(paths)}.", paths[0]
        )
        for name, paths in places.items()
        if len(paths) > 1
    ]


def _hours(value: Value) -> float:
    # A plan can hold a number of any length.
    return float(min(value, _MAX_HOURS)) if isinstance(value, int | float) and value > 0 else 1.0
