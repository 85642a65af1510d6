"""Finds donewhen's hooks in the settings files of agent runtimes in a project."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.config.agent_runtimes import (
    PROJECT_HOOK_FILES,
    PROJECT_HOOK_SCRIPTS,
    RUNTIMES_WITH_HOOKS,
    TIMEOUTS_PER_SECOND,
    AgentRuntime,
    files_with_switches,
    off_switches,
)
from donewhen.config.hook_line import is_own_line, uses_script
from donewhen.config.hook_script import script_term
from donewhen.foundation.files import TooLargeError, read_limited
from donewhen.foundation.size_limits import HOOK_FILE, SizeLimit

Json = dict[str, Any]


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
                if isinstance(hook, dict) and is_own_line(str(hook.get("command", ""))):
                    yield event, group, hook


class HookFiles:
    """The settings files of agent runtimes in a project, each read once; an unreadable file has no hooks."""

    def __init__(self, root: Path, *, read: Callable[[Path, SizeLimit], bytes] = read_limited) -> None:
        names = dict.fromkeys(name for runtime in RUNTIMES_WITH_HOOKS for name in files_with_switches(runtime))
        self._files = {name: _read_json(root / name, read) for name in names}
        self._root = root
        self._read = read

    @property
    def hooks(self) -> tuple[ProjectHook, ...]:
        """The donewhen hooks in the files that belong to the project."""
        return tuple(
            ProjectHook(
                file,
                event,
                str(group.get("matcher", "")),
                str(hook["command"]),
                _whole(hook.get("timeout")) // TIMEOUTS_PER_SECOND[file],
            )
            for file in PROJECT_HOOK_FILES
            for event, group, hook in our_hooks(self._files[file] or {})
        )

    @property
    def terms(self) -> Iterator[str]:
        """The hooks as the project's terms name them, and the script that they start."""
        hooks = self.hooks
        for hook in hooks:
            matcher = f" ({hook.matcher})" if hook.matcher else ""
            yield f"{hook.file}: {hook.event}{matcher}: {hook.command} [{hook.timeout} s]"
        for file, script in zip(PROJECT_HOOK_FILES, PROJECT_HOOK_SCRIPTS, strict=True):
            if any(hook.file == file and uses_script(hook.command) for hook in hooks):
                yield script_term(script, self._content(script))

    @property
    def disabling(self) -> str | None:
        """The first file that disables all hooks of its runtime, or None."""
        files = ((runtime, file) for runtime in RUNTIMES_WITH_HOOKS for file in files_with_switches(runtime))
        return next((file for runtime, file in files if self._switched_off(runtime, file)), None)

    def _switched_off(self, runtime: AgentRuntime, file: str) -> bool:
        return self._files[file] is None or bool(off_switches(self._files[file] or {}, runtime))

    def _content(self, name: str) -> bytes | None:
        try:
            return self._read(self._root / name, HOOK_FILE)
        except OSError:
            return None


def file_disabling_hooks(root: Path) -> str | None:
    """The first file of the project that disables all hooks of its runtime, or None."""
    return HookFiles(root).disabling


def _whole(value: object) -> int:
    return value if type(value) is int else 0


def _read_json(path: Path, read: Callable[[Path, SizeLimit], bytes]) -> Json | None:
    """The content of a file; None if it is too large to know what it says, so that the worst is assumed."""
    try:
        data = json.loads(read(path, HOOK_FILE))
    except TooLargeError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
