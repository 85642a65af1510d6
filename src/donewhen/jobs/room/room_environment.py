"""The variables with which programs run in a room, so that Python finds the room's modules and not the checkout's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

_STARTUP = Path(__file__).parent / "startup" / "sitecustomize.py"


def write_startup(folder: Path, top: Path, room: Path) -> None:
    """Write the folder that Python programs in the room read first."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_STARTUP, folder / "sitecustomize.py")
    pairs = {str(top): str(room), os.path.realpath(top): os.path.realpath(room)}
    lines = [line for pair in sorted(pairs.items()) for line in pair]
    (folder / "map.txt").write_text("\n".join(lines), encoding="utf-8", errors="surrogateescape")


def room_environment(environment: Mapping[str, str], startup: Path) -> dict[str, str]:
    """The variables for a room."""
    path = environment.get("PYTHONPATH")
    return {**environment, "PYTHONPATH": f"{startup}{os.pathsep}{path}" if path else str(startup)}


def program_in_room(program: Path, root: Path, room: Path) -> Path:
    """A program of the project as it lies in the room; any other program as it is."""
    # `../venv/bin/python` is no program of the project.
    if ".." in program.parts:
        program = Path(os.path.normpath(program))
    if not program.is_relative_to(root):
        return program
    return room / program.relative_to(root)
