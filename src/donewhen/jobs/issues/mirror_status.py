"""Whether a job's issue on GitHub says what the job says, by the record: nobody is asked, no typed number counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.issues.issue_text import IssueContent, first_difference, milestone_title, wanted_issue
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.job import STATUSES, FieldError, Job, Project, Status
from donewhen.jobs.plan.workspace import PLAN, Workspace
from donewhen.jobs.record.projection import expected_fields, unproved_claims


class MirrorFact(NamedTuple):
    """Whether the job's issue on GitHub says what the job says, by what was seen at the last sync."""

    enabled: bool
    current: bool
    why: str = ""


class Wave(NamedTuple):
    """A wave of the project's plan, which is a milestone on GitHub."""

    id: str
    milestone: str
    end: str
    """The day on which it ends, as the plan writes it; empty where it does not say."""


def wanted_issue_of(workspace: Workspace, project: Project, job: Job, entries: Sequence[Entry]) -> IssueContent:
    """What the job's issue should be now. Its status is that of the chain: a typed one is announced to nobody."""
    workstream = None
    if workspace.form == "big":
        path = job.folder.parent.parent / PLAN
        workstream = str(workspace.read(path).fields.get("title") or path.parent.name)
    wave = str(job.document.fields.get("wave_id") or "")
    milestone = next((one.milestone for one in waves_of(project) if one.id == wave), "")
    shown = replace(job, status=_status(job, entries))
    return wanted_issue(shown, workspace.where(job.path), workstream, milestone)


def waves_of(project: Project) -> tuple[Wave, ...]:
    """The waves in the project's plan."""
    listed = project.document.fields.get("waves")
    if listed in (None, "", [], {}):
        return ()
    if not isinstance(listed, list):
        raise _wrong(project, "must be a list of waves, each with id, title, start and end")
    found: list[Wave] = []
    for one in listed:
        if not isinstance(one, dict) or not one.get("id") or isinstance(one["id"], list | dict):
            raise _wrong(project, "has a wave without an id")
        name = str(one["id"])
        if any(name == other.id for other in found):
            raise _wrong(project, f"has the wave {one_line(name, 60)} twice")
        found.append(Wave(name, milestone_title(name, str(one.get("title") or "")), str(one.get("end") or "")))
    return tuple(found)


def mirror_fact(workspace: Workspace, project: Project, job: Job, entries: Sequence[Entry]) -> MirrorFact:
    """Whether what was seen on GitHub at the last sync is what is wanted now, and else what differs."""
    if not project.github_enabled:
        return MirrorFact(enabled=False, current=False, why="mirroring is off")
    newest = newest_mirror_entry(entries)
    if newest is None:
        return MirrorFact(enabled=True, current=False, why="never mirrored")
    try:
        why = _lacking(workspace, project, job, newest, entries)
    except DonewhenError as error:
        # A mistake in another plan must not keep anybody from looking at this job.
        why = error.message
    number = newest.data.get("number")
    return MirrorFact(enabled=True, current=not why, why=why or f"issue {number} says what the plan says")


def mirror_entry_text(data: Mapping[str, Any]) -> str:
    """An entry about a job's issue in one sentence."""
    seen = data.get("observed")
    shown: Mapping[str, Any] = seen if isinstance(seen, Mapping) else {}
    state = str(shown.get("state", "")).replace("_", " ")
    as_wanted = "as wanted" if data.get("observed") == data.get("wanted") else "not as wanted"
    says = f"says {shown.get('status') or 'no status'}, {state if state == 'open' else f'closed as {state}'}"
    return one_line(f"issue {data.get('number')} in {data.get('repo')} {says}: {as_wanted}")


def newest_mirror_entry(entries: Iterable[Entry]) -> Entry | None:
    """The newest entry about a job's issue."""
    return next((entry for entry in reversed(tuple(entries)) if entry.type == "mirrored"), None)


def _lacking(workspace: Workspace, project: Project, job: Job, newest: Entry, entries: Sequence[Entry]) -> str:
    there = {str(newest.data.get(name) or "").casefold() for name in ("repo", "asked_for")}
    if project.github_repo and project.github_repo.casefold() not in there:
        return f"it was mirrored to another repository, {one_line(str(newest.data.get('repo')), 140)}"
    wanted = wanted_issue_of(workspace, project, job, entries).marks()
    return first_difference(wanted, _table(newest, "wanted"), _table(newest, "observed"))


def _status(job: Job, entries: Sequence[Entry]) -> Status:
    """What the record says, or would say with its first entry."""
    said = (
        expected_fields(entries)["status"]
        if entries
        else unproved_claims(job.document.fields).get("status", job.status)
    )
    return next((one for one in STATUSES if one == said), "planned")


def _table(entry: Entry, name: str) -> Mapping[str, str]:
    found = entry.data.get(name)
    return found if isinstance(found, Mapping) else {}


def _wrong(project: Project, problem: str) -> FieldError:
    line = project.document.line_of("waves")
    return FieldError(f"waves {problem}.", where=f"{project.path.name}:{line}" if line else project.path.name)
