"""The task tracker and the dashboard: what plans and ledger say, for people and spreadsheets. Written by every command
that writes, one job at a time, so that it costs the same however many jobs there are."""

from __future__ import annotations

from collections.abc import Mapping
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
from donewhen.dashboard.page import render_dashboard
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.locks import locked
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.dashboard_record import JobHome, chain_part, event_of, plan_part, record_of
from donewhen.jobs.board.file_index import FileIndex
from donewhen.jobs.board.survey import JobRecord, survey_jobs
from donewhen.jobs.board.tracker import read_tracker, render_tracker, row_of, tracker_path
from donewhen.jobs.contract.agreement import Agreement, job_agreement, project_agreement
from donewhen.jobs.ledger.ledger import Chain, verify_chain
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.job import STATUSES, Job, Project, read_job
from donewhen.jobs.plan.workspace import PLAN, Workspace
from donewhen.jobs.record.parents import parent_plans
from donewhen.jobs.record.projection import mismatches


class ViewFact(NamedTuple):
    """Whether tracker and dashboard say of this job what the ledger says."""

    tracker: bool
    dashboard: bool


class _Looked(NamedTuple):
    """The project as one refresh sees it."""

    workspace: Workspace
    project: Project
    agreement: Agreement

    @property
    def about(self) -> ProjectRow:
        project = self.project
        return ProjectRow(one_line(project.id), one_line(project.title), project.status, self.agreement.state)


def view_status(workspace: Workspace, job: Job, chain: Chain, project: Agreement) -> ViewFact:
    """Whether the views are current: whether they say of this job what its plan and its chain say."""
    expected = _record(workspace, job, chain, project)
    raw = _bytes(dashboard_path(workspace))
    board = decode_board(raw)
    shown = board is not None and board.jobs.get(job.id) == expected
    drawn = board is not None and shown and _bytes(dashboard_path(workspace, "html")) == render_dashboard(board, raw)
    table = read_tracker(_bytes(tracker_path(workspace)))
    return ViewFact(table.sound and table.get(job.id) == row_of(expected), drawn)


def update_stale_views(workspace: Workspace, job: Job) -> None:
    """Bring the views up to date if they don't say of this job what is so. Whoever records something soon after, and
    refreshes them then, need not have them written twice."""
    agreement = project_agreement(workspace, workspace.project())
    if not all(view_status(workspace, job, workspace.ledger.read(job.id), agreement)):
        update_views(workspace, job)


def update_views(workspace: Workspace, *jobs: Job) -> None:
    """Bring the views up to date with these jobs and with what is above them. No other plan or chain is read, unless
    the views don't know its job yet."""
    workspace.prepare()
    with locked(_lock(workspace)):
        # Read now: others may have written since the caller did, and what they made of the views must not be undone.
        looked = _look(workspace)
        project = looked.project
        board = decode_board(_bytes(dashboard_path(workspace)))
        if board is None:
            _write(workspace, _whole(looked))
            return
        chains = {job.id: workspace.ledger.read(job.id) for job in jobs}
        records = {
            job.id: _record(workspace, workspace.job_at(job.path), chains[job.id], looked.agreement) for job in jobs
        }
        records, unread = _joined(looked, board, records)
        above = {path for job in jobs for path in parent_plans(workspace, job)} | {project.path}
        names = [*chains, *(_chain_name(workspace, path) for path in sorted(above))]
        events = [event for event in board.events if event.chain not in names]
        events += [event for name in names for event in _events(name, chains.get(name) or workspace.ledger.read(name))]
        _write(workspace, board_of(looked.about, records, events, unread, STATUSES))


def rebuild_views(workspace: Workspace) -> Board:
    """Make the views anew, from every plan and every chain; what has not changed since the last time is not read."""
    workspace.prepare()
    with locked(_lock(workspace)):
        board = _whole(_look(workspace))
        _write(workspace, board)
    return board


def jobs_shown_open(workspace: Workspace) -> frozenset[str]:
    """The jobs that the dashboard shows as neither done nor cancelled."""
    board = decode_board(_bytes(dashboard_path(workspace)))
    jobs = {} if board is None else board.jobs
    return frozenset(name for name, one in jobs.items() if one.status not in ("done", "cancelled"))


def dashboard_path(workspace: Workspace, suffix: str = "json") -> Path:
    return workspace.base / "outputs" / f"dashboard.{suffix}"


def _look(workspace: Workspace) -> _Looked:
    project = workspace.project()
    return _Looked(workspace, project, project_agreement(workspace, project))


def _joined(
    looked: _Looked, board: Board, made: Mapping[str, JobRow]
) -> tuple[dict[str, JobRow], tuple[UnreadableJob, ...]]:
    """All records: those that were made now, those that stand there, and those of jobs that are new to the views.

    Jobs whose folders are gone are nobody's any more.
    """
    workspace = looked.workspace
    records: dict[str, JobRow] = {}
    unread: list[UnreadableJob] = []
    for folder, name in workspace.names():
        identifier = id_in(name)
        known = None if identifier is None else made.get(identifier) or board.jobs.get(identifier)
        path = None if known is not None else folder / name / PLAN
        if known is not None:
            records[known.id] = known
        elif path is not None and (identifier is not None or path.is_file()):
            try:
                job = workspace.job_at(path)
                chain = workspace.ledger.read(job.id)
                records[job.id] = made.get(job.id) or _record(workspace, job, chain, looked.agreement)
            except (DonewhenError, OSError) as error:
                unread.append(_unread(workspace, path, error))
    return records, tuple(unread)


