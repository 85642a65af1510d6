"""The folders of a project's missions, whose judges its gates may use."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from donewhen.config.settings import Settings
from donewhen.foundation.errors import ConfigError


def missions_folder(root: Path, settings: Settings) -> Path:
    """The folder that contains the missions of a project."""
    name = settings.judge.missions
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or PurePosixPath(name).is_absolute():
        raise ConfigError(f"judge.missions: {name!r} leads out of the project.", where=str(settings.source or root))
    return root.joinpath(*parts)


def mission_folders(root: Path, settings: Settings) -> dict[str, Path]:
    """The folders of a project's missions, by name."""
    parent = missions_folder(root, settings)
    return {path.parent.name: path.parent for path in sorted(parent.glob("*/mission.toml"))}
