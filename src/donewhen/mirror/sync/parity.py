"""What is wanted against what is there, field by field, each gap in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.issues.issue_text import STATUS_LABEL, WORKSTREAM_LABEL, IssueContent, State, begin_mark, end_mark
from donewhen.jobs.plan.job import STATUSES
from donewhen.mirror.http.github_api import Issue, MovedIssue

Field = Literal["issue", "title", "body", "status", "workstream", "milestone", "state"]


class Gap(NamedTuple):
    """One way in which an issue is not what it should be."""

    job: str
    field: Field
    wanted: str
    found: str
    told: str
    number: int | None = None


class Target(NamedTuple):
    """A job, and what its issue should be."""

    job: str
    wanted: IssueContent
    milestones: frozenset[str]
    """The milestones that are ours."""


class AbsentIssue(NamedTuple):
    """There is no issue, and why it is known that there is none."""

    why: str


class UnclearIssue(NamedTuple):
    """There is something under the number, but it can't be taken for the job's issue. Only a person can tell."""

    why: str
    next: str


Found = Issue | AbsentIssue | MovedIssue | UnclearIssue


def seen_content(issue: Issue, target: Target) -> IssueContent:
    """Our part of an issue, as the server shows it. Where nothing of ours is wanted, what is there is others'."""
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
    """Labels of ours that an issue has and should not have; all others are other people's."""
    ours = _statuses(issue) + (_workstreams(issue) if wanted.workstream else ())
    return tuple(our for our in ours if our.casefold() not in wanted.labels)


def _statuses(issue: Issue) -> tuple[str, ...]:
    known = {f"{STATUS_LABEL}{one}" for one in STATUSES}
    return tuple(label for label in issue.labels if label.casefold() in known)


def _workstreams(issue: Issue) -> tuple[str, ...]:
    return tuple(label for label in issue.labels if label.casefold().startswith(WORKSTREAM_LABEL))


def split_body(body: str, job: str) -> tuple[str, str, str]:
    """What others wrote before our part, our part, and what they wrote after it; ours is empty where a mark is gone."""
    begin, end = begin_mark(job), end_mark(job)
    start = body.find(begin)
    stop = body.find(end, start + len(begin)) if start >= 0 else -1
    if start < 0 or stop < 0:
        return body, "", ""
    stop += len(end)
    return body[:start], body[start:stop], body[stop:]


def merged_body(body: str, block: str, job: str) -> str:
    """A body with our part brought up to date; every other word stays where it is."""
    before, ours, after = split_body(body, job)
    if ours:
        return f"{before}{block}{after}"
    # A mark that lost its other half says nothing any more, and would be found in place of ours.
    rest = body.replace(begin_mark(job), "").replace(end_mark(job), "").strip()
    return f"{block}\n\n{rest}" if rest else block


def parity_gaps(target: Target, found: Found) -> tuple[Gap, ...]:
    """Every way in which what is there differs from what is wanted."""
    job = target.job
    if isinstance(found, AbsentIssue):
        if target.wanted.status == "cancelled":
            # Nobody needs an issue for what is not going to be done.
            return ()
        return (Gap(job, "issue", "an issue", "none", f"{job} has no issue: {found.why}."),)
    if isinstance(found, MovedIssue):
        return (Gap(job, "issue", "an issue here", found.where, f"The issue of {job} was moved to {found.where}."),)
    if isinstance(found, UnclearIssue):
        return (Gap(job, "issue", "an issue", "something else", f"{job} has no issue that is known: {found.why}."),)
    return tuple(_differences(job, target.wanted, seen_content(found, target), found.number))


def _differences(job: str, wanted: IssueContent, seen: IssueContent, number: int) -> Iterator[Gap]:
    issue = f"Issue {number} of {job}"
    if seen.title != wanted.title:
        yield Gap(job, "title", wanted.title, seen.title, f"{issue} is titled {_quoted(seen.title)}.", number)
    if seen.body != wanted.body:
        told = f"{issue} does not have our part in its text." if not seen.body else _other_line(issue, wanted, seen)
        yield Gap(job, "body", wanted.body, seen.body, told, number)
    if seen.status != wanted.status:
        says = f"still says {seen.status}" if seen.status else "says no status, or more than one"
        told = f"{issue} {one_line(says, 80)}, and the job is {wanted.status}."
        yield Gap(job, "status", wanted.status, seen.status, told, number)
    if seen.workstream != wanted.workstream:
        told = f"{issue} has {_label(seen.workstream)}, and {_label(wanted.workstream)} is wanted."
        yield Gap(job, "workstream", wanted.workstream, seen.workstream, told, number)
    if seen.milestone != wanted.milestone:
        told = f"{issue} is in {_milestone(seen.milestone)}, and {_milestone(wanted.milestone)} is wanted."
        yield Gap(job, "milestone", wanted.milestone, seen.milestone, told, number)
    if seen.state != wanted.state:
        told = f"{issue} is {_word(seen.state)}, and should be {_word(wanted.state)}: the job is {wanted.status}."
        yield Gap(job, "state", _word(wanted.state), _word(seen.state), told, number)


def _other_line(issue: str, wanted: IssueContent, seen: IssueContent) -> str:
    """The first line that is not what it should be."""
    theirs, ours = seen.body.split("\n"), wanted.body.split("\n")
    place = next((n for n, pair in enumerate(zip(theirs, ours, strict=False)) if pair[0] != pair[1]), None)
    if place is None:
        return f"{issue} has {len(theirs)} lines in our part of its text, and {len(ours)} are wanted."
    return f"{issue} says {_quoted(theirs[place])} in our part of its text, where {_quoted(ours[place])} is wanted."


def _state(issue: Issue) -> State:
    if issue.state == "open":
        return "open"
    # A reason that we never give, such as a duplicate, is not that the work is done.
    return "completed" if issue.state_reason in (None, "completed") else "not_planned"


def _quoted(text: str) -> str:
    return f"“{one_line(text, 80)}”"


def _label(name: str) -> str:
    return f"the label {one_line(name, 60)}" if name else "no label of a workstream"


def _milestone(name: str) -> str:
    return f"the milestone {_quoted(name)}" if name else "no milestone of ours"


def _word(state: State) -> str:
    return "open" if state == "open" else f"closed as {state.replace('_', ' ')}"
