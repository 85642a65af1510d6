"""Finding and reading the settings. Standard library only: hooks start here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from donewhen.config.settings import GuardSettings, Settings, TestSettings
from donewhen.foundation.errors import ConfigError

CONFIG_FILE = "donewhen.toml"
PROJECT_FILE = "pyproject.toml"

_TABLES: dict[str, type[Any]] = {
    "stop": GuardSettings,
    "subagent_stop": GuardSettings,
    "task_completed": GuardSettings,
    "tests": TestSettings,
}


def load(start: Path) -> Settings:
    """The settings for work in ``start``: of the nearest folder upwards that has any, or the defaults."""
    for folder in _upwards(start):
        found = _in_folder(folder)
        if found is not None:
            return found
        if (folder / ".git").exists():
            return Settings(root=folder)
    return Settings(root=start.resolve())


def find_root(start: Path) -> Path:
    """The folder that the settings belong to."""
    return load(start).root


def _upwards(start: Path) -> Iterator[Path]:
    folder = start.resolve()
    yield folder
    yield from folder.parents


def _in_folder(folder: Path) -> Settings | None:
    own, project = folder / CONFIG_FILE, folder / PROJECT_FILE
    own_table = _parsed(own)
    project_table = _parsed(project)
    shared = None
    if project_table is not None:
        tools = project_table.get("tool", {})
        shared = tools.get("donewhen") if isinstance(tools, dict) else None
    if own_table is not None and shared is not None:
        raise ConfigError(
            f"Settings stand both here and under [tool.donewhen] in {PROJECT_FILE}.",
            where=str(own),
            next_step="Keep one of them.",
        )
    if own_table is not None:
        return _settings(own_table, own, "")
    return None if shared is None else _settings(shared, project, "tool.donewhen.")


def _parsed(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"The file can't be read: {error.strerror}.", where=str(path)) from error
    if path.name == PROJECT_FILE and b"donewhen" not in text:
        return None
    import tomllib

    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The file is not valid TOML: {error}.", where=str(path)) from error


def _settings(table: object, path: Path, prefix: str) -> Settings:
    given: set[str] = set()
    values = _Reader(path, prefix, given).table(table, Settings, "")
    return Settings(**values, root=path.parent, source=path, given=frozenset(given))


class _Reader:
    """Reads tables into dataclasses by their fields, and names the exact key when something does not fit."""

    def __init__(self, path: Path, prefix: str, given: set[str]) -> None:
        self._path = path
        self._prefix = prefix
        self._given = given

    def table(self, data: object, kind: type[Any], name: str) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise self._error(name.rstrip("."), "must be a table")
        known = {one.name: one for one in fields(kind) if one.metadata.get("setting", True)}
        values: dict[str, Any] = {}
        for key, value in data.items():
            if key not in known:
                import difflib

                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}."
                raise self._error(f"{name}{key}", f"is not a setting; {hint}")
            values[key] = self._value(value, known[key], f"{name}{key}")
        missing = [one for one in known.values() if _required(one) and one.name not in values]
        if missing:
            raise self._error(f"{name}{missing[0].name}", "is missing")
        return values

    def _value(self, value: object, setting: Field[Any], name: str) -> Any:
        if setting.name in _TABLES:
            kind = _TABLES[setting.name]
            return kind(**self.table(value, kind, f"{name}."))
        self._given.add(name)
        match setting.type:
            case "tuple[str, ...]":
                if isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value):
                    return tuple(value)
                raise self._error(name, "must be a list of non-empty strings")
            case "str" | "str | None":
                if isinstance(value, str) and value.strip():
                    return value
                raise self._error(name, "must be a non-empty string")
            case "float":
                if _is_number(value, (int, float)):
                    return float(value)  # type: ignore[arg-type]
                raise self._error(name, "must be a positive number")
            case "int":
                if _is_number(value, (int,)):
                    return value
                raise self._error(name, "must be a positive whole number")
            case unknown:  # pragma: no cover - a mistake in settings.py
                raise AssertionError(f"no reader for {unknown}")

    def _error(self, name: str, problem: str) -> ConfigError:
        full = f"{self._prefix}{name}".rstrip(".") or "the settings"
        return ConfigError(f"{full} {problem}", where=str(self._path), next_step="See: donewhen config show")


def _required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _is_number(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value) and value > 0  # type: ignore[arg-type, operator]
