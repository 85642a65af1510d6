"""Find each job's issue by its number or its mark. Read-only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.issues.issue_text import begin_mark
from donewhen.jobs.issues.mirror_status import expected_issue_of, mirrored_to, newest_mirror_entry, waves_of
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Mirrored
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.workspace import Workspace
from donewhen.mirror.http.errors import GoneError
from donewhen.mirror.http.github_api import GitHubApi, Issue, Milestone, MovedIssue
from donewhen.mirror.sync.issue_map import IssueMap, map_path
from donewhen.mirror.sync.parity import AbsentIssue, Found, Target, UnclearIssue

_MARK = re.compile(r"<!-- donewhen: ([A-Za-z0-9][A-Za-z0-9._-]{0,99}) -->")
_TITLE = re.compile(r"\A\[([A-Za-z0-9][A-Za-z0-9._-]{0,99})\] ")


class RemoteIssues(NamedTuple):
    """The jobs, the issue each should have, and what was found on GitHub."""

    jobs: Mapping[str, Job]
    targets: tuple[Target, ...]
    found: Mapping[str, Found]
    entries: Mapping[str, Entry | None]
    """The newest ledger entry about each job's issue."""
    labels: frozenset[str]
    milestones: tuple[Milestone, ...]
    doubled: Mapping[str, tuple[int, ...]]
    """Duplicate issues: all but the first that carry a job's mark."""
    unreadable: tuple[DonewhenError, ...]


def read_remote_issues(
    workspace: Workspace, project: Project, api: GitHubApi, known: IssueMap, only: str | None = None
) -> RemoteIssues:
    """Read the issue of one job or of all jobs. Plans that can't be read are collected and skipped."""
    managed = frozenset(wave.milestone for wave in waves_of(project))
    jobs: dict[str, Job] = {}
    targets: list[Target] = []
    entries: dict[str, Entry | None] = {}
    unreadable: list[DonewhenError] = []
    for path in [workspace.place(only).path] if only is not None else [place.path for place in workspace.places()]:
        try:
            job = workspace.job_at(path)
            chain = workspace.ledger.read(job.id).entries
            targets.append(Target(job.id, expected_issue_of(workspace, project, job, chain), managed))
        except DonewhenError as error:
            if only is not None:
                raise
            unreadable.append(error)
            continue
        jobs[job.id] = job
        entries[job.id] = newest_mirror_entry(chain)
    finder = _Finder(workspace, api, known, whole=only is None)
    found = {target.job: finder.find(target.job, entries[target.job]) for target in targets}
    milestones = api.milestones() if any(target.wanted.milestone for target in targets) else ()
    return RemoteIssues(
        jobs, tuple(targets), found, entries, api.labels(), milestones, finder.find_duplicates(found), tuple(unreadable)
    )


class _Finder:
    """Finds issues in the full list; for a single job first by its number, then in the list."""

    def __init__(self, workspace: Workspace, api: GitHubApi, known: IssueMap, *, whole: bool) -> None:
        self._workspace = workspace
        self._api = api
        self._known = known
        self._whole = whole
        self._listed: dict[int, Issue] | None = None
        self._by_mark: dict[str, list[Issue]] = {}

    def find(self, job: str, newest: Entry | None) -> Found:
        recorded = _recorded_number(newest, self._api.repo)
        why = "it was never mirrored"
        candidates = (self._known.issue(job), recorded)
        for number in dict.fromkeys(candidate for candidate in candidates if candidate is not None):
            issue = self._issue_by_number(number)
            if isinstance(issue, MovedIssue):
                return issue
            if issue is None:
                why = f"issue {number} was deleted"
            elif issue.pull_request:
                return self._unclear(job, f"number {number} is a pull request")
            elif number == recorded or _has_mark(issue, job):
                return issue
            else:
                return self._unclear(job, f"issue {number} does not have this job's mark")
        matches = self._issues_with_mark(job)
        return matches[0] if matches else AbsentIssue(why)

    def find_duplicates(self, found: Mapping[str, Found]) -> dict[str, tuple[int, ...]]:
        if self._listed is None:
            return {}
        duplicates: dict[str, tuple[int, ...]] = {}
        for job, issue in found.items():
            numbers = [
                other.number
                for other in self._issues_with_mark(job)
                if isinstance(issue, Issue) and other.number != issue.number and begin_mark(job) in other.body
            ]
            if numbers:
                duplicates[job] = tuple(numbers)
        return duplicates

    def _issue_by_number(self, number: int) -> Issue | MovedIssue | None:
        if self._whole:
            issue = self._issues().get(number)
            if issue is not None:
                return issue
        try:
            return self._api.issue(number)
        except GoneError:
            return None

    def _issues_with_mark(self, job: str) -> list[Issue]:
        """Return the trusted issues with the job's mark or title, oldest first."""
        self._issues()
        return sorted(self._by_mark.get(job, ()), key=lambda issue: (begin_mark(job) not in issue.body, issue.number))

    def _issues(self) -> Mapping[int, Issue]:
        if self._listed is None:
            self._listed = {issue.number: issue for issue in self._api.issues()}
            for issue in self._listed.values():
                # Scan each body once, however many jobs there are.
                named = {*_MARK.findall(issue.body), *_TITLE.findall(issue.title)} if issue.trusted else set()
                for job in named:
                    self._by_mark.setdefault(job, []).append(issue)
        return self._listed

    def _unclear(self, job: str, why: str) -> UnclearIssue:
        return UnclearIssue(why, f"Check it, and remove {job} from {self._workspace.where(map_path(self._workspace))}.")


def _has_mark(issue: Issue, job: str) -> bool:
    return begin_mark(job) in issue.body or issue.title.startswith(f"[{job}] ")


def _recorded_number(newest: Entry | None, repo: str) -> int | None:
    """Return the issue number in the ledger if it belongs to this repository."""
    if newest is None:
        return None
    mirrored = newest.read_as(Mirrored)
    return mirrored.number if repo.casefold() in mirrored_to(mirrored) else None
