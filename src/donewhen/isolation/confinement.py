"""What a confined command may reach, and what becomes of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from donewhen.foundation.process import CommandNotRunnableError
from donewhen.isolation.levels import Level, Network

PRIVATE_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/run")  # noqa: S108 - those of the machine are hidden
"""Folders of the machine that everybody can write to, or in which its services listen."""
_DOCUMENTED = "See what `donewhen doctor` says about isolation."


class ConfinementError(CommandNotRunnableError):
    """A command could not be run apart from everything else, or not to its end. That says nothing about the command."""

    code = "isolation_failed"

    def __init__(self, message: str, *, next_step: str | None = _DOCUMENTED) -> None:
        super().__init__(message, next_step=next_step)


@dataclass(frozen=True)
class Confinement:
    """What a command may reach. Every path is absolute."""

    level: Level
    network: Network
    """The network that is wanted; the command has :func:`donewhen.isolation.levels.network_at`."""
    room: Path
    """The folder with the files of the command, which it may write to."""
    place: Path
    """Where the command finds the room with namespaces: the folder that the room stands for."""
    home: Path
    """An empty folder to use as home folder."""
    scratch: Path
    """An empty folder for temporary files."""
    read_only: Mapping[Path, Path]
    """Folders and files that stay in reach although what lies around them does not. With namespaces, each is found at
    the path that it is mapped to; at the other levels, at its own."""
    writable: tuple[Path, ...]
    """Other folders that the command may write to."""
    hidden: tuple[Path, ...]
    """Folders and files that the command must not see."""
    home_place: Path | None = None
    """With namespaces, where the command finds its home folder; None for ``home`` itself."""


def covered_paths(confinement: Confinement) -> tuple[str, ...]:
    """The folders and files of which a command sees nothing, or something else: real paths."""
    home = () if confinement.home_place is None else (confinement.home_place,)
    paths = (confinement.place, *confinement.hidden, *home, *PRIVATE_FOLDERS)
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths))


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
