"""Finds and parses the settings. Standard library only, so that hooks start fast."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, cast

from donewhen.config.settings import (
    REQUIRE_JOB,
    ApprovalSettings,
    GitHubSettings,
    GuardSettings,
    JobSettings,
    JudgeSettings,
    Settings,
    StrengthSettings,
    TestSettings,
    VerifySettings,
)
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import read_limited
from donewhen.foundation.size_limits import SETTINGS, SizeLimit
from donewhen.isolation.levels import LEVELS
from donewhen.signs.exceptions import read_exception
from donewhen.signs.kinds import KINDS

CONFIG_FILE = "donewhen.toml"
PROJECT_FILE = "pyproject.toml"

_MAX_NUMBER = 10**12

# By the declared type of a field.
_TABLES: dict[str, type[Any]] = {
    "GuardSettings": GuardSettings,
    "TestSettings | None": TestSettings,
    "JobSettings": JobSettings,
    "StrengthSettings": StrengthSettings,
    "JudgeSettings": JudgeSettings,
    "VerifySettings": VerifySettings,
    "ApprovalSettings": ApprovalSettings,
    "GitHubSettings": GitHubSettings,
}


def load(start: Path, *, read: Callable[[Path, SizeLimit], bytes] = read_limited) -> Settings:
    """Load the settings for ``start``: from it or its nearest parent that has settings, or else the defaults.

    ``read`` reads a file.
    """
    first = start.resolve()
    for folder in (first, *first.parents):
        settings = _load_folder(folder, read, trusted=folder == first)
        if settings is not None:
            return settings
        if (folder / ".git").exists():
            return Settings(root=folder)
    return Settings(root=first)


def find_root(start: Path) -> Path:
    """The folder that the settings belong to, even if they are invalid."""
    try:
        return load(start).root
    except ConfigError as error:
        return Path(error.where).parent if error.where else start.resolve()


def has_settings(folder: Path) -> bool:
    """Whether this folder has a settings file, valid or not."""
    return os.path.lexists(folder / CONFIG_FILE)


def _load_folder(folder: Path, read: Callable[[Path, SizeLimit], bytes], *, trusted: bool) -> Settings | None:
    own, project = folder / CONFIG_FILE, folder / PROJECT_FILE
    own_table = _parse_file(own, read)
    project_table = _parse_file(project, read)
    shared = None
    if project_table is not None:
        tools = project_table.get("tool", {})
        shared = tools.get("donewhen") if isinstance(tools, dict) else None
    if own_table is not None and shared is not None:
        raise ConfigError(
            f"There are settings both in this file and under [tool.donewhen] in {PROJECT_FILE}.",
            where=str(own),
            next_step="Keep one of them.",
        )
    if own_table is not None:
        return _build_settings(own_table, own if trusted else _check_owner(own), "")
    return (
        None
        if shared is None
        else _build_settings(shared, project if trusted else _check_owner(project), "tool.donewhen.")
    )


def _check_owner(path: Path) -> Path:
    """Raise ConfigError if a file in a parent folder belongs to another user, who could have placed it there."""
    if path.stat().st_uid not in (os.getuid(), 0) and not (path.parent / ".git").exists():
        raise ConfigError(
            "These settings are in a parent folder of the project and belong to another user.",
            where=str(path),
            next_step="Add a settings file to the project, or make it a git repository.",
        )
    return path


def _parse_file(path: Path, read: Callable[[Path, SizeLimit], bytes]) -> dict[str, Any] | None:
    try:
        text = read(path, SETTINGS)
    except FileNotFoundError:
        if path.is_symlink():
            raise ConfigError("The file is a broken symlink.", where=str(path)) from None
        return None
    except OSError as error:
        raise ConfigError(f"The file can't be read: {error.strerror}.", where=str(path)) from error
    if path.name == PROJECT_FILE and b"donewhen" not in text:
        return None
    import tomllib

    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The file is not valid TOML: {error}.", where=str(path)) from error


def _build_settings(table: object, path: Path, prefix: str) -> Settings:
    given: set[str] = set()
    values = _Reader(path, prefix, given).table(table, Settings, "")
    return Settings(**values, root=path.parent, source=path, given=frozenset(given))


class _Reader:
    """Reads tables into dataclasses; errors name the exact key."""

    def __init__(self, path: Path, prefix: str, given: set[str]) -> None:
        self._path = path
        self._prefix = prefix
        self._given = given

    def table(self, data: object, kind: type[Any], name: str) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise self._error(name.rstrip("."), "must be a table")
        known = {field.name: field for field in fields(kind) if field.metadata.get("setting", True)}
        values: dict[str, Any] = {}
        for key, value in data.items():
            if key not in known:
                import difflib

                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"expected one of: {', '.join(known)}"
                raise self._error(f"{name}{key}", f"is not a setting; {hint}")
            values[key] = self._value(value, known[key], f"{name}{key}")
        missing = [field for field in known.values() if _is_required(field) and field.name not in values]
        if missing:
            raise self._error(f"{name}{missing[0].name}", "is missing")
        return values

    def _value(self, value: Any, setting: Field[Any], name: str) -> Any:
        kind = _TABLES.get(str(setting.type))
        if kind is not None:
            return kind(**self.table(value, kind, f"{name}."))
        self._given.add(name)
        match setting.type:
            case "tuple[str, ...]":
                if isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value):
                    kept = cast("tuple[str, ...]", setting.default) if "adds_to_default" in setting.metadata else ()
                    return tuple(dict.fromkeys((*kept, *value)))
                raise self._error(name, "must be a list of non-empty strings")
            case "SignExceptions":
                if isinstance(value, list) and all(isinstance(item, str) and read_exception(item) for item in value):
                    return tuple(dict.fromkeys(value))
                problem = (
                    f'must be a list such as ["/src/plugin/**: test-machinery"], of these kinds: {", ".join(KINDS)}'
                )
                raise self._error(name, problem)
            case "str" | "str | None":
                if isinstance(value, str) and value.strip():
                    return value
                raise self._error(name, "must be a non-empty string")
            case "float":
                if _is_number(value, (int, float)):
                    return float(value)
                raise self._error(name, "must be a positive number")
            case "Level | None":
                if value in LEVELS:
                    return value
                raise self._error(name, f"must be one of: {', '.join(LEVELS)}")
            case "RequireJob":
                if value in REQUIRE_JOB:
                    return value
                raise self._error(name, f"must be one of: {', '.join(REQUIRE_JOB)}")
            case "ProbingTime":
                if value in ("suite", "off"):
                    return value
                if _is_number(value, (int, float)):
                    return float(value)
                raise self._error(name, 'must be "suite", "off" or a positive number of seconds')
            case "bool":
                if type(value) is bool:
                    return value
                raise self._error(name, "must be true or false")
            case "int":
                if _is_number(value, (int,)):
                    return value
                raise self._error(name, "must be a positive whole number")
            case unknown:  # pragma: no cover - a mistake in settings.py
                raise AssertionError(f"no reader for {unknown}")

    def _error(self, name: str, problem: str) -> ConfigError:
        full = f"{self._prefix}{name}".rstrip(".") or "the settings"
        stop = "" if problem.endswith((".", "?")) else "."
        return ConfigError(f"{full} {problem}{stop}", where=str(self._path))


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _is_number(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether it is a positive number within the limit."""
    return type(value) in kinds and 0 < value < _MAX_NUMBER
