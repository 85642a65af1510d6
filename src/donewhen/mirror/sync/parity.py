"""Compare each issue with what it should be, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.issues.issue_text import STATUS_LABEL, WORKSTREAM_LABEL, IssueContent, State, begin_mark, end_mark
from donewhen.jobs.plan.job import STATUSES
from donewhen.mirror.http.github_api import Issue, MovedIssue

Field = Literal["issue", "title", "body", "status", "workstream", "milestone", "state"]


class Gap(NamedTuple):
    """A field in which an issue differs from what it should be."""

    job: str
    field: Field
    wanted: str
    found: str
    told: str
    number: int | None = None


class Target(NamedTuple):
    """A job and the content its issue should have."""

    job: str
    wanted: IssueContent
    milestones: frozenset[str]
    """The milestones that this project manages."""


class AbsentIssue(NamedTuple):
    """The job has no issue, and why."""

    why: str


class UnclearIssue(NamedTuple):
    """The number exists but can't be identified as the job's issue; a person has to decide."""

    why: str
    next: str


Found = Issue | AbsentIssue | MovedIssue | UnclearIssue


def seen_content(issue: Issue, target: Target) -> IssueContent:
    """Return the managed part of an issue. Labels and milestones that are not managed here are left out."""
    status, workstreams = _statuses(issue), _workstreams(issue)
    return IssueContent(
        title=issue.title,
        body=split_body(issue.body, target.job)[1],
        status=status[0].casefold().removeprefix(STATUS_LABEL) if len(status) == 1 else "",
        workstream=" ".join(sorted(workstream.casefold() for workstream in workstreams))
        if target.wanted.workstream
        else "",
        milestone=issue.milestone if issue.milestone in target.milestones else "",
        state=_state(issue),
    )


def surplus_labels(issue: Issue, wanted: IssueContent) -> tuple[str, ...]:
    """Return the managed labels that an issue should not have. Other labels are never touched."""
    managed = _statuses(issue) + (_workstreams(issue) if wanted.workstream else ())
    return tuple(label for label in managed if label.casefold() not in wanted.labels)


def _statuses(issue: Issue) -> tuple[str, ...]:
    known = {f"{STATUS_LABEL}{status}" for status in STATUSES}
    return tuple(label for label in issue.labels if label.casefold() in known)


def _workstreams(issue: Issue) -> tuple[str, ...]:
    return tuple(label for label in issue.labels if label.casefold().startswith(WORKSTREAM_LABEL))


def split_body(body: str, job: str) -> tuple[str, str, str]:
    """Split a body into before, managed block, after. The block is empty if one of its marks is missing."""
    begin, end = begin_mark(job), end_mark(job)
    start = body.find(begin)
    stop = body.find(end, start + len(begin)) if start >= 0 else -1
    if start < 0 or stop < 0:
        return body, "", ""
    stop += len(end)
    return body[:start], body[start:stop], body[stop:]


def merged_body(body: str, block: str, job: str) -> str:
    """Return the body with the managed block replaced; all other text is kept."""
    before, managed, after = split_body(body, job)
    if managed:
        return f"{before}{block}{after}"
    # A mark without its counterpart would be found in place of the new block.
    other_text = body.replace(begin_mark(job), "").replace(end_mark(job), "").strip()
    return f"{block}\n\n{other_text}" if other_text else block


def parity_gaps(target: Target, found: Found) -> tuple[Gap, ...]:
    """Return every difference between the issue and what it should be."""
    job = target.job
    if isinstance(found, AbsentIssue):
        if target.wanted.status == "cancelled":
            # A cancelled job needs no issue.
            return ()
        return (Gap(job, "issue", "an issue", "none", f"{job} has no issue: {found.why}."),)
    if isinstance(found, MovedIssue):
        return (
            Gap(job, "issue", "an issue here", found.where, f"The issue of {job} was transferred to {found.where}."),
        )
    if isinstance(found, UnclearIssue):
        return (Gap(job, "issue", "an issue", "something else", f"{job} has no identifiable issue: {found.why}."),)
    return tuple(_differences(job, target.wanted, seen_content(found, target), found.number))


def _differences(job: str, wanted: IssueContent, seen: IssueContent, number: int) -> Iterator[Gap]:
    issue = f"Issue {number} of {job}"
    if seen.title != wanted.title:
        yield Gap(job, "title", wanted.title, seen.title, f"{issue} is titled {_quoted(seen.title)}.", number)
    if seen.body != wanted.body:
        message = (
            f"{issue} lacks the managed block in its body." if not seen.body else _first_difference(issue, wanted, seen)
        )
        yield Gap(job, "body", wanted.body, seen.body, message, number)
    if seen.status != wanted.status:
        says = f"still says {seen.status}" if seen.status else "has no status label, or more than one"
        message = f"{issue} {one_line(says, 80)}, but the job is {wanted.status}."
        yield Gap(job, "status", wanted.status, seen.status, message, number)
    if seen.workstream != wanted.workstream:
        message = f"{issue} has {_label(seen.workstream)}, expected {_label(wanted.workstream)}."
        yield Gap(job, "workstream", wanted.workstream, seen.workstream, message, number)
    if seen.milestone != wanted.milestone:
        message = f"{issue} has {_milestone(seen.milestone)}, expected {_milestone(wanted.milestone)}."
        yield Gap(job, "milestone", wanted.milestone, seen.milestone, message, number)
    if seen.state != wanted.state:
        message = (
            f"{issue} is {_state_text(seen.state)}, expected {_state_text(wanted.state)}: the job is {wanted.status}."
        )
        yield Gap(job, "state", _state_text(wanted.state), _state_text(seen.state), message, number)


def _first_difference(issue: str, wanted: IssueContent, seen: IssueContent) -> str:
    """Describe the first line that differs."""
    actual, expected = seen.body.split("\n"), wanted.body.split("\n")
    line = next((n for n, pair in enumerate(zip(actual, expected, strict=False)) if pair[0] != pair[1]), None)
    if line is None:
        return f"{issue} has {len(actual)} lines in its managed block, expected {len(expected)}."
    return f"{issue} has {_quoted(actual[line])} in its managed block, expected {_quoted(expected[line])}."


def _state(issue: Issue) -> State:
    if issue.state == "open":
        return "open"
    # Other reasons, such as duplicate, don't mean that the work is done.
    return "completed" if issue.state_reason in (None, "completed") else "not_planned"


def _quoted(text: str) -> str:
    return f"“{one_line(text, 80)}”"


def _label(name: str) -> str:
    return f"the label {one_line(name, 60)}" if name else "no workstream label"


def _milestone(name: str) -> str:
    return f"the milestone {_quoted(name)}" if name else "no managed milestone"


def _state_text(state: State) -> str:
    return "open" if state == "open" else f"closed as {state.replace('_', ' ')}"
