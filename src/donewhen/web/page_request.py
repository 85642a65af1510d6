"""The request for a page: the URL, and the survey of the project's jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from donewhen.jobs.board.survey import Survey, survey_jobs
from donewhen.jobs.plan.workspace import Workspace
from donewhen.web.file_watch import TOPICS, Topic, Versions
from donewhen.web.project_folder import ProjectFolder
from donewhen.web.rendering import PageContent
from donewhen.web.reviewers import ReviewerSession


class Surveys:
    """The newest survey of all jobs, shared by all requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._survey: Survey | None = None

    def of(self, workspace: Workspace, version: int) -> Survey:
        with self._lock:
            if self._survey is None or self._version != version:
                self._survey = survey_jobs(workspace)
                self._version = version
            return self._survey


class PageRequest(NamedTuple):
    """One request for a page."""

    place: ProjectFolder
    names: Mapping[str, str]
    """The path parameters."""
    query: Mapping[str, str]
    versions: Versions
    surveys: Surveys
    session: ReviewerSession | None = None

    def survey(self) -> Survey:
        """Return the survey of all jobs."""
        return self.surveys.of(self.place.jobs(), self.versions[TOPICS.index("jobs")])

    def number(self, name: str, default: int = 1) -> int:
        """Return a number from the query; the default if it is not a valid number."""
        value = self.query.get(name, "")
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 7 else default


class View(NamedTuple):
    """How a page is made, and which topics make it stale."""

    make: Callable[[PageRequest], PageContent]
    topics: tuple[Topic, ...]
    keep: bool = True
    """Whether the page depends only on watched files, so that it can be cached."""
