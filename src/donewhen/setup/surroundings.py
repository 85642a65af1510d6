"""What is in a project and around it that decides how donewhen is set up there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from donewhen.adapters.hook_targets import HOOK_TARGETS, HookTarget
from donewhen.config import Settings, load
from donewhen.foundation.errors import UsageError
from donewhen.foundation.git import git, worktree_root
from donewhen.setup.test_commands import TestCommand, find_test_commands

Host = Literal["github", "gitlab"]


@dataclass(frozen=True)
class Surroundings:
    """What was found."""

    root: Path
    runtimes: tuple[str, ...]
    """The agent runtimes that are installed or already configured here."""
    commands: tuple[TestCommand, ...]
    git_top: Path | None
    host: Host | None
    settings: Settings
    """The settings that apply here; they may be those of a folder above."""

    @property
    def has_settings(self) -> bool:
        return self.settings.source is not None and self.settings.root == self.root


def look_around(root: Path, environ: Mapping[str, str]) -> Surroundings:
    """Look at the project in ``root``. Raise UsageError where donewhen must not be set up."""
    root = root.resolve()
    _refuse_home(root, environ)
    which = partial(shutil.which, path=environ.get("PATH"))
    runtimes = tuple(name for name, target in HOOK_TARGETS.items() if _is_here(target, root, environ))
    top = worktree_root(root)
    return Surroundings(
        root, runtimes, tuple(find_test_commands(root, which)), top, _host(root if top is None else top), load(root)
    )


def _refuse_home(root: Path, environ: Mapping[str, str]) -> None:
    """Hooks in the home folder would be those of a person, for all projects."""
    homes = {Path.home().resolve(), Path(environ.get("HOME", "/")).resolve(), Path("/")}
    if root in homes:
        raise UsageError(
            "This is not the folder of a project.",
            where=str(root),
            next_step="Go to your project's folder first. For hooks in all projects: donewhen hooks install --user",
        )


def _is_here(target: HookTarget, root: Path, environ: Mapping[str, str]) -> bool:
    about = target.about
    return (
        shutil.which(target.client.program, path=environ.get("PATH")) is not None
        or (root / about.project_folder).is_dir()
        or any(environ.get(name) for name in about.variables)
    )


def _host(top: Path) -> Host | None:
    remotes = (git(top, "remote", "-v") or b"").decode("utf-8", "replace").lower()
    if (top / ".gitlab-ci.yml").is_file() or "gitlab" in remotes:
        return "gitlab"
    if (top / ".github").is_dir() or "github" in remotes:
        return "github"
    return None