def _whole(looked: _Looked) -> Board:
    workspace = looked.workspace
    seen = {one.path: one for one in survey_jobs(workspace).jobs}
    records: dict[str, JobRow] = {}
    unread: list[UnreadableJob] = []
    homes: dict[Path, JobHome] = {}
    with FileIndex(workspace.folder / "cache" / "dashboard.sqlite") as index:
        for place in workspace.places():
            one = seen.get(place.path)
            try:
                if one is None:
                    # Read once more, it says why it can't be read; or it can by now.
                    job = workspace.job_at(place.path)
                    made = _record(workspace, job, workspace.ledger.read(job.id), looked.agreement)
                else:
                    made = _remembered(workspace, index, one, homes)
                records[made.id] = made
            except (DonewhenError, OSError) as error:
                unread.append(_unread(workspace, place.path, error))
        events = _newest_events(workspace, index)
    return board_of(looked.about, records, events, unread, STATUSES)


def _remembered(workspace: Workspace, index: FileIndex, job: JobRecord, homes: dict[Path, JobHome]) -> JobRow:
    where = workspace.where(job.path)
    plan = index.remembered(
        f"dashboard plan {__version__} {where}",
        job.path,
        lambda raw: msgspec.to_builtins(plan_part(read_job(parse_document(raw, where), job.path, where))),
    )
    chain = _chain_data(workspace, index, job.id) if job.events else {}
    above = job.path.parent.parent.parent
    if above not in homes:
        homes[above] = _place(workspace, job.path)
    return record_of(
        msgspec.convert(plan, PlanPart),
        msgspec.convert(chain.get("part", {}), ChainPart),
        msgspec.structs.replace(homes[above], path=where),
        job.agreement,
        [one.field for one in job.tampered],
    )


def _chain_data(workspace: Workspace, index: FileIndex, name: str) -> dict[str, object]:
    """What is shown of a chain, and when it was last written to."""

    def read(raw: bytes) -> dict[str, object]:
        entries = verify_chain(name, raw).entries
        part = msgspec.to_builtins(chain_part(name, entries))
        return {"part": part, "newest": str(entries[-1].at) if entries else ""}

    path = workspace.folder / "ledger" / f"{name}.jsonl"
    found: dict[str, object] = index.remembered(f"dashboard chain {__version__} {name}", path, read)
    return found


def _newest_events(workspace: Workspace, index: FileIndex) -> list[EventRow]:
    """The newest events of all chains. Those that were written to last have them all, so no others are read."""
    newest: list[tuple[str, str]] = []
    for name in workspace.ledger.chains():
        with suppress(OSError):
            newest.append((str(_chain_data(workspace, index, name)["newest"]), name))
    chosen = [name for _, name in sorted(newest)[-EVENTS:]]
    return [event for name in chosen for event in _events(name, workspace.ledger.read(name))]


def _record(workspace: Workspace, job: Job, chain: Chain, project: Agreement) -> JobRow:
    tampered = mismatches(job.document.fields, chain.entries) if chain.entries else ()
    return record_of(
        plan_part(job),
        chain_part(job.id, chain.entries),
        _place(workspace, job.path),
        job_agreement(job, chain, project).state,
        [one.field for one in tampered],
    )


def _place(workspace: Workspace, path: Path) -> JobHome:
    where = workspace.where(path)
    if workspace.form == "small":
        return JobHome(where)
    above = path.parent.parent.parent
    try:
        fields = workspace.read(above / PLAN).fields
    except DonewhenError:
        fields = {}
    name, title = (one_line(str(fields.get(one) or "")) for one in ("id", "title"))
    return JobHome(where, name or one_line(above.name), title)


def _chain_name(workspace: Workspace, path: Path) -> str:
    try:
        return str(workspace.read(path).fields.get("id") or path.parent.name)
    except DonewhenError:
        return path.parent.name


def _events(name: str, chain: Chain) -> list[EventRow]:
    return [event_of(name, entry) for entry in chain.entries[-EVENTS:]]


def _unread(workspace: Workspace, path: Path, error: DonewhenError | OSError) -> UnreadableJob:
    told = error.message if isinstance(error, DonewhenError) else f"It can't be read: {error.strerror}."
    return UnreadableJob(one_line(workspace.where(path)), one_line(told, 300))


def _write(workspace: Workspace, board: Board) -> None:
    """Write what does not stand there already. Nobody's file elsewhere is overwritten because a link points to it."""
    (workspace.base / "outputs").mkdir(exist_ok=True)
    path = tracker_path(workspace)
    data = encode_board(board)
    content = {
        path: render_tracker(board.jobs.values(), read_tracker(_bytes(path)).notes),
        dashboard_path(workspace): data,
        dashboard_path(workspace, "html"): render_dashboard(board, data),
    }
    for one, new in content.items():
        if _bytes(one) != new:
            workspace.put(one, new)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _lock(workspace: Workspace) -> Path:
    return workspace.folder / "state" / "locks" / "views.lock"
