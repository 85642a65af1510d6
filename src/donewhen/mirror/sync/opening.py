"""Open a project's mirror: check that it is enabled, allowed, reachable, and the one the map belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.jobs.contract.agreement import project_agreement
from donewhen.jobs.ledger.terms_content import ProjectTerms
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
    """A project and its repository on GitHub."""

    workspace: Workspace
    project: Project
    api: GitHubApi
    asked_for: str
    """The repository name in the plan; it may have been renamed since."""

    def known_here(self, known: IssueMap) -> IssueMap:
        """Return the map if it belongs to this repository; otherwise its numbers would be unrelated issues."""
        names = {self.api.repo.casefold(), self.asked_for.casefold(), ""}
        if known.repo.casefold() in names or self._was_renamed(known.repo):
            return known
        raise MirrorError(
            f"The issue map belongs to {known.repo[:140]!r}, but the project is mirrored to {self.api.repo}.",
            where=self.workspace.where(map_path(self.workspace)),
            next_step="Move the map away to start over there, or set github_repo back.",
        )

    def _was_renamed(self, before: str) -> bool:
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
    """Open the project's mirror. Without ``keeping``, responses are not cached and nothing is written."""
    project = workspace.project()
    if not project.github_enabled:
        raise UsageError(
            "Mirroring is disabled.",
            where=workspace.where(workspace.project_file),
            next_step="donewhen github enable --repo owner/name",
        )
    address = address_of(agreed_address(workspace, project, environ), environ)
    asked_for = named_repository(workspace, project, address.api)
    cache = ResponseCache(workspace.folder / "cache" / "github") if keeping else None
    api_client = client(address, cache=cache, clock=workspace.clock, on_progress=on_progress, max_wait=max_wait)
    repository = find_repository(api_client, asked_for)
    name = check_repository_name(repository.name, address.host)
    if not repository.has_issues:
        raise issues_disabled_error(name, address.host)
    if name.casefold() != asked_for.casefold():
        on_progress(f"{asked_for} was renamed to {name}. To update the plan: donewhen github enable --repo {name}")
    return Mirror(workspace, project, GitHubApi(api_client, name), asked_for)


def named_repository(workspace: Workspace, project: Project, api: str) -> str:
    """Return the repository from the plan, else from the git remote."""
    if project.github_repo:
        line = project.document.line_of("github_repo")
        return check_repository_name(project.github_repo, f"{workspace.where(project.path)}:{line}")
    return repository_of(workspace.root, api)


def agreed_address(workspace: Workspace, project: Project, environ: Mapping[str, str]) -> str | None:
    """Return the API address in the settings; raise ConfigError unless a person has agreed to send the token there."""
    setting = workspace.settings().github.api_url
    if setting == PUBLIC or environ.get(VARIABLE, "").strip():
        return setting
    seal = project_agreement(workspace, project).seal
    terms = None if seal is None else seal.terms
    if not isinstance(terms, ProjectTerms) or terms.settings.get("github.api_url") != setting:
        raise ConfigError(
            f"The settings send the token to {setting[:120]!r}, and no person has agreed to that address.",
            where="github.api_url",
            next_step=f"donewhen agree; or set {VARIABLE} in the environment instead.",
        )
    return setting
