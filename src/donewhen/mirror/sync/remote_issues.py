"""What is there: each job's issue, found by its number or by its mark. Nothing is written here, there or on disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.issues.issue_text import begin_mark
from donewhen.jobs.issues.mirror_status import newest_mirror_entry, wanted_issue_of, waves_of
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.workspace import Workspace
from donewhen.mirror.http.errors import GoneError
from donewhen.mirror.http.github_api import GitHubApi, Issue, Milestone, MovedIssue
from donewhen.mirror.sync.issue_map import IssueMap, map_path
from donewhen.mirror.sync.parity import AbsentIssue, Found, Target, UnclearIssue

_MARK = re.compile(r"<!-- donewhen: ([A-Za-z0-9][A-Za-z0-9._-]{0,99}) -->")
_TITLE = re.compile(r"\A\[([A-Za-z0-9][A-Za-z0-9._-]{0,99})\] ")


class RemoteIssues(NamedTuple):
    """The jobs with what is wanted of each, and what was found there."""

    jobs: Mapping[str, Job]
    targets: tuple[Target, ...]
    found: Mapping[str, Found]
    entries: Mapping[str, Entry | None]
    """The newest entry about each job's issue."""
    labels: frozenset[str]
    milestones: tuple[Milestone, ...]
    doubled: Mapping[str, tuple[int, ...]]
    """Issues beyond the first that carry a job's mark."""
    unreadable: tuple[DonewhenError, ...]


def read_remote_issues(
    workspace: Workspace, project: Project, api: GitHubApi, known: IssueMap, only: str | None = None
) -> RemoteIssues:
    """Look at one job's issue, or at those of all jobs. A plan that can't be read keeps nobody from the others."""
    ours = frozenset(wave.milestone for wave in waves_of(project))
    jobs: dict[str, Job] = {}
    targets: list[Target] = []
    entries: dict[str, Entry | None] = {}
    unreadable: list[DonewhenError] = []
    for path in [workspace.place(only).path] if only is not None else [place.path for place in workspace.places()]:
        try:
            job = workspace.job_at(path)
            chain = workspace.ledger.read(job.id).entries
            targets.append(Target(job.id, wanted_issue_of(workspace, project, job, chain), ours))
        except DonewhenError as error:
            if only is not None:
                raise
            unreadable.append(error)
            continue
        jobs[job.id] = job
        entries[job.id] = newest_mirror_entry(chain)
    finder = _Finder(workspace, api, known, whole=only is None)
    found = {target.job: finder.found(target.job, entries[target.job]) for target in targets}
    milestones = api.milestones() if any(target.wanted.milestone for target in targets) else ()
    return RemoteIssues(
        jobs, tuple(targets), found, entries, api.labels(), milestones, finder.doubled(found), tuple(unreadable)
    )


class _Finder:
    """Finds issues in one list of all, or for a single job by its number, and in the list only where that fails."""

    def __init__(self, workspace: Workspace, api: GitHubApi, known: IssueMap, *, whole: bool) -> None:
        self._workspace = workspace
        self._api = api
        self._known = known
        self._whole = whole
        self._listed: dict[int, Issue] | None = None
        self._bearing: dict[str, list[Issue]] = {}

    def found(self, job: str, newest: Entry | None) -> Found:
        recorded = _recorded_number(newest, self._api.repo)
        why = "it was never mirrored"
        for number in dict.fromkeys(one for one in (self._known.issue(job), recorded) if one is not None):
            there = self._numbered(number)
            if isinstance(there, MovedIssue):
                return there
            if there is None:
                why = f"issue {number} was deleted"
            elif there.pull_request:
                return self._strange(job, f"number {number} is a pull request")
            elif number == recorded or _bears(there, job):
                return there
            else:
                return self._strange(job, f"issue {number} bears no mark of this job")
        marked = self._marked(job)
        return marked[0] if marked else AbsentIssue(why)

    def doubled(self, found: Mapping[str, Found]) -> dict[str, tuple[int, ...]]:
        if self._listed is None:
            return {}
        more: dict[str, tuple[int, ...]] = {}
        for job, one in found.items():
            others = [
                other.number
                for other in self._marked(job)
                if isinstance(one, Issue) and other.number != one.number and begin_mark(job) in other.body
            ]
            if others:
                more[job] = tuple(others)
        return more

    def _numbered(self, number: int) -> Issue | MovedIssue | None:
        if self._whole:
            there = self._issues().get(number)
            if there is not None:
                return there
        try:
            return self._api.issue(number)
        except GoneError:
            return None

    def _marked(self, job: str) -> list[Issue]:
        """The issues of people of the project that carry the job's mark, or at least its title; the oldest first."""
        self._issues()
        return sorted(self._bearing.get(job, ()), key=lambda one: (begin_mark(job) not in one.body, one.number))

    def _issues(self) -> Mapping[int, Issue]:
        if self._listed is None:
            self._listed = {one.number: one for one in self._api.issues()}
            for issue in self._listed.values():
                # One look at each body, however many jobs there are.
                named = {*_MARK.findall(issue.body), *_TITLE.findall(issue.title)} if issue.trusted else set()
                for job in named:
                    self._bearing.setdefault(job, []).append(issue)
        return self._listed

    def _strange(self, job: str, why: str) -> UnclearIssue:
        return UnclearIssue(
            why, f"Look at it, and take {job} out of {self._workspace.where(map_path(self._workspace))}."
        )


def _bears(issue: Issue, job: str) -> bool:
    return begin_mark(job) in issue.body or issue.title.startswith(f"[{job}] ")


def _recorded_number(newest: Entry | None, repo: str) -> int | None:
    """The number that the ledger has, if it is of this repository."""
    if newest is None:
        return None
    number = newest.data.get("number")
    same = repo.casefold() in {str(newest.data.get(name) or "").casefold() for name in ("repo", "asked_for")}
    return number if same and type(number) is int else None
