"""The folder that is served: a project with jobs and missions, or one without jobs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from donewhen.config.loader import load
from donewhen.foundation.errors import ConfigError, DonewhenError, ExitCode
from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.plan.workspace import Workspace, WorkspaceError, find_workspace
from donewhen.judging.mission import MISSION_FILE


class PageNotFoundError(DonewhenError):
    """The page does not exist."""

    code = "not_there"
    exit_code = ExitCode.USAGE


class ProjectFolder(NamedTuple):
    """A folder, read again for each page, because jobs and missions may be added meanwhile."""

    start: Path

    @property
    def workspace(self) -> Workspace | None:
        """The workspace; None if there are no jobs."""
        try:
            return find_workspace(self.start)
        except WorkspaceError:
            return None

    @property
    def root(self) -> Path:
        result = self.workspace
        return self.start if result is None else result.root

    def missions(self) -> dict[str, Path]:
        """Return the mission folders by the names used in URLs."""
        root = self.root
        try:
            result = mission_folders(root, load(root))
        except ConfigError:
            # Unreadable settings are reported elsewhere; pages still work.
            result = {}
        for folder in (root, self.start):
            if (folder / MISSION_FILE).is_file():
                result.setdefault(folder.name, folder)
        return result

    def mission(self, name: str) -> Path:
        """Return a mission's folder. The name is looked up and never used in a path."""
        result = self.missions().get(name)
        if result is None:
            raise PageNotFoundError(f"There is no mission {name!r}.", next_step="donewhen mission init")
        return result

    def jobs(self) -> Workspace:
        """Return the workspace, or raise PageNotFoundError if there are no jobs."""
        result = self.workspace
        if result is None:
            raise PageNotFoundError("There are no jobs here.", next_step="Create a project: donewhen init --jobs")
        return result
