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

# Who may be taken for somebody of the project. Anybody at all can open an issue with our mark in it.
_TRUSTED = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_LOOKS = 3


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
    """Whether it was opened by somebody of the project, or by a program that was let in."""
    pull_request: bool


class MovedIssue(NamedTuple):
    """An issue that is in another repository now."""

    where: str


class Milestone(NamedTuple):
    """A milestone as the server shows it."""

    number: int
    title: str
    due: str
    """The day; empty where there is none. The server chooses the hour."""


class Repository(NamedTuple):
    """What a repository is called now, which need not be what one asked for."""

    name: str
    has_issues: bool


def find_repository(client: Client, name: str) -> Repository:
    """The repository with this name, or with the one that it was given since."""
    data = client.get(f"/repos/{name}")
    found = _Reader(client, data)
    return Repository(found.text("full_name"), found.data.get("has_issues") is not False)


@dataclass(frozen=True)
class GitHubApi:
    """One repository on one server."""

    client: Client
    repo: str

    def url(self, number: int) -> str:
        """Where people see an issue. Made here: a server's own word for it would be written into plans."""
        return f"{self.client.address.web}/{self.repo}/issues/{number}"

    def milestone_url(self, number: int) -> str:
        return f"{self.client.address.web}/{self.repo}/milestone/{number}"

    def issues(self) -> tuple[Issue, ...]:
        """All issues, open and closed; pull requests are left out."""
        listed = self.client.pages(f"/repos/{self.repo}/issues", state="all", sort="created", direction="asc")
        found = (self._issue(one) for one in listed)
        return tuple(one for one in found if not one.pull_request)

    def issue(self, number: int) -> Issue | MovedIssue:
        """One issue; GoneError where it was deleted."""
        data = self.client.get(f"/repos/{self.repo}/issues/{number}")
        issue = self._issue(data)
        there = "/".join(urlsplit(str(data.get("repository_url") or "")).path.split("/")[-2:])
        if issue.number != number or (there and there.casefold() != self.repo.casefold()):
            return MovedIssue(f"{one_line(there, 140) or 'another repository'} as number {issue.number}")
        return issue

    def create_issue(
        self, title: str, body: str, labels: Sequence[str], milestone: int | None, mark: str
    ) -> tuple[Issue, bool]:
        """Make an issue, once: where nobody answered, it is looked for by its mark before it is made again.

        Also says whether it was found instead of made.
        """
        values: dict[str, Any] = {"title": title, "body": body, "labels": list(labels)}
        if milestone is not None:
            values["milestone"] = milestone
        for attempt in range(1, _LOOKS + 1):
            try:
                return self._issue(self.client.create(f"/repos/{self.repo}/issues", values)), False
            except UncertainError:
                # A list may lag a moment behind what was made.
                for look in range(1, _LOOKS):
                    self.client.pause(look)
                    found = self._newest_with(mark)
                    if found is not None:
                        return found, True
                if attempt == _LOOKS:
                    raise
        raise AssertionError("the loop ends by returning or raising")  # pragma: no cover

    def update_issue(self, number: int, values: Mapping[str, Any]) -> Issue:
        return self._issue(self.client.change(f"/repos/{self.repo}/issues/{number}", values))

    def add_labels(self, number: int, labels: Sequence[str]) -> None:
        """Beside those that are there: what others have put on an issue is not ours to write."""
        self.client.add(f"/repos/{self.repo}/issues/{number}/labels", {"labels": list(labels)})

    def remove_label(self, number: int, label: str) -> None:
        # Somebody else may have taken it off meanwhile.
        with suppress(GoneError):
            self.client.remove(f"/repos/{self.repo}/issues/{number}/labels/{quote(label, safe='')}")

    def labels(self) -> frozenset[str]:
        """The names of all labels, in lower case: the server does not tell `Bug` from `bug`."""
        listed = self.client.pages(f"/repos/{self.repo}/labels")
        return frozenset(_Reader(self.client, one).text("name").casefold() for one in listed)

    def create_label(self, name: str, color: str, description: str) -> None:
        values = {"name": name, "color": color, "description": description}
        try:
            self.client.add(f"/repos/{self.repo}/labels", values)
        except RefusedError:
            # Made by somebody else meanwhile, or by a try of ours that nobody answered.
            if name.casefold() not in self.labels():
                raise

    def milestones(self) -> tuple[Milestone, ...]:
        listed = self.client.pages(f"/repos/{self.repo}/milestones", state="all")
        return tuple(self._milestone(one) for one in listed)

    def create_milestone(self, title: str, due_on: str | None) -> Milestone:
        values = {"title": title, **({"due_on": due_on} if due_on else {})}
        try:
            return self._milestone(self.client.add(f"/repos/{self.repo}/milestones", values))
        except RefusedError:
            found = next((milestone for milestone in self.milestones() if milestone.title == title), None)
            if found is None:
                raise
            return found

    def update_milestone(self, number: int, title: str, due_on: str | None) -> Milestone:
        values = {"title": title, **({"due_on": due_on} if due_on else {})}
        return self._milestone(self.client.change(f"/repos/{self.repo}/milestones/{number}", values))

    def _newest_with(self, mark: str) -> Issue | None:
        path = f"/repos/{self.repo}/issues"
        listed = self.client.get(path, state="all", sort="created", direction="desc", per_page=100)
        found = [self._issue(one) for one in listed] if isinstance(listed, list) else []
        return next((one for one in found if mark in one.body and one.trusted and not one.pull_request), None)

    def _issue(self, data: Any) -> Issue:
        found = _Reader(self.client, data)
        labels = data.get("labels")
        names = [label.get("name") if isinstance(label, dict) else label for label in labels or ()]
        milestone = data.get("milestone")
        author = data.get("user")
        return Issue(
            number=found.number("number"),
            title=found.text("title"),
            body=str(data.get("body") or "").replace("\r\n", "\n"),
            state=found.text("state"),
            state_reason=str(data["state_reason"]) if data.get("state_reason") else None,
            labels=tuple(str(name) for name in names if name),
            milestone=str(milestone.get("title") or "") if isinstance(milestone, dict) else "",
            trusted=data.get("author_association") in _TRUSTED
            or (isinstance(author, dict) and author.get("type") == "Bot"),
            pull_request="pull_request" in data,
        )

    def _milestone(self, data: Any) -> Milestone:
        found = _Reader(self.client, data)
        return Milestone(found.number("number"), found.text("title"), str(data.get("due_on") or "")[:10])


class _Reader:
    """Takes what has to be there out of an answer."""

    def __init__(self, client: Client, data: Any) -> None:
        self._where = client.address.host
        if not isinstance(data, dict):
            raise self._error("no object")
        self.data: Mapping[str, Any] = data

    def text(self, name: str) -> str:
        value = self.data.get(name)
        if not isinstance(value, str):
            raise self._error(f"no {name}")
        return value

    def number(self, name: str) -> int:
        value = self.data.get(name)
        if type(value) is not int or value <= 0:
            raise self._error(f"no {name}")
        return value

    def _error(self, told: str) -> UnavailableError:
        return UnavailableError(
            f"The server's answer has {told} where the API has one.",
            where=self._where,
            next_step="Look whether the address is that of the API: https://HOST/api/v3 on an Enterprise server.",
        )


def issues_disabled_error(repo: str, where: str) -> MirrorError:
    """The error for a repository that takes no issues."""
    return MirrorError(
        f"Issues are switched off in {repo}.", where=where, next_step="Switch them on in the repository's settings."
    )
