"""The task tracker and the dashboard: plans and ledger for people and spreadsheets. Every command that writes updates
them, one job at a time, so that the cost does not grow with the number of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from donewhen.dashboard.data import (
    Board,
    JobRow,
    decode_board,
    encode_board,
)
from donewhen.dashboard.seal import is_as_written, is_foreign, page_matches
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_limited
from donewhen.foundation.locks import locked
from donewhen.foundation.size_limits import VIEW
from donewhen.jobs.board.board_rows import (
    ProjectState,
    board_in_context,
    events_of,
    job_row,
    merge_rows,
    name_of_chain,
    read_project_state,
)
from donewhen.jobs.board.row_states import row_dependencies, row_in_context
from donewhen.jobs.board.tracker import TrackerRows, read_tracker, render_tracker, row_of, tracker_path
from donewhen.jobs.contract.agreement import Agreement, project_agreement
from donewhen.jobs.ledger.approval import is_ci
from donewhen.jobs.ledger.entries import Chain
from donewhen.jobs.plan.generated_files import keep_out_of_git
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.snapshot import Snapshot
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.parents import parent_plans


class ViewFact(NamedTuple):
    """Whether tracker and dashboard are good for a job: current, and not edited by hand."""

    tracker: bool
    dashboard: bool
    left_out: str = ""
    """Why they don't count, if they don't."""

    @property
    def good(self) -> bool:
        return bool(self.left_out) or (self.tracker and self.dashboard)


class _Seen(NamedTuple):
    """The files as they are now, and what they should say about a job."""

    data: bytes
    board: Board | None
    expected: JobRow
    table: TrackerRows
    fact: ViewFact


def view_status(workspace: Workspace, job: Job, chain: Chain, project: Agreement) -> ViewFact:
    """Whether the views match the plan and the chain of this job. Renders nothing."""
    if is_ci():
        return ViewFact(tracker=False, dashboard=False, left_out="not in CI, where nobody reads them")
    fact = _look(workspace, job, chain, project).fact
    if fact.good or _were_written(workspace):
        return fact
    no_tracker = not tracker_path(workspace).exists()
    no_dashboard = not any(dashboard_path(workspace, suffix).exists() for suffix in ("json", "html"))
    if no_tracker and no_dashboard:
        return fact._replace(left_out="not written in this clone yet")
    return ViewFact(fact.tracker or no_tracker, fact.dashboard or no_dashboard)


def update_stale_views(workspace: Workspace, job: Job) -> ViewFact:
    """Update the views if they are not current for this job. Returns which of them were as donewhen wrote them, before
    anything was rewritten. A caller that records an entry and updates the views soon after does not need this."""
    agreement = project_agreement(workspace, workspace.project())
    seen = _look(workspace, job, workspace.ledger.read(job.id), agreement)
    if seen.fact.good:
        return seen.fact
    intact = _intact_views(workspace, job, seen)
    # Views that can't be rebuilt are not current afterwards, which costs points, but no view decides anything.
    with suppress(OSError, DonewhenError):
        update_views(workspace, job)
    return intact


def _look(workspace: Workspace, job: Job, chain: Chain, project: Agreement) -> _Seen:
    raw = _read_bytes(dashboard_path(workspace))
    board = decode_board(raw)
    expected = job_row(workspace, job, chain, project)
    if board is not None:
        # By the rows of the other jobs on the same board, so that a row of another job makes no difference here.
        expected = row_in_context(expected, project.state, row_dependencies(board.jobs, board.unread))
    in_dashboard = board is not None and board.jobs.get(job.id) == expected
    page_current = in_dashboard and page_matches(_read_bytes(dashboard_path(workspace, "html")), raw)
    table = read_tracker(_read_bytes(tracker_path(workspace)))
    fact = ViewFact(table.sound and table.get(job.id) == row_of(expected), page_current)
    return _Seen(raw, board, expected, table, fact)


def _intact_views(workspace: Workspace, job: Job, seen: _Seen) -> ViewFact:
    """Whether each view is as donewhen wrote it: outdated perhaps, but neither edited nor removed by hand.

    The page holds its own hash and the data, so it shows whether it or the data was edited; the tracker has to say what
    the data says, except for the notes of people.
    """
    page = _read_bytes(dashboard_path(workspace, "html"))
    written = is_as_written(page, seen.data)
    ours = _were_written(workspace)
    unknown = not (page or seen.data) or is_foreign(page)
    dashboard = not ours if unknown else written
    if not _read_bytes(tracker_path(workspace)):
        return ViewFact(not ours, dashboard)
    if not (written or ours):
        # Of another tool: there is nothing to compare it with.
        return ViewFact(True, dashboard)
    row = None if seen.board is None else seen.board.jobs.get(job.id)
    known = None if row is None else row_of(row)
    said = seen.table.get(job.id)
    tracker = seen.table.sound and (said == row_of(seen.expected) or (written and said == known))
    return ViewFact(tracker, dashboard)


def _were_written(workspace: Workspace) -> bool:
    """Whether the views were ever written in this clone: git ignores the lock of those who write them."""
    return _lock_path(workspace).exists()


def update_views(workspace: Workspace, *jobs: Job) -> None:
    """Update the views for these jobs and their parents. No other plan or chain is read, unless its job is missing
    from the views."""
    workspace.prepare()
    with locked(_lock_path(workspace)):
        # Read inside the lock: other processes may have updated the views, and their changes must not be lost.
        if isinstance(workspace, Snapshot):
            workspace.forget_changed()
        project_state = read_project_state(workspace)
        project = project_state.project
        board = decode_board(_read_bytes(dashboard_path(workspace)))
        if board is None:
            _write_views(workspace, _build_board(project_state))
            return
        chains = {job.id: workspace.ledger.read(job.id) for job in jobs}
        records = {
            job.id: job_row(workspace, workspace.job_at(job.path), chains[job.id], project_state.agreement)
            for job in jobs
        }
        records, unread = merge_rows(project_state, board, records)
        parents = {path for job in jobs for path in parent_plans(workspace, job)} | {project.path}
        names = [*chains, *(name_of_chain(workspace, path) for path in sorted(parents))]
        events = [event for event in board.events if event.chain not in names]
        events += [
            event for name in names for event in events_of(name, chains.get(name) or workspace.ledger.read(name))
        ]
        _write_views(workspace, board_in_context(project_state, records, events, unread, board))


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
        board = _build_board(read_project_state(workspace))
        _write_views(workspace, board)
    return board


def read_board(workspace: Workspace) -> Board:
    """Return the board as the plans and the ledger are now, without writing a view."""
    return _build_board(read_project_state(workspace))


def open_jobs_on_dashboard(workspace: Workspace) -> frozenset[str]:
    """The jobs that the dashboard shows as neither done nor cancelled."""
    board = decode_board(_read_bytes(dashboard_path(workspace)))
    jobs = {} if board is None else board.jobs
    return frozenset(name for name, job in jobs.items() if job.status not in ("done", "cancelled"))


def dashboard_path(workspace: Workspace, suffix: str = "json") -> Path:
    return workspace.base / "outputs" / f"dashboard.{suffix}"


def _build_board(project_state: ProjectState) -> Board:
    # Imported where it is used: a command that changes one job updates its row only.
    from donewhen.jobs.board.whole_board import build_board

    return build_board(project_state)


def _write_views(workspace: Workspace, board: Board) -> None:
    """Write the views that changed. Links are not followed, so no file outside the project is overwritten."""
    # Imported only to write: gates and hooks import this module, and never render a page.
    from donewhen.dashboard.page import render_dashboard

    keep_out_of_git(workspace, workspace.base / "outputs")
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
