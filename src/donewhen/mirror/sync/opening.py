"""Opening a project's mirror: is it switched on, where is it, may one ask, and is it the one that the map is of?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.jobs.contract.agreement import project_agreement
from donewhen.jobs.plan.job import Project
from donewhen.jobs.plan.workspace import Workspace
from donewhen.mirror.http.address import PUBLIC, VARIABLE, address_of, check_repository_name, repository_of
from donewhen.mirror.http.client import MAX_WAIT, Client
from donewhen.mirror.http.errors import GoneError, MirrorError
from donewhen.mirror.http.github_api import GitHubApi, find_repository, issues_disabled_error
from donewhen.mirror.http.response_cache import ResponseCache
from donewhen.mirror.sync.issue_map import IssueMap, map_path


@dataclass(frozen=True)
class Mirror:
    """A project and the repository that it is mirrored to."""

    workspace: Workspace
    project: Project
    api: GitHubApi
    asked_for: str
    """The repository as the plan has it; it may be called otherwise by now."""

    def known_here(self, known: IssueMap) -> IssueMap:
        """The map, if it is of this repository; numbers of another one would be somebody else's issues."""
        names = {self.api.repo.casefold(), self.asked_for.casefold(), ""}
        if known.repo.casefold() in names or self._renamed(known.repo):
            return known
        raise MirrorError(
            f"The map of issues is of {known.repo[:140]!r}, and the project is mirrored to {self.api.repo}.",
            where=self.workspace.where(map_path(self.workspace)),
            next_step="Move the map away to begin anew there, or set github_repo back.",
        )

    def _renamed(self, before: str) -> bool:
        try:
            now = find_repository(self.api.client, check_repository_name(before)).name
        except (GoneError, UsageError):
            return False
        return now.casefold() == self.api.repo.casefold()


def open_mirror(
    workspace: Workspace,
    *,
    keeping: bool,
    on_progress: Callable[[str], None] = lambda _: None,
    max_wait: float = MAX_WAIT,
    environ: Mapping[str, str] = os.environ,
    client: Callable[..., Client] = Client,
) -> Mirror:
    """The project's mirror. Without ``keeping``, answers are not kept: nothing is written at all."""
    project = workspace.project()
    if not project.github_enabled:
        raise UsageError(
            "Mirroring is off.",
            where=workspace.where(workspace.project_file),
            next_step="donewhen github enable --repo owner/name",
        )
    address = address_of(agreed_address(workspace, project, environ), environ)
    asked_for = named_repository(workspace, project, address.api)
    cache = ResponseCache(workspace.folder / "cache" / "github") if keeping else None
    asking = client(address, cache=cache, clock=workspace.clock, on_progress=on_progress, max_wait=max_wait)
    there = find_repository(asking, asked_for)
    name = check_repository_name(there.name, address.host)
    if not there.has_issues:
        raise issues_disabled_error(name, address.host)
    if name.casefold() != asked_for.casefold():
        on_progress(f"{asked_for} is called {name} now; donewhen github enable --repo {name} writes that down.")
    return Mirror(workspace, project, GitHubApi(asking, name), asked_for)


def named_repository(workspace: Workspace, project: Project, api: str) -> str:
    """The repository that the plan names, or else the git remote."""
    if project.github_repo:
        line = project.document.line_of("github_repo")
        return check_repository_name(project.github_repo, f"{workspace.where(project.path)}:{line}")
    return repository_of(workspace.root, api)


def agreed_address(workspace: Workspace, project: Project, environ: Mapping[str, str]) -> str | None:
    """The address in the settings, if a person has agreed to it: a token goes where it says."""
    setting = workspace.settings().github.api_url
    if setting == PUBLIC or environ.get(VARIABLE, "").strip():
        return setting
    seal = project_agreement(workspace, project).seal
    settled = seal.terms.get("settings", {}).get("github.api_url") if seal is not None else None
    if settled != setting:
        raise ConfigError(
            f"The settings send the token to {setting[:120]!r}, and no person has agreed to that.",
            where="github.api_url",
            next_step=f"donewhen agree; or set {VARIABLE} in the environment instead.",
        )
    return setting
