"""What people have said about jobs, read from the ledger for an agent that asks."""

from __future__ import annotations

from collections.abc import Iterator

from donewhen.jobs.board.open_jobs import find_open_jobs
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.words_of_people import words_of_people


def words_about_job(workspace: Workspace, job: str) -> tuple[str, ...]:
    """What people have said about a job since it was last completed, oldest first."""
    words = words_of_people(job, workspace.ledger.read(job).entries, approval_policy(workspace))
    return tuple(said.text for said in words)


def new_words(workspace: Workspace) -> Iterator[str]:
    """What people have answered about open jobs, as long as nobody has gone on with them, with the job first."""
    policy = approval_policy(workspace)
    for job in find_open_jobs(workspace).names:
        entries = workspace.ledger.read(job).entries
        answer = history_of(job, entries, policy).answer
        if answer is not None:
            words = words_of_people(job, entries, policy)
            yield from (f"{job}: {said.text}" for said in words if said.entry.seq >= answer.seq)
