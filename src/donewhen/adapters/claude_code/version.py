"""Whether the Claude Code of this machine knows every event that our hooks are for."""

from __future__ import annotations

import re
import shutil
import subprocess

KNOWS_EVERY_EVENT = (2, 1, 81)
"""Older versions ignore a whole settings file that names an event which they don't know: all hooks in it are off."""


def too_old_version(timeout: float = 20.0) -> str | None:
    """Return the version of the ``claude`` on the PATH if it is too old; None if it is not, or can't be found out."""
    program = shutil.which("claude")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    found = re.match(r"(\d+)\.(\d+)\.(\d+)\b", done.stdout)
    if found is None or tuple(map(int, found.groups())) >= KNOWS_EVERY_EVENT:
        return None
    return found[0]
