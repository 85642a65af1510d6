"""What is shown: a project with its jobs and missions, or a folder that is less than that."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from donewhen.config.loader import load
from donewhen.foundation.errors import ConfigError, DonewhenError, ExitCode
from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.plan.workspace import Workspace, WorkspaceError, find_workspace
from donewhen.judging.mission import MISSION_FILE


class PageNotFoundError(DonewhenError):
    """There is nothing under this address."""

    code = "not_there"
    exit_code = ExitCode.USAGE


class ProjectFolder(NamedTuple):
    """A folder, looked at anew for each page: jobs and missions may come while somebody is watching."""

    start: Path

    @property
    def workspace(self) -> Workspace | None:
        """The jobs here; None where there are none."""
        try:
            return find_workspace(self.start)
        except WorkspaceError:
            return None

    @property
    def root(self) -> Path:
        found = self.workspace
        return self.start if found is None else found.root

    def missions(self) -> dict[str, Path]:
        """The folders of the missions, by the names that they have in addresses."""
        root = self.root
        try:
            found = mission_folders(root, load(root))
        except ConfigError:
            # Settings that can't be read are said where they matter; looking goes on.
            found = {}
        for folder in (root, self.start):
            if (folder / MISSION_FILE).is_file():
                found.setdefault(folder.name, folder)
        return found

    def mission(self, name: str) -> Path:
        """A mission's folder. The name is looked up and never becomes part of a path."""
        found = self.missions().get(name)
        if found is None:
            raise PageNotFoundError(f"There is no mission {name!r}.", next_step="donewhen mission init")
        return found

    def jobs(self) -> Workspace:
        """The jobs, for a page that needs some."""
        found = self.workspace
        if found is None:
            raise PageNotFoundError("There are no jobs here.", next_step="Begin with: donewhen init")
        return found
