"""Keeps files out of git that donewhen generates: they differ on every branch, and are written again at any time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from donewhen.jobs.plan.workspace import Workspace, WorkspaceError

GENERATED: Mapping[str, tuple[str, ...]] = {
    "outputs": ("dashboard.html", "dashboard.json", "*-task-tracker.csv"),
    "logs": ("execution.jsonl",),
    "notes": ("lessons-index.json",),
}
"""The generated files, by the folder of the project that they are in."""


def keep_out_of_git(workspace: Workspace, folder: Path) -> None:
    """Create the folder if it is missing, with a ``.gitignore`` for its generated files, which ignores itself as well.

    One that is there stays as it is. If it can't be written, nothing else fails.
    """
    folder.mkdir(exist_ok=True)
    path = folder / ".gitignore"
    if not os.path.lexists(path):
        with suppress(OSError, WorkspaceError):
            workspace.put(path, _CONTENT[folder.name])


_HEAD = "# donewhen writes these files again at any time."
_CONTENT = {
    folder: "\n".join((_HEAD, *(f"/{name}" for name in (*names, ".gitignore")), "")).encode()
    for folder, names in GENERATED.items()
}
