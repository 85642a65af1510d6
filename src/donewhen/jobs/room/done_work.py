"""The work of jobs that are done belongs to the tree of later jobs, as it was judged then."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from donewhen.foundation.files import read_whole
from donewhen.foundation.git_objects import TreeFile
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.ledger.entry_content import Completed
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.room.room_plan import Change, RoomPlan
from donewhen.jobs.room.work_area import JudgingFiles


def files_of_done_jobs(workspace: Workspace, job: Job, plan: RoomPlan, judges: JudgingFiles) -> dict[str, TreeFile]:
    """Of the changes that are not in the first run, those that a done job has made (see ``files_made_by``)."""
    return files_made_by(_recorded_work(workspace, job, [*plan.outside]), plan, judges)


def files_made_by(made: Iterable[tuple[str, str]], plan: RoomPlan, judges: JudgingFiles) -> dict[str, TreeFile]:
    """Of the changes that are not in the first run, those that other jobs have made; ``made`` are names with the names
    of their contents. What of them judges this job is not among them: a person decides about it."""
    open_changes = {change.name: change for change in plan.outside}
    found: dict[str, TreeFile] = {}
    for name, blob in made:
        change = open_changes.get(name)
        if change is not None and change.blob == blob and blob and not judges.judges(name):
            found[name] = plan.whole[name]
    return found


def _recorded_work(workspace: Workspace, job: Job, changes: list[Change]) -> Iterator[tuple[str, str]]:
    """The files of done jobs that have the content of one of these changes."""
    wanted = [change.blob.encode() for change in changes if change.blob]
    if not wanted:
        return
    ledger = workspace.ledger
    policy = approval_policy(workspace)
    for chain in ledger.chains():
        if chain == job.id:
            continue
        # Thousands of chains: only those that mention one of the contents are parsed.
        try:
            path = ledger.path_of(chain)
            if os.path.islink(path):  # noqa: PTH114
                continue
            raw = read_whole(path)
        except OSError:
            continue
        if not any(blob in raw for blob in wanted):
            continue
        done = history_of(chain, ledger.read(chain).entries, policy).completed
        if done is not None:
            yield from done.read_as(Completed).work.items()
