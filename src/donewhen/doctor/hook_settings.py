"""The settings files of a runtime, and every place in them that mentions a hook of donewhen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from donewhen.adapters.hook_files import read_settings
from donewhen.adapters.hook_targets import HookTarget
from donewhen.config.project_hooks import Json
from donewhen.foundation.errors import ConfigError

Where = Literal["project", "local", "switch", "user"]
"""``switch``: a file in which hooks can only be switched off."""

_MENTIONED = re.compile(r"\bdonewhen\b|\bhook[ \t]+\S+[ \t]+--runtime\b")
_LINE = re.compile(r"\bdonewhen\b[^|&;\n]*?[ /]hook['\"]?[ \t]+(?P<kind>\S+)[ \t]+--runtime[ =][\w-]+")
_MOST_NESTED = 50


@dataclass(frozen=True)
class SettingsFile:
    """One settings file of a runtime; a missing file is an empty object."""

    where: Where
    path: Path
    data: Json


@dataclass(frozen=True)
class Entry:
    """A hook in a settings file, whether or not the runtime would find it there."""

    place: str
    """Where it is, such as ``hooks.Stop[0].hooks[0]``."""
    event: str | None
    """The event under which it is; None if it is not where the runtime looks for hooks."""
    group: Json
    hook: Json
    kind: str | None
    """The kind of hook in its command line; None if the line doesn't call a hook of donewhen."""

    @property
    def command(self) -> str:
        return str(self.hook.get("command"))


@dataclass(frozen=True)
class RuntimeSettings:
    """The settings files of one runtime for one project."""

    target: HookTarget
    root: Path
    files: tuple[SettingsFile, ...]

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def hook_files(self) -> tuple[SettingsFile, ...]:
        """The files in which hooks are entered."""
        return tuple(file for file in self.files if file.where != "switch")

    def entries(self, where: Where) -> list[Entry]:
        """Our hooks that the runtime finds in this file."""
        return [
            entry for file in self.hook_files if file.where == where for entry in entries_in(file) if is_ours(entry)
        ]

    @property
    def installed(self) -> tuple[Where, ...]:
        """The files with hooks of ours that the runtime finds."""
        return tuple(file.where for file in self.hook_files if self.entries(file.where))

    def has_event(self, event: str | None) -> bool:
        """Whether install writes a hook for this event of the runtime."""
        return any(event == known for known, _, _ in self.target.events)

    def with_kind(self, kind: str) -> tuple[str, ...]:
        """The runtime's events for this kind of hook."""
        return tuple(event for event, known, _ in self.target.events if known == kind)


def read_runtime_settings(target: HookTarget, root: Path, environ: Mapping[str, str]) -> RuntimeSettings:
    """Read all settings files of a runtime. Raise :class:`ConfigError` for a file that can't be read."""
    project = target.path("project", root, environ)
    paths: list[tuple[Where, Path]] = [("project", project)]
    paths += [("local", project.with_name(name)) for name in target.about.local_hook_files]
    paths += [("switch", root / name) for name in target.about.switch_files]
    user = target.path("user", root, environ)
    if user != project:
        paths.append(("user", user))
    return RuntimeSettings(target, root, tuple(SettingsFile(where, path, _data(where, path)) for where, path in paths))


def _data(where: Where, path: Path) -> Json:
    try:
        return read_settings(path)
    except ConfigError:
        # A file of another runtime has a diagnosis there.
        if where == "switch":
            return {}
        raise


def is_ours(entry: Entry) -> bool:
    """Whether the runtime finds the hook, and it calls donewhen."""
    return entry.event is not None and entry.kind is not None


def entries_in(file: SettingsFile) -> list[Entry]:
    """Every hook of the file where the runtime looks, and everything else in it that mentions donewhen."""
    found = list(_well_placed(file.data))
    placed = {id(entry.hook) for entry in found}
    found += [entry for entry in _anywhere(file.data, "", 0) if id(entry.hook) not in placed]
    return found


def _well_placed(data: Json) -> Iterator[Entry]:
    events = data.get("hooks")
    for event, groups in events.items() if isinstance(events, dict) else ():
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for position, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                if isinstance(hook, dict):
                    yield Entry(f"hooks.{event}[{number}].hooks[{position}]", event, group, hook, _kind(hook))


def _anywhere(value: object, place: str, depth: int) -> Iterator[Entry]:
    """Every object with a string that mentions donewhen, wherever it is."""
    if depth > _MOST_NESTED:
        return
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _anywhere(item, f"{place}[{number}]", depth + 1)
    elif isinstance(value, dict):
        if any(isinstance(text, str) and _LINE.search(text) for text in value.values()):
            yield Entry(place or "the file", None, {}, value, _kind(value))
        for key, item in value.items():
            yield from _anywhere(item, f"{place}.{key}" if place else str(key), depth + 1)


def _kind(hook: Mapping[str, Any]) -> str | None:
    lines = [text for text in hook.values() if isinstance(text, str)]
    return next((found["kind"] for text in lines if (found := _LINE.search(text))), None)


def mentions_donewhen(entry: Entry) -> bool:
    """Whether the hook's command line looks as if it were meant to be one of ours."""
    return _MENTIONED.search(entry.command) is not None
