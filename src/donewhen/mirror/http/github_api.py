"""Issues, labels and milestones of one repository, as typed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from donewhen.foundation.plain_text import one_line
from donewhen.mirror.http.client import Client
from donewhen.mirror.http.errors import GoneError, MirrorError, RefusedError, UnavailableError, UncertainError

# Only project members count: anyone can open an issue that contains our mark.
_TRUSTED = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_ATTEMPTS = 3


class Issue(NamedTuple):
    """An issue as the server shows it."""

    number: int
    title: str
    body: str
    state: str
    state_reason: str | None
    labels: tuple[str, ...]
    milestone: str
    trusted: bool
    """Whether a project member or a bot opened it."""
    pull_request: bool


class MovedIssue(NamedTuple):
    """An issue that was transferred to another repository."""

    where: str


class Milestone(NamedTuple):
    """A milestone as the server shows it."""

    number: int
    title: str
    due: str
    """The due date, or an empty string. The server chooses the hour."""


class Repository(NamedTuple):
    """A repository under its current name, which may differ from the requested one."""

    name: str
    has_issues: bool


def find_repository(client: Client, name: str) -> Repository:
    """Return the repository with this name, under its new name if it was renamed."""
    data = client.get(f"/repos/{name}")
    reader = _Reader(client, data)
    return Repository(reader.text("full_name"), reader.data.get("has_issues") is not False)


@dataclass(frozen=True)
class GitHubApi:
    """One repository on one server."""

    client: Client
    repo: str

    def url(self, number: int) -> str:
        """Return the web address of an issue. Built here, because a server-supplied URL would end up in plans."""
        return f"{self.client.address.web}/{self.repo}/issues/{number}"

    def milestone_url(self, number: int) -> str:
        return f"{self.client.address.web}/{self.repo}/milestone/{number}"

    def issues(self) -> tuple[Issue, ...]:
        """Return all issues, open and closed, without pull requests."""
        listed = self.client.pages(f"/repos/{self.repo}/issues", state="all", sort="created", direction="asc")
        issues = (self._issue(data) for data in listed)
        return tuple(issue for issue in issues if not issue.pull_request)

    def issue(self, number: int) -> Issue | MovedIssue:
        """Return one issue; raise GoneError if it was deleted."""
        data = self.client.get(f"/repos/{self.repo}/issues/{number}")
        issue = self._issue(data)
        repository = "/".join(urlsplit(str(data.get("repository_url") or "")).path.split("/")[-2:])
        if issue.number != number or (repository and repository.casefold() != self.repo.casefold()):
            return MovedIssue(f"{one_line(repository, 140) or 'another repository'} as number {issue.number}")
        return issue

    def create_issue(
        self, title: str, body: str, labels: Sequence[str], milestone: int | None, mark: str
    ) -> tuple[Issue, bool]:
        """Create an issue once, and return it with whether it existed already.

        If a create request gets no response, search for the issue by its mark before creating it again.
        """
        values: dict[str, Any] = {"title": title, "body": body, "labels": list(labels)}
        if milestone is not None:
            values["milestone"] = milestone
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._issue(self.client.create(f"/repos/{self.repo}/issues", values)), False
            except UncertainError:
                # The list may lag behind a creation.
                for search in range(1, _ATTEMPTS):
                    self.client.pause(search)
                    existing = self._newest_with(mark)
                    if existing is not None:
                        return existing, True
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("the loop ends by returning or raising")  # pragma: no cover

    def update_issue(self, number: int, values: Mapping[str, Any]) -> Issue:
        return self._issue(self.client.change(f"/repos/{self.repo}/issues/{number}", values))

    def add_labels(self, number: int, labels: Sequence[str]) -> None:
        """Add labels and keep the existing ones, which may belong to others."""
        self.client.add(f"/repos/{self.repo}/issues/{number}/labels", {"labels": list(labels)})

    def remove_label(self, number: int, label: str) -> None:
        # It may have been removed meanwhile.
        with suppress(GoneError):
            self.client.remove(f"/repos/{self.repo}/issues/{number}/labels/{quote(label, safe='')}")

    def labels(self) -> frozenset[str]:
        """Return the names of all labels in lower case: the server treats `Bug` and `bug` as equal."""
        listed = self.client.pages(f"/repos/{self.repo}/labels")
        return frozenset(_Reader(self.client, data).text("name").casefold() for data in listed)

    def create_label(self, name: str, color: str, description: str) -> None:
        values = {"name": name, "color": color, "description": description}
        try:
            self.client.add(f"/repos/{self.repo}/labels", values)
        except RefusedError:
            # It may have been created meanwhile, or by an attempt of ours that got no response.
            if name.casefold() not in self.labels():
                raise

    def milestones(self) -> tuple[Milestone, ...]:
        listed = self.client.pages(f"/repos/{self.repo}/milestones", state="all")
        return tuple(self._milestone(data) for data in listed)

    def create_milestone(self, title: str, due_on: str | None) -> Milestone:
        values = {"title": title, **({"due_on": due_on} if due_on else {})}
        try:
            return self._milestone(self.client.add(f"/repos/{self.repo}/milestones", values))
        except RefusedError:
            existing = next((milestone for milestone in self.milestones() if milestone.title == title), None)
            if existing is None:
                raise
            return existing

    def update_milestone(self, number: int, title: str, due_on: str | None) -> Milestone:
        values = {"title": title, **({"due_on": due_on} if due_on else {})}
        return self._milestone(self.client.change(f"/repos/{self.repo}/milestones/{number}", values))

    def _newest_with(self, mark: str) -> Issue | None:
        path = f"/repos/{self.repo}/issues"
        listed = self.client.get(path, state="all", sort="created", direction="desc", per_page=100)
        issues = [self._issue(data) for data in listed] if isinstance(listed, list) else []
        return next(
            (issue for issue in issues if mark in issue.body and issue.trusted and not issue.pull_request), None
        )

    def _issue(self, data: Any) -> Issue:
        reader = _Reader(self.client, data)
        labels = data.get("labels")
        names = [label.get("name") if isinstance(label, dict) else label for label in labels or ()]
        milestone = data.get("milestone")
        author = data.get("user")
        return Issue(
            number=reader.number("number"),
            title=reader.text("title"),
            body=str(data.get("body") or "").replace("\r\n", "\n"),
            state=reader.text("state"),
            state_reason=str(data["state_reason"]) if data.get("state_reason") else None,
            labels=tuple(str(name) for name in names if name),
            milestone=str(milestone.get("title") or "") if isinstance(milestone, dict) else "",
            trusted=data.get("author_association") in _TRUSTED
            or (isinstance(author, dict) and author.get("type") == "Bot"),
            pull_request="pull_request" in data,
        )

    def _milestone(self, data: Any) -> Milestone:
        reader = _Reader(self.client, data)
        return Milestone(reader.number("number"), reader.text("title"), str(data.get("due_on") or "")[:10])


class _Reader:
    """Reads required fields of a response; raises UnavailableError if one is missing."""

    def __init__(self, client: Client, data: Any) -> None:
        self._where = client.address.host
        if not isinstance(data, dict):
            raise self._error("not an object")
        self.data: Mapping[str, Any] = data

    def text(self, name: str) -> str:
        value = self.data.get(name)
        if not isinstance(value, str):
            raise self._error(f"no valid {name}")
        return value

    def number(self, name: str) -> int:
        value = self.data.get(name)
        if type(value) is not int or value <= 0:
            raise self._error(f"no valid {name}")
        return value

    def _error(self, problem: str) -> UnavailableError:
        return UnavailableError(
            f"Unexpected response from the server: {problem}.",
            where=self._where,
            next_step="Check that the address is the API's: https://HOST/api/v3 on an Enterprise server.",
        )


def issues_disabled_error(repo: str, where: str) -> MirrorError:
    """Return the error for a repository whose issues are disabled."""
    return MirrorError(
        f"Issues are disabled in {repo}.", where=where, next_step="Enable them in the repository's settings."
    )
