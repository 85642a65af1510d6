"""The task tracker and the dashboard: plans and ledger for people and spreadsheets. Every command that writes updates
them, one job at a time, so that the cost does not grow with the number of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from donewhen import __version__
from donewhen.dashboard.data import (
    EVENTS,
    Board,
    ChainPart,
    EventRow,
    JobRow,
    PlanPart,
    ProjectRow,
    UnreadableJob,
    board_of,
    decode_board,
    encode_board,
)
from donewhen.dashboard.seal import page_matches
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_limited
from donewhen.foundation.locks import locked
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.size_limits import LEDGER_CHAIN, PLAN_FILE, VIEW
from donewhen.jobs.board.board_states import survey_own_state
from donewhen.jobs.board.dashboard_record import JobHome, chain_part, event_of, plan_part, record_of
from donewhen.jobs.board.file_index import FileIndex
from donewhen.jobs.board.job_state import own_state
from donewhen.jobs.board.recorded_state import broken_code, recorded_state
from donewhen.jobs.board.row_states import row_dependencies, row_in_context, rows_in_context
from donewhen.jobs.board.survey import JobRecord, survey_jobs
from donewhen.jobs.board.tracker import read_tracker, render_tracker, row_of, tracker_path
from donewhen.jobs.contract.agreement import Agreement, job_agreement, project_agreement
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Chain, verify_chain
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.job import STATUSES, Job, Project, read_job
from donewhen.jobs.plan.snapshot import Snapshot
from donewhen.jobs.plan.workspace import PLAN, Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.parents import parent_plans
from donewhen.jobs.record.projection import mismatches


class ViewFact(NamedTuple):
    """Whether tracker and dashboard are current for a job."""

    tracker: bool
    dashboard: bool


class _ProjectState(NamedTuple):
    """The project at the time of one update."""

    workspace: Workspace
    project: Project
    agreement: Agreement

    @property
    def about(self) -> ProjectRow:
        project = self.project
        return ProjectRow(one_line(project.id), one_line(project.title), project.status, self.agreement.state)


def view_status(workspace: Workspace, job: Job, chain: Chain, project: Agreement) -> ViewFact:
    """Whether the views match the plan and the chain of this job. Renders nothing."""
    raw = _read_bytes(dashboard_path(workspace))
    board = decode_board(raw)
    expected = _job_row(workspace, job, chain, project)
    if board is not None:
        # By the rows of the other jobs on the same board, so that a row of another job makes no difference here.
        expected = row_in_context(expected, project.state, row_dependencies(board.jobs, board.unread))
    in_dashboard = board is not None and board.jobs.get(job.id) == expected
    page_current = in_dashboard and page_matches(_read_bytes(dashboard_path(workspace, "html")), raw)
    table = read_tracker(_read_bytes(tracker_path(workspace)))
    return ViewFact(table.sound and table.get(job.id) == row_of(expected), page_current)


def update_stale_views(workspace: Workspace, job: Job) -> None:
    """Update the views if they are not current for this job. A caller that records an entry and updates the views soon
    after does not need this."""
    agreement = project_agreement(workspace, workspace.project())
    if not all(view_status(workspace, job, workspace.ledger.read(job.id), agreement)):
        update_views(workspace, job)


def update_views(workspace: Workspace, *jobs: Job) -> None:
    """Update the views for these jobs and their parents. No other plan or chain is read, unless its job is missing
    from the views."""
    workspace.prepare()
    with locked(_lock_path(workspace)):
        # Read inside the lock: other processes may have updated the views, and their changes must not be lost.
        if isinstance(workspace, Snapshot):
            workspace.forget_changed()
        project_state = _read_project(workspace)
        project = project_state.project
        board = decode_board(_read_bytes(dashboard_path(workspace)))
        if board is None:
            _write_views(workspace, _build_board(project_state))
            return
        chains = {job.id: workspace.ledger.read(job.id) for job in jobs}
        records = {
            job.id: _job_row(workspace, workspace.job_at(job.path), chains[job.id], project_state.agreement)
            for job in jobs
        }
        records, unread = _merge_records(project_state, board, records)
        parents = {path for job in jobs for path in parent_plans(workspace, job)} | {project.path}
        names = [*chains, *(_chain_name(workspace, path) for path in sorted(parents))]
        events = [event for event in board.events if event.chain not in names]
        events += [event for name in names for event in _events(name, chains.get(name) or workspace.ledger.read(name))]
        _write_views(workspace, _board(project_state, records, events, unread))


def refresh_views(workspace: Workspace, paths: Sequence[Path], *, create: bool) -> None:
    """Update the views after these plans were written; without ``create``, only if there are views."""
    if not create and not dashboard_path(workspace).exists():
        return
    jobs = []
    for path in paths:
        if path.parent.parent.name == "jobs" and path != workspace.project_file:
            # A job that can't be read is shown as such when the views are built anew.
            with suppress(DonewhenError):
                jobs.append(workspace.job_at(path))
    update_views(workspace, *jobs)


def rebuild_views(workspace: Workspace) -> Board:
    """Rebuild the views from every plan and every chain; unchanged files come from the cache."""
    workspace.prepare()
    with locked(_lock_path(workspace)):
        board = _build_board(_read_project(workspace))
        _write_views(workspace, board)
    return board


def read_board(workspace: Workspace) -> Board:
    """Return the board as the plans and the ledger are now, without writing a view."""
    return _build_board(_read_project(workspace))


def open_jobs_on_dashboard(workspace: Workspace) -> frozenset[str]:
    """The jobs that the dashboard shows as neither done nor cancelled."""
    board = decode_board(_read_bytes(dashboard_path(workspace)))
    jobs = {} if board is None else board.jobs
    return frozenset(name for name, job in jobs.items() if job.status not in ("done", "cancelled"))


def dashboard_path(workspace: Workspace, suffix: str = "json") -> Path:
    return workspace.base / "outputs" / f"dashboard.{suffix}"


def _read_project(workspace: Workspace) -> _ProjectState:
    project = workspace.project()
    return _ProjectState(workspace, project, project_agreement(workspace, project))


def _merge_records(
    project_state: _ProjectState, board: Board, new_rows: Mapping[str, JobRow]
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
        elif path is not None and (identifier is not None or path.is_file()):
            try:
                job = workspace.job_at(path)
                chain = workspace.ledger.read(job.id)
                records[job.id] = new_rows.get(job.id) or _job_row(workspace, job, chain, project_state.agreement)
            except (DonewhenError, OSError) as error:
                unread.append(_unreadable(workspace, path, error))
    return records, tuple(unread)


def _build_board(project_state: _ProjectState) -> Board:
    workspace = project_state.workspace
    surveyed = {record.path: record for record in survey_jobs(workspace).jobs}
    records: dict[str, JobRow] = {}
    unread: list[UnreadableJob] = []
    homes: dict[Path, JobHome] = {}
    # A project that donewhen has never written to stays as it is.
    cache = workspace.folder / "cache" / "dashboard.sqlite" if workspace.folder.is_dir() else None
    with FileIndex(cache) as index:
        for place in workspace.places():
            record = surveyed.get(place.path)
            try:
                if record is None:
                    # Reading it again raises the error to report, or succeeds by now.
                    job = workspace.job_at(place.path)
                    row = _job_row(workspace, job, workspace.ledger.read(job.id), project_state.agreement)
                else:
                    row = _cached_row(workspace, index, record, homes)
                records[row.id] = row
            except (DonewhenError, OSError) as error:
                unread.append(_unreadable(workspace, place.path, error))
        events = _newest_events(workspace, index)
    return _board(project_state, records, events, unread)


def _board(
    project_state: _ProjectState,
    records: Mapping[str, JobRow],
    events: Iterable[EventRow],
    unread: Sequence[UnreadableJob],
) -> Board:
    """The board, with the state that each job has in its project and with its dependencies."""
    rows = rows_in_context(records, unread, project_state.agreement.state)
    return board_of(project_state.about, rows, events, unread, STATUSES)


def _cached_row(workspace: Workspace, index: FileIndex, job: JobRecord, homes: dict[Path, JobHome]) -> JobRow:
    where = workspace.where(job.path)
    plan = index.get_or_read(
        f"dashboard plan {__version__} {where}",
        job.path,
        lambda raw: msgspec.to_builtins(plan_part(read_job(parse_document(raw, where), job.path, where))),
        limit=PLAN_FILE,
    )
    chain = _chain_data(workspace, index, job.id) if job.events else {}
    workstream = job.path.parent.parent.parent
    if workstream not in homes:
        homes[workstream] = _home(workspace, job.path)
    return record_of(
        msgspec.convert(plan, PlanPart),
        msgspec.convert(chain.get("part", {}), ChainPart),
        msgspec.structs.replace(homes[workstream], path=where),
        job.agreement,
        [mismatch.field for mismatch in job.tampered],
        survey_own_state(job),
    )


def _chain_data(workspace: Workspace, index: FileIndex, name: str) -> dict[str, object]:
    """The dashboard's part of a chain, and the time of its newest entry."""

    def read(raw: bytes) -> dict[str, object]:
        entries = verify_chain(name, raw).entries
        part = msgspec.to_builtins(chain_part(name, entries))
        return {"part": part, "newest": str(entries[-1].at) if entries else ""}

    path = workspace.folder / "ledger" / f"{name}.jsonl"
    data: dict[str, object] = index.get_or_read(f"dashboard chain {__version__} {name}", path, read, limit=LEDGER_CHAIN)
    return data


