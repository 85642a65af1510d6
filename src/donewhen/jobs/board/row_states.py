"""The states of the jobs on the dashboard, each with its project and its dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import cast

import msgspec

from donewhen.dashboard.data import Board, JobRow, StateRow, UnreadableJob
from donewhen.jobs.board.job_state import JobState, StateWord, in_context
from donewhen.jobs.board.recorded_dependencies import RecordedDependencies, RecordedJob
from donewhen.jobs.contract.agreement import AgreementState
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.ids import id_in


def rows_in_context(
    rows: Mapping[str, JobRow],
    unread: Sequence[UnreadableJob],
    project: AgreementState,
    before: Board | None = None,
) -> dict[str, JobRow]:
    """The rows with the states that the jobs have in their project and with their dependencies.

    ``before`` is the board that unchanged rows are from: only what a change can reach is put in context again.
    """
    names: Iterable[str] = rows
    if before is not None and before.project.agreement == project and before.unread == tuple(unread):
        names = _reached_by_changes(rows, before.jobs)
    dependencies = row_dependencies(rows, unread)
    return {**rows, **{name: row_in_context(rows[name], project, dependencies) for name in names}}


def _reached_by_changes(rows: Mapping[str, JobRow], before: Mapping[str, JobRow]) -> set[str]:
    """The rows that differ from those before, and the rows that depend on a row that changed or is gone."""
    dependents: dict[str, list[str]] = {}
    for name, row in rows.items():
        for dependency in row.depends_on:
            dependents.setdefault(dependency, []).append(name)
    left = [name for name, row in rows.items() if before.get(name) is not row]
    left += before.keys() - rows.keys()
    reached: set[str] = set()
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += dependents.get(name, ())
    return reached & rows.keys()


def row_in_context(row: JobRow, project: AgreementState, dependencies: RecordedDependencies) -> JobRow:
    """The same for one row."""
    dependency = dependencies.code(row.id, row.depends_on) if row.depends_on else None
    if row.alone is None and dependency is None and project == "agreed":
        return row
    alone = row.alone or StateRow(row.state, row.code, row.next_command)
    # The words of a file that anybody can edit are not checked: they are only passed on.
    own = JobState(cast(StateWord, alone.state), cast(GateCode, alone.code) if alone.code else None, alone.next_command)
    state = in_context(row.id, own, project, dependency)
    now = StateRow(state.word, state.code or "", state.next)
    if (now.state, now.code, now.next_command) == (row.state, row.code, row.next_command):
        return row
    return msgspec.structs.replace(
        row, state=now.state, code=now.code, next_command=now.next_command, alone=None if now == alone else alone
    )


def row_dependencies(rows: Mapping[str, JobRow], unread: Iterable[UnreadableJob]) -> RecordedDependencies:
    """The dependencies of jobs, by the rows of the others."""

    def find(name: str) -> RecordedJob | None:
        row = rows.get(name)
        return None if row is None else RecordedJob(bool(row.receipt), row.depends_on)

    folders = (PurePath(job.where).parent.name for job in unread)
    return RecordedDependencies(find, (name for folder in folders if (name := id_in(folder))))
