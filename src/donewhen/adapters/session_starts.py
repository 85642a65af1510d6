"""Tell the agent's shell the id of its session, so that `donewhen start` can record it.

Only a runtime that lets a hook set variables of its agents' commands can be asked that: Claude Code, by a file that it
reads before each command. The id decides nothing by itself (``jobs/record/workers.py``).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from donewhen.adapters.command_hooks import CANARY

if TYPE_CHECKING:
    from donewhen.adapters.command_hooks import Answer, Dialect

_VARIABLES_FILE = "CLAUDE_ENV_FILE"
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


def answer_start(dialect: Dialect, stdin: str, environ: Mapping[str, str]) -> Answer:
    """Answer the start of a session. It holds nobody, whatever goes wrong."""
    try:
        event = json.loads(stdin)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        return dialect.allow("session-start")
    if CANARY in event:
        return dialect.refuse("session-start", f"canary {str(event[CANARY])[:80]}")
    session, path = event.get("session_id"), environ.get(_VARIABLES_FILE, "")
    if isinstance(session, str) and _ID.fullmatch(session) and os.path.isabs(path):  # noqa: PTH117 - starts fast
        _append(path, f"export DONEWHEN_SESSION={session}\n")
    return dialect.allow("session-start")


def _append(path: str, line: str) -> None:
    try:
        # Not through a link, and never waiting for a pipe.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return
    try:
        os.write(descriptor, line.encode())
    except OSError:
        return
    finally:
        os.close(descriptor)