def _newest_events(workspace: Workspace, index: FileIndex) -> list[EventRow]:
    """The newest events of all chains. Only the most recently written chains are read, since they contain them all."""
    newest: list[tuple[str, str]] = []
    for name in workspace.ledger.chains():
        with suppress(OSError):
            newest.append((str(_chain_data(workspace, index, name)["newest"]), name))
    chosen = [name for _, name in sorted(newest)[-EVENTS:]]
    return [event for name in chosen for event in _events(name, workspace.ledger.read(name))]


def _job_row(workspace: Workspace, job: Job, chain: Chain, project: Agreement) -> JobRow:
    tampered = mismatches(job.document.fields, chain.entries) if chain.entries else ()
    agreement = job_agreement(job, chain, project).state
    policy = Policy.of(project.seal.terms if project.seal else None)
    known = recorded_state(
        history_of(job.id, chain.entries, policy), chain.entries, broken=broken_code(chain, _project_chain(workspace))
    )
    return record_of(
        plan_part(job),
        chain_part(job.id, chain.entries),
        _home(workspace, job.path),
        agreement,
        [mismatch.field for mismatch in tampered],
        own_state(job.id, known, job.max_iterations, agreement, tampered=bool(tampered)),
    )


def _project_chain(workspace: Workspace) -> Chain:
    return workspace.ledger.read(workspace.project().id)


