"""Keeps the workstream and the project of a job in progress while the job is not done."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor, EventKind
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.ids import id_in, is_parent
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import PLAN, JobPlace, Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.writing import writing


def parent_plans(workspace: Workspace, job: Job) -> Iterator[Path]:
    """The plan files of the job's workstream, if any, and of the project."""
    if workspace.form == "big":
        yield job.folder.parent.parent / PLAN
    yield workspace.project_file


def chain_name(workspace: Workspace, path: Path) -> str:
    """The name of the chain of a workstream or project."""
    return str(workspace.read(path).fields.get("id") or path.parent.name)


def ids_of_places(workspace: Workspace, places: Iterable[JobPlace]) -> dict[str, Path]:
    """The ids of jobs with their plan files. Of a folder whose name does not say the id, the plan does."""
    ids: dict[str, Path] = {}
    for place in places:
        identifier = place.id
        if id_in(identifier) is None:
            with suppress(DonewhenError):
                identifier = workspace.job_at(place.path).id
        ids[identifier] = place.path
    return ids


def jobs_below(workspace: Workspace, parent: str) -> tuple[str, ...]:
    """The jobs of the project or workstream with this id."""
    places = [*workspace.places()]
    if parent != workspace.project().id:
        streams = [
            folder for folder in workspace.workstream_folders() if chain_name(workspace, folder / PLAN) == parent
        ]
        places = [place for place in places if any(place.path.is_relative_to(folder) for folder in streams)]
    return tuple(ids_of_places(workspace, places))


def chains_without_plan(workspace: Workspace, known: Container[str], project: str) -> tuple[str, ...]:
    """The jobs that the ledger has, but no folder: deleting a job's folder does not make it done."""
    return tuple(chain for chain in workspace.ledger.chains() if chain not in known and not is_parent(chain, project))


def mark_parents_in_progress(workspace: Workspace, job: Job, policy: Policy, by: Actor, *, begin: bool = True) -> None:
    """Record the workstream and the project of a job as in progress, also if they were done before.

    Without ``begin``, only those that were done are changed.
    """
    for path in parent_plans(workspace, job):
        with writing(workspace, path) as parent:
            history = history_of(parent.chain_name, parent.entries, policy)
            if history.completed is None and (history.status == "in_progress" or not begin):
                continue
            kind: EventKind = "started" if history.completed is None else "invalidated"
            writes: dict[str, Value] = {"status": "in_progress", "completed_at": "", "updated_at": workspace.now()}
            parent.append(kind, {"job": job.id}, Approval(by), writes)
