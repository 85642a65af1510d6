"""Where a command of a room runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class RoomPlace(NamedTuple):
    """Where a command runs, and what it must not find instead."""

    root: Path
    """The project from which programs are taken."""
    top: Path
    """The repository in the checkout, whose installed packages may lead back to it."""
    project: Path
    """The counterpart of the project in the room."""
    folder: Path
    """The counterpart of the repository."""