def _home(workspace: Workspace, path: Path) -> JobHome:
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


def _chain_name(workspace: Workspace, path: Path) -> str:
    try:
        return str(workspace.read(path).fields.get("id") or path.parent.name)
    except DonewhenError:
        return path.parent.name


def _events(name: str, chain: Chain) -> list[EventRow]:
    return [event_of(name, entry) for entry in chain.entries[-EVENTS:]]


def _unreadable(workspace: Workspace, path: Path, error: DonewhenError | OSError) -> UnreadableJob:
    message = error.message if isinstance(error, DonewhenError) else f"The file can't be read: {error.strerror}."
    return UnreadableJob(one_line(workspace.where(path)), one_line(message, 300))


def _write_views(workspace: Workspace, board: Board) -> None:
    """Write the views that changed. Links are not followed, so no file outside the project is overwritten."""
    # Imported only to write: gates and hooks import this module, and never render a page.
    from donewhen.dashboard.page import render_dashboard

    (workspace.base / "outputs").mkdir(exist_ok=True)
    tracker = tracker_path(workspace)
    data = encode_board(board)
    content = {
        tracker: render_tracker(board.jobs.values(), read_tracker(_read_bytes(tracker)).notes),
        dashboard_path(workspace): data,
        dashboard_path(workspace, "html"): render_dashboard(board, data),
    }
    for path, new in content.items():
        if _read_bytes(path) != new:
            workspace.put(path, new)


def _read_bytes(path: Path) -> bytes:
    try:
        return read_limited(path, VIEW)
    except OSError:
        return b""


def _lock_path(workspace: Workspace) -> Path:
    return workspace.folder / "state" / "locks" / "views.lock"
