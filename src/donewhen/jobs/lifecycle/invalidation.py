"""When something that others were built on changes, they are not done any more: all of them, however far down."""

from __future__ import annotations

from typing import NamedTuple

from donewhen.jobs.board.survey import Survey, survey_jobs
from donewhen.jobs.board.validity import Validity, ValidityChecker
from donewhen.jobs.board.views import update_views
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.ledger import Actor, Entry
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import finish_interrupted_write, record_and_project


class InvalidatedJob(NamedTuple):
    """A job that is not done any more, and the chain of jobs through which."""

    id: str
    chain: tuple[str, ...]
    why: str
    entry: Entry | None = None


def find_invalid_jobs(workspace: Workspace, policy: Policy, seen: Survey) -> tuple[InvalidatedJob, ...]:
    """Jobs that say done and were done on something that has changed since, as far as the look at all jobs tells."""
    return _invalid(
        ValidityChecker(workspace, policy, known={job.id: job.built for job in seen.jobs if job.built}), seen
    )


def _invalid(validities: ValidityChecker, seen: Survey) -> tuple[InvalidatedJob, ...]:
    # By the ledger, too: a plan in which somebody has typed something else hides nothing.
    found = [(job.id, validities.of(job.id)) for job in seen.jobs if "done" in (job.status, job.recorded)]
    return tuple(InvalidatedJob(name, (name, *one.chain), one.why) for name, one in found if _is_invalid(one))


def invalidate_jobs(workspace: Workspace, policy: Policy, by: Actor) -> tuple[InvalidatedJob, ...]:
    """Put on record which done jobs are not done any more, and set them back to work."""
    recorded = []
    seen = survey_jobs(workspace)
    # The look chooses whom to ask; the answers come from the files.
    asked = ValidityChecker(workspace, policy, places={job.id: job.path for job in seen.jobs})
    for one in _invalid(asked, seen):
        path = workspace.place(one.id).path
        with workspace.locked(path):
            entries = workspace.ledger.read(one.id).entries
            document = finish_interrupted_write(workspace, workspace.read(path), path, entries)
            if history_of(one.id, entries, policy).completed is None:
                continue
            writes: dict[str, Value] = {"status": "in_progress", "completed_at": "", "updated_at": workspace.now()}
            data = {"chain": list(one.chain), "why": one.why}
            entry, _ = record_and_project(workspace, one.id, document, path, "invalidated", data, Approval(by), writes)
        update_views(workspace, workspace.job_at(path))
        recorded.append(one._replace(entry=entry))
    return tuple(recorded)


def _is_invalid(validity: Validity) -> bool:
    return validity.state == "invalid"
