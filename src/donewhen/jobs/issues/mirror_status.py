"""Whether a job's GitHub issue matches the job, according to the ledger; GitHub is not contacted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.issues.issue_text import IssueContent, expected_issue, first_difference, milestone_title
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Mirrored
from donewhen.jobs.plan.job import STATUSES, FieldError, Job, Project, Status
from donewhen.jobs.plan.workspace import PLAN, Workspace
from donewhen.jobs.record.projection import expected_fields


class MirrorFact(NamedTuple):
    """Whether the job's GitHub issue matched the job at the last sync."""

    enabled: bool
    current: bool
    why: str = ""


class Wave(NamedTuple):
    """A wave of the project's plan; it is mirrored as a milestone."""

    id: str
    milestone: str
    end: str
    """Its last day, as written in the plan; empty if not set."""


def expected_issue_of(workspace: Workspace, project: Project, job: Job, entries: Sequence[Entry]) -> IssueContent:
    """The expected issue of a job. Its status comes from the ledger, not from the plan file."""
    workstream = None
    if workspace.form == "big":
        path = job.folder.parent.parent / PLAN
        workstream = str(workspace.read(path).fields.get("title") or path.parent.name)
    wave = str(job.document.fields.get("wave_id") or "")
    milestone = next((known.milestone for known in waves_of(project) if known.id == wave), "")
    job = replace(job, status=_recorded_status(entries))
    return expected_issue(job, workspace.where(job.path), workstream, milestone)


def waves_of(project: Project) -> tuple[Wave, ...]:
    """The waves in the project's plan."""
    listed = project.document.fields.get("waves")
    if listed in (None, "", [], {}):
        return ()
    if not isinstance(listed, list):
        raise _waves_error(project, "must be a list of waves, each with id, title, start and end")
    waves: list[Wave] = []
    for item in listed:
        if not isinstance(item, dict) or not item.get("id") or isinstance(item["id"], list | dict):
            raise _waves_error(project, "has a wave without an id")
        name = str(item["id"])
        if any(name == wave.id for wave in waves):
            raise _waves_error(project, f"has the wave {one_line(name, 60)} twice")
        waves.append(Wave(name, milestone_title(name, str(item.get("title") or "")), str(item.get("end") or "")))
    return tuple(waves)


def mirror_fact(workspace: Workspace, project: Project, job: Job, entries: Sequence[Entry]) -> MirrorFact:
    """Whether the issue as seen at the last sync matches the job, and otherwise what differs."""
    if not project.github_enabled:
        return MirrorFact(enabled=False, current=False, why="mirroring is off")
    newest = newest_mirror_entry(entries)
    if newest is None:
        return MirrorFact(enabled=True, current=False, why="never mirrored")
    try:
        why = _difference(workspace, project, job, newest, entries)
    except DonewhenError as error:
        # An error in another plan must not make this job unreadable.
        why = error.message
    number = newest.read_as(Mirrored).number
    return MirrorFact(enabled=True, current=not why, why=why or f"issue {number} matches the plan")


def mirror_entry_text(mirrored: Mirrored) -> str:
    """Describe a ``mirrored`` entry in one line."""
    issue = mirrored.observed
    state = issue.get("state", "").replace("_", " ")
    result = "matches the plan" if mirrored.observed == mirrored.wanted else "does not match the plan"
    content = f"has status {issue.get('status') or 'none'}, {state if state == 'open' else f'closed as {state}'}"
    return one_line(f"issue {mirrored.number} in {mirrored.repo} {content}: {result}")


def newest_mirror_entry(entries: Iterable[Entry]) -> Entry | None:
    """The newest entry about a job's issue."""
    return next((entry for entry in reversed(tuple(entries)) if entry.type == "mirrored"), None)


def _difference(workspace: Workspace, project: Project, job: Job, newest: Entry, entries: Sequence[Entry]) -> str:
    mirrored = newest.read_as(Mirrored)
    if project.github_repo and project.github_repo.casefold() not in mirrored_to(mirrored):
        return f"it was mirrored to another repository, {one_line(mirrored.repo, 140)}"
    wanted = expected_issue_of(workspace, project, job, entries).marks()
    return first_difference(wanted, mirrored.wanted, mirrored.observed)


def mirrored_to(mirrored: Mirrored) -> frozenset[str]:
    """The names of the repository that an issue was written to, in lower case: its own, and the one asked for."""
    return frozenset((mirrored.repo.casefold(), (mirrored.asked_for or "").casefold()))


def _recorded_status(entries: Sequence[Entry]) -> Status:
    """The status according to the ledger; what was only typed into a plan has happened nowhere."""
    recorded = expected_fields(entries)["status"]
    return next((status for status in STATUSES if status == recorded), "planned")


def _waves_error(project: Project, problem: str) -> FieldError:
    line = project.document.line_of("waves")
    return FieldError(f"waves {problem}.", where=f"{project.path.name}:{line}" if line else project.path.name)
