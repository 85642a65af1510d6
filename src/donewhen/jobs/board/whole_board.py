"""The dashboard of all jobs, from every plan and every chain; unchanged files come from the cache."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from donewhen import __version__
from donewhen.dashboard.data import (
    EVENTS,
    Board,
    ChainPart,
    EventRow,
    JobRow,
    PlanPart,
    UnreadableJob,
)
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.size_limits import LEDGER_CHAIN, PLAN_FILE
from donewhen.jobs.board.board_rows import ProjectState, board_in_context, events_of, job_home, job_row, unreadable_job
from donewhen.jobs.board.board_states import survey_own_state
from donewhen.jobs.board.dashboard_record import JobHome, chain_part, plan_part, record_of
from donewhen.jobs.board.file_index import FileIndex
from donewhen.jobs.board.survey import JobRecord, survey_jobs
from donewhen.jobs.ledger.entries import verify_chain
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.job import read_job
from donewhen.jobs.plan.workspace import Workspace


def build_board(project_state: ProjectState) -> Board:
    """Build the board from every plan and every chain; unchanged files come from the cache."""
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
                    row = job_row(workspace, job, workspace.ledger.read(job.id), project_state.agreement)
                else:
                    row = _cached_row(workspace, index, record, homes)
                records[row.id] = row
            except (DonewhenError, OSError) as error:
                unread.append(unreadable_job(workspace, place.path, error))
        events = _newest_events(workspace, index)
    return board_in_context(project_state, records, events, unread)


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
        homes[workstream] = job_home(workspace, job.path)
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

    ledger = workspace.ledger
    path = ledger.path_of(name)
    if ledger.place_of(name) != path:
        # Its entries are in several files.
        entries = ledger.read(name).entries
        return {"newest": str(entries[-1].at) if entries else ""}
    data: dict[str, object] = index.get_or_read(f"dashboard chain {__version__} {name}", path, read, limit=LEDGER_CHAIN)
    return data


def _newest_events(workspace: Workspace, index: FileIndex) -> list[EventRow]:
    """The newest events of all chains. Only the most recently written chains are read, since they contain them all."""
    newest: list[tuple[str, str]] = []
    for name in workspace.ledger.chains():
        with suppress(OSError):
            newest.append((str(_chain_data(workspace, index, name)["newest"]), name))
    chosen = [name for _, name in sorted(newest)[-EVENTS:]]
    return [event for name in chosen for event in events_of(name, workspace.ledger.read(name))]
