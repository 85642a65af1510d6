"""Finds donewhen's hooks in the settings files of agent runtimes in a project."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.config.agent_runtimes import LOCAL_HOOK_FILES, PROJECT_HOOK_FILES
from donewhen.foundation.files import TooLargeError, read_limited
from donewhen.foundation.size_limits import HOOK_FILE

Json = dict[str, Any]

_OURS = re.compile(r"\bdonewhen\b[^|&;\n]* hook [a-z-]+ --runtime\b")


class ProjectHook(NamedTuple):
    """A donewhen hook in a file of the project."""

    file: str
    event: str
    matcher: str
    command: str
    timeout: int


def our_hooks(data: Json) -> Iterator[tuple[str, Json, Json]]:
    """Every donewhen hook in a runtime's settings: its event, its group, and the hook itself."""
    events = data.get("hooks")
    for event, groups in events.items() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for hook in hooks if isinstance(hooks, list) else ():
                if isinstance(hook, dict) and _OURS.search(str(hook.get("command", ""))):
                    yield event, group, hook


def project_hooks(root: Path) -> tuple[ProjectHook, ...]:
    """The donewhen hooks in the project's files; an unreadable file has none."""
    return tuple(
        ProjectHook(file, event, str(group.get("matcher", "")), str(hook["command"]), _seconds(hook.get("timeout")))
        for file in PROJECT_HOOK_FILES
        for event, group, hook in our_hooks(_read_json(root / file))
    )


def are_hooks_disabled(root: Path) -> bool:
    """Whether a file of the project disables all hooks of its runtime."""
    return file_disabling_hooks(root) is not None


def file_disabling_hooks(root: Path) -> str | None:
    """The first file of the project that disables all hooks of its runtime, or None."""
    files = (*PROJECT_HOOK_FILES, *LOCAL_HOOK_FILES)
    return next((file for file in files if _read_json(root / file).get("disableAllHooks") is True), None)


def _seconds(value: object) -> int:
    return value if type(value) is int else 0


def _read_json(path: Path) -> Json:
    try:
        data = json.loads(read_limited(path, HOOK_FILE))
    except TooLargeError:
        # What it says is not known, so the worst is assumed.
        return {"disableAllHooks": True}
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
