"""Apply sync steps one at a time. Each result is saved, so that an interrupted sync can continue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from donewhen.foundation.locks import locked
from donewhen.jobs.issues.issue_text import IssueContent, begin_mark
from donewhen.jobs.issues.mirror_status import waves_of
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import writing
from donewhen.mirror.http.errors import GoneError, RefusedError
from donewhen.mirror.http.github_api import GitHubApi, Issue, MovedIssue
from donewhen.mirror.sync.issue_map import IssueMap, read_map, write_map
from donewhen.mirror.sync.opening import Mirror
from donewhen.mirror.sync.parity import Gap, Target, merged_body, parity_gaps, seen_content, surplus_labels
from donewhen.mirror.sync.remote_issues import RemoteIssues, read_remote_issues
from donewhen.mirror.sync.sync_plan import (
    ChangeIssue,
    ChangeMilestone,
    LinkIssue,
    MakeIssue,
    MakeLabel,
    MakeMilestone,
    Step,
    SyncPlan,
    plan_sync,
)

LONGEST_BODY = 65_536


class SyncResult(NamedTuple):
    """The steps that a sync completed, and the differences that remain."""

    looked: RemoteIssues
    done: tuple[Step, ...]
    left: tuple[Gap, ...]


def read_and_plan(mirror: Mirror, known: IssueMap, only: str | None = None) -> tuple[RemoteIssues, SyncPlan]:
    """Read the issues and plan a sync. Writes nothing."""
    remote = read_remote_issues(mirror.workspace, mirror.project, mirror.api, known, only)
    return remote, plan_sync(remote, known, waves_of(mirror.project), mirror.api.repo)


def sync(
    mirror: Mirror, by: Actor, *, only: str | None = None, on_progress: Callable[[Step], None] = lambda _: None
) -> SyncResult:
    """Update the issues and record their state. A lock prevents two syncs at once."""
    workspace = mirror.workspace
    workspace.prepare()
    with locked(workspace.folder / "state" / "locks" / "github.lock"):
        known = mirror.known_here(read_map(workspace))
        remote, steps = read_and_plan(mirror, known, only)
        runner = _StepRunner(mirror, known, by)
        left: list[Gap] = [*steps.left]
        done: list[Step] = []
        for step in steps.steps:
            remaining = runner.apply(step)
            left += remaining
            if not remaining:
                done.append(step)
                on_progress(step)
        write_map(workspace, runner.known.synced(mirror.api.repo, workspace.now()))
    return SyncResult(remote, tuple(done), tuple(left))


@dataclass
class _StepRunner:
    mirror: Mirror
    known: IssueMap
    by: Actor

    @property
    def _api(self) -> GitHubApi:
        return self.mirror.api

    def apply(self, step: Step) -> tuple[Gap, ...]:
        """Apply one step, and return the differences that remain."""
        match step:
            case MakeLabel():
                self._api.create_label(step.name, step.color, step.description)
            case MakeMilestone():
                self._save_milestone(step.wave, self._api.create_milestone(step.title, step.due_on).number, step.title)
            case ChangeMilestone():
                self._api.update_milestone(step.number, step.title, step.due_on)
                self._save_milestone(step.wave, step.number, step.title)
            case MakeIssue(target) | ChangeIssue(target) | LinkIssue(target):
                try:
                    issue = self._apply_to_issue(step)
                except (RefusedError, GoneError) as error:
                    # Report this issue and continue with the others.
                    message = f"The issue of {target.job} could not be written: {error.message}"
                    return (Gap(target.job, "issue", "an issue", "a refusal", message),)
                self._record(target, issue)
                return parity_gaps(target, issue)
        return ()

    def _apply_to_issue(self, step: MakeIssue | ChangeIssue | LinkIssue) -> Issue:
        if isinstance(step, LinkIssue):
            return step.issue
        target = step.target
        if isinstance(step, ChangeIssue):
            # Read it again, so that edits since the list was read are not lost.
            current = self._api.issue(step.number)
            if isinstance(current, MovedIssue):
                raise GoneError(f"Issue {step.number} was transferred to {current.where}.")
            return self._update(target, current)
        wanted = target.wanted
        milestone = self._milestone_number(wanted)
        issue, existed = self._api.create_issue(
            wanted.title, wanted.body, wanted.labels, milestone, begin_mark(target.job)
        )
        # Save the number now, so that a later failure does not create a second issue.
        self._save_issue(target.job, issue.number)
        return self._update(target, issue) if existed or wanted.state != "open" else issue

    def _update(self, target: Target, issue: Issue) -> Issue:
        wanted = target.wanted
        fields: set[str] = {gap.field for gap in parity_gaps(target, issue)}
        present = {label.casefold() for label in issue.labels}
        missing = [label for label in wanted.labels if label.casefold() not in present]
        surplus = surplus_labels(issue, wanted)
        if missing:
            self._api.add_labels(issue.number, missing)
        for label in surplus:
            self._api.remove_label(issue.number, label)
        values = self._changed_values(target, issue, fields)
        if values:
            return self._api.update_issue(issue.number, values)
        if missing or surplus:
            after = self._api.issue(issue.number)
            return issue if isinstance(after, MovedIssue) else after
        return issue

    def _changed_values(self, target: Target, issue: Issue, fields: set[str]) -> dict[str, Any]:
        wanted = target.wanted
        values: dict[str, Any] = {}
        if "title" in fields:
            values["title"] = wanted.title
        if "body" in fields:
            values["body"] = merged_body(issue.body, wanted.body, target.job)
            if len(values["body"]) > LONGEST_BODY:
                raise RefusedError(
                    f"With the managed block, the body would have {len(values['body'])} characters; "
                    f"GitHub allows {LONGEST_BODY}."
                )
        if "milestone" in fields:
            values["milestone"] = self._milestone_number(wanted)
        if "state" in fields:
            closed = wanted.state != "open"
            values |= {"state": "closed", "state_reason": wanted.state} if closed else {"state": "open"}
        return values

    def _milestone_number(self, wanted: IssueContent) -> int | None:
        wave = next((wave for wave in waves_of(self.mirror.project) if wave.milestone == wanted.milestone), None)
        return None if wave is None else self.known.milestone(wave.id)

    def _save_milestone(self, wave: str, number: int, title: str) -> None:
        self.known = self.known.with_milestone(wave, number, self._api.milestone_url(number), title)
        self._save()

    def _save_issue(self, job: str, number: int) -> None:
        if self.known.issue(job) != number:
            self.known = self.known.with_issue(job, number, self._api.url(number))
            self._save()

    def _save(self) -> None:
        if not self.known.repo:
            self.known = self.known.synced(self._api.repo, "")
        write_map(self.mirror.workspace, self.known)

    def _record(self, target: Target, issue: Issue) -> None:
        """Record the issue as the server returned it."""
        self._save_issue(target.job, issue.number)
        workspace: Workspace = self.mirror.workspace
        url = self._api.url(issue.number)
        data: dict[str, Any] = {
            "repo": self._api.repo,
            "number": issue.number,
            "url": url,
            "wanted": target.wanted.marks(),
            "observed": seen_content(issue, target).marks(),
        }
        if self.mirror.asked_for.casefold() != self._api.repo.casefold():
            data["asked_for"] = self.mirror.asked_for
        writes: dict[str, Value] = {"github_issue_number": issue.number, "github_issue_url": url}
        path = workspace.place(target.job).path
        with writing(workspace, path, target.job) as plan:
            plan.append("mirrored", data, Approval(self.by), writes)
