"""The rows of the dashboard, from plans and chains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from donewhen.dashboard.data import (
    EVENTS,
    Board,
    EventRow,
    JobRow,
    ProjectRow,
    UnreadableJob,
    board_of,
)
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.dashboard_record import JobHome, chain_part, event_of, plan_part, record_of
from donewhen.jobs.board.job_state import own_state
from donewhen.jobs.board.recorded_state import broken_code, recorded_state
from donewhen.jobs.board.row_states import rows_in_context
from donewhen.jobs.contract.agreement import Agreement, job_agreement, project_agreement
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Chain
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.job import STATUSES, Job, Project
from donewhen.jobs.plan.workspace import PLAN, Workspace, is_left_over
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import mismatches


@dataclass(frozen=True)
class ProjectState:
    """The project at the time of one update."""

    workspace: Workspace
    project: Project
    agreement: Agreement

    @property
    def about(self) -> ProjectRow:
        project = self.project
        return ProjectRow(one_line(project.id), one_line(project.title), project.status, self.agreement.state)


def read_project_state(workspace: Workspace) -> ProjectState:
    """Read the project and its agreement."""
    project = workspace.project()
    return ProjectState(workspace, project, project_agreement(workspace, project))


def merge_rows(
    project_state: ProjectState, board: Board, new_rows: Mapping[str, JobRow]
) -> tuple[dict[str, JobRow], tuple[UnreadableJob, ...]]:
    """Return all rows: the new ones, those already on the board, and those of jobs missing from the board.

    Jobs whose folders are gone are dropped.
    """
    workspace = project_state.workspace
    records: dict[str, JobRow] = {}
    unread: list[UnreadableJob] = []
    for folder, name in workspace.names():
        identifier = id_in(name)
        known = None if identifier is None else new_rows.get(identifier) or board.jobs.get(identifier)
        path = None if known is not None else folder / name / PLAN
        if known is not None:
            records[known.id] = known
        elif path is not None and (path.is_file() if identifier is None else not is_left_over(path)):
            try:
                job = workspace.job_at(path)
                chain = workspace.ledger.read(job.id)
                records[job.id] = new_rows.get(job.id) or job_row(workspace, job, chain, project_state.agreement)
            except (DonewhenError, OSError) as error:
                unread.append(unreadable_job(workspace, path, error))
    return records, tuple(unread)


def board_in_context(
    project_state: ProjectState,
    records: Mapping[str, JobRow],
    events: Iterable[EventRow],
    unread: Sequence[UnreadableJob],
    before: Board | None = None,
) -> Board:
    """The board, with the state that each job has in its project and with its dependencies; ``before`` is the board
    that unchanged records are from."""
    rows = rows_in_context(records, unread, project_state.agreement.state, before)
    return board_of(project_state.about, rows, events, unread, STATUSES)


def job_row(workspace: Workspace, job: Job, chain: Chain, project: Agreement) -> JobRow:
    """The row of a job, without its project and its dependencies."""
    tampered = mismatches(job.document.fields, chain.entries) if chain.entries else ()
    agreement = job_agreement(job, chain, project).state
    policy = Policy.of(project.seal.terms if project.seal else None)
    known = recorded_state(
        history_of(job.id, chain.entries, policy), chain.entries, broken=broken_code(chain, _project_chain(workspace))
    )
    return record_of(
        plan_part(job),
        chain_part(job.id, chain.entries),
        job_home(workspace, job.path),
        agreement,
        [mismatch.field for mismatch in tampered],
        own_state(job.id, known, job.max_iterations, agreement, tampered=bool(tampered)),
    )


def _project_chain(workspace: Workspace) -> Chain:
    return workspace.ledger.read(workspace.project().id)


def job_home(workspace: Workspace, path: Path) -> JobHome:
    """Where a job stands: its plan, and its workstream."""
    where = workspace.where(path)
    if workspace.form == "small":
        return JobHome(where)
    workstream = path.parent.parent.parent
    try:
        fields = workspace.read(workstream / PLAN).fields
    except DonewhenError:
        fields = {}
    name, title = (one_line(str(fields.get(field) or "")) for field in ("id", "title"))
    return JobHome(where, name or one_line(workstream.name), title)


def name_of_chain(workspace: Workspace, path: Path) -> str:
    """The name of the chain of a workstream or project, also if its plan can't be read."""
    try:
        return str(workspace.read(path).fields.get("id") or path.parent.name)
    except DonewhenError:
        return path.parent.name


def events_of(name: str, chain: Chain) -> list[EventRow]:
    """The newest events of a chain."""
    return [event_of(name, entry) for entry in chain.entries[-EVENTS:]]


def unreadable_job(workspace: Workspace, path: Path, error: DonewhenError | OSError) -> UnreadableJob:
    """What the dashboard shows for a job whose plan can't be read."""
    message = error.message if isinstance(error, DonewhenError) else f"The file can't be read: {error.strerror}."
    return UnreadableJob(one_line(workspace.where(path)), one_line(message, 300))
