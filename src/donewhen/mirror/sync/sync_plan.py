"""Turn differences into ordered sync steps. Pure, so that a dry run and a real run plan the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import NamedTuple, TypeAlias

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.issues.issue_text import STATUS_LABEL, WORKSTREAM_LABEL
from donewhen.jobs.issues.mirror_status import Wave
from donewhen.jobs.ledger.entry_content import Mirrored
from donewhen.mirror.http.errors import MirrorError
from donewhen.mirror.http.github_api import Issue
from donewhen.mirror.sync.issue_map import IssueMap
from donewhen.mirror.sync.parity import AbsentIssue, Gap, Target, parity_gaps, seen_content
from donewhen.mirror.sync.remote_issues import RemoteIssues

_WORKSTREAM_COLOR = "0f6b5d"
_STATUS_COLORS = {
    "planned": "6b7280",
    "in_progress": "b45f06",
    "blocked": "b42318",
    "done": "027a48",
    "cancelled": "7a1f5c",
}


class MakeLabel(NamedTuple):
    name: str
    color: str

    @property
    def told(self) -> str:
        return f"create the label {self.name}"

    @property
    def description(self) -> str:
        return "A workstream" if self.name.startswith(WORKSTREAM_LABEL) else "The job's status"


class MakeMilestone(NamedTuple):
    wave: str
    title: str
    due_on: str | None

    @property
    def told(self) -> str:
        return f"create the milestone {one_line(self.title)}"


class ChangeMilestone(NamedTuple):
    wave: str
    number: int
    title: str
    due_on: str | None

    @property
    def told(self) -> str:
        due = f", due {self.due_on[:10]}" if self.due_on else ""
        return f"update milestone {self.number} to {one_line(self.title)}{due}"


class MakeIssue(NamedTuple):
    target: Target
    why: str

    @property
    def told(self) -> str:
        return f"create an issue for {self.target.job} ({self.why})"


class ChangeIssue(NamedTuple):
    target: Target
    number: int
    gaps: tuple[Gap, ...]

    @property
    def told(self) -> str:
        return f"update issue {self.number} of {self.target.job}: {', '.join(gap.field for gap in self.gaps)}"


class LinkIssue(NamedTuple):
    """The issue is correct on GitHub; only the local record needs to be written."""

    target: Target
    issue: Issue

    @property
    def told(self) -> str:
        return f"record that issue {self.issue.number} of {self.target.job} is up to date"


Step: TypeAlias = MakeLabel | MakeMilestone | ChangeMilestone | MakeIssue | ChangeIssue | LinkIssue


class SyncPlan(NamedTuple):
    """The steps of a sync, and the differences it can't fix."""

    steps: tuple[Step, ...]
    left: tuple[Gap, ...]


def plan_sync(remote: RemoteIssues, known: IssueMap, waves: tuple[Wave, ...], repo: str) -> SyncPlan:
    """Return the steps that fix every difference that can be fixed."""
    issues: list[Step] = []
    left: list[Gap] = []
    for target in remote.targets:
        found = remote.found[target.job]
        differences = parity_gaps(target, found)
        if isinstance(found, AbsentIssue):
            if differences:
                issues.append(MakeIssue(target, found.why))
        elif not isinstance(found, Issue):
            left += differences
        elif differences:
            issues.append(ChangeIssue(target, found.number, differences))
        elif known.issue(target.job) != found.number or not _is_recorded(remote, target, found, repo):
            issues.append(LinkIssue(target, found))
    touched = [issue.target for issue in issues if isinstance(issue, MakeIssue | ChangeIssue)]
    # The end of a wave may change without a change to any issue.
    existing = [target for target in remote.targets if isinstance(remote.found[target.job], Issue)]
    milestones = _milestones(remote, [*existing, *touched], known, waves)
    return SyncPlan((*_labels(remote, touched), *milestones, *issues), tuple(left))


def _is_recorded(remote: RemoteIssues, target: Target, issue: Issue, repo: str) -> bool:
    newest = remote.entries[target.job]
    if newest is None:
        return False
    mirrored = newest.read_as(Mirrored)
    same_issue = (mirrored.number, mirrored.repo) == (issue.number, repo)
    same_content = (mirrored.observed, mirrored.wanted) == (seen_content(issue, target).marks(), target.wanted.marks())
    return same_issue and same_content


def _labels(remote: RemoteIssues, targets: list[Target]) -> Iterator[MakeLabel]:
    for name in dict.fromkeys(label for target in targets for label in target.wanted.labels):
        if name.casefold() not in remote.labels:
            status = name.removeprefix(STATUS_LABEL)
            yield MakeLabel(name, _STATUS_COLORS.get(status, _WORKSTREAM_COLOR))


def _milestones(
    remote: RemoteIssues, targets: list[Target], known: IssueMap, waves: tuple[Wave, ...]
) -> Iterator[MakeMilestone | ChangeMilestone]:
    wanted = {target.wanted.milestone for target in targets}
    for wave in waves:
        if wave.milestone not in wanted:
            continue
        due_on = _due(wave)
        number = known.milestone(wave.id)
        existing = next((milestone for milestone in remote.milestones if milestone.number == number), None)
        existing = existing or next(
            (milestone for milestone in remote.milestones if milestone.title == wave.milestone), None
        )
        if existing is None:
            yield MakeMilestone(wave.id, wave.milestone, due_on)
        elif existing.title != wave.milestone or (due_on is not None and existing.due != due_on[:10]) or number is None:
            yield ChangeMilestone(wave.id, existing.number, wave.milestone, due_on)


def _due(wave: Wave) -> str | None:
    if not wave.end:
        return None
    try:
        return f"{date.fromisoformat(wave.end[:10]).isoformat()}T23:59:59Z"
    except ValueError:
        raise MirrorError(
            f"The wave {one_line(wave.id, 60)} ends on {one_line(wave.end, 60)!r}, which is not a date.",
            next_step="Write the end of a wave as YYYY-MM-DD in the project's plan.",
        ) from None
