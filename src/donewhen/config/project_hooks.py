"""Finds donewhen's hooks in the settings files of agent runtimes in a project."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.config.agent_runtimes import LOCAL_HOOK_FILES, PROJECT_HOOK_FILES
from donewhen.foundation.files import TooLargeError, read_limited
from donewhen.foundation.size_limits import HOOK_FILE, SizeLimit

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


class HookFiles:
    """The settings files of agent runtimes in a project, each read once; an unreadable file has no hooks."""

    def __init__(self, root: Path, *, read: Callable[[Path, SizeLimit], bytes] = read_limited) -> None:
        self._files = {file: _read_json(root / file, read) for file in (*PROJECT_HOOK_FILES, *LOCAL_HOOK_FILES)}

    @property
    def hooks(self) -> tuple[ProjectHook, ...]:
        """The donewhen hooks in the files that belong to the project."""
        return tuple(
            ProjectHook(file, event, str(group.get("matcher", "")), str(hook["command"]), _seconds(hook.get("timeout")))
            for file in PROJECT_HOOK_FILES
            for event, group, hook in our_hooks(self._files[file])
        )

    @property
    def disabling(self) -> str | None:
        """The first file that disables all hooks of its runtime, or None."""
        return next((file for file, data in self._files.items() if data.get("disableAllHooks") is True), None)


def file_disabling_hooks(root: Path) -> str | None:
    """The first file of the project that disables all hooks of its runtime, or None."""
    return HookFiles(root).disabling


def _seconds(value: object) -> int:
    return value if type(value) is int else 0


def _read_json(path: Path, read: Callable[[Path, SizeLimit], bytes]) -> Json:
    try:
        data = json.loads(read(path, HOOK_FILE))
    except TooLargeError:
        # What it says is not known, so the worst is assumed.
        return {"disableAllHooks": True}
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
