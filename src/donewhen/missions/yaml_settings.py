"""Read the settings of a mission from YAML: which have a counterpart in mission.toml, and which don't."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import read_text_limited
from donewhen.foundation.json_parsing import parse_json
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.size_limits import MISSION
from donewhen.judging.guidance import KEY, seed_guidance
from donewhen.judging.mission_settings import (
    ManualReview,
    MissionBudget,
    MissionFile,
    Reflection,
    Rules,
    Split,
    convert_settings,
)
from donewhen.missions.yaml_lines import line_of_key, yaml_lines

SUFFIXES = (".yaml", ".yml")
_TABLES: dict[str, type[msgspec.Struct]] = {
    "manual_review": ManualReview,
    "reflection": Reflection,
    "rules": Rules,
    "split": Split,
    "budget": MissionBudget,
}
_RENAMED = {"reflection.change_cap_per_epoch": "max_changes_per_epoch"}
_SAMPLERS = ("sampler", "rule_search.train_sampler")
_TICKETS = ("stage_a_paths", "tickets")


class _SamplerError(ValueError):
    """A sampling grid can't be read."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class YamlMission:
    """What a YAML file says about a mission."""

    path: Path
    mission: str | None
    language: str | None
    tickets: tuple[Path, ...]
    guidance: Path | None
    settings: dict[str, Any]
    """Settings of mission.toml."""
    no_counterpart: tuple[str, ...]
    """Keys of the file that mission.toml has no setting for."""


def read_yaml_mission(path: Path) -> YamlMission:
    """Read a YAML file; raise ConfigError if it can't be read, names no tickets, or has an invalid value."""
    data, text = _read_yaml(path)
    used: set[str] = set()
    lines = yaml_lines(text)
    try:
        settings = _settings(data, used)
    except _SamplerError as error:
        raise ConfigError(error.args[0], where=f"{path}:{line_of_key(lines, [error.key])}") from error
    # Checked now, so that an error names the YAML file and its line.
    convert_settings(
        {"mission": "m", **settings},
        MissionFile,
        text,
        str(path),
        lambda keys: line_of_key(lines, _names_in_yaml(".".join(keys))),
    )
    tickets = next((data[name] for name in _TICKETS if data.get(name)), None)
    names = [tickets] if isinstance(tickets, str) else tickets
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ConfigError(
            "The file names no tickets.", where=str(path), next_step="List ticket files (JSONL) in stage_a_paths."
        )
    used |= {name for name in _TICKETS if name in data}
    guidance = _guidance_path(data, used)
    own = {name: data.get(name) for name in ("mission", "language")}
    used |= {name for name, value in own.items() if isinstance(value, str)}
    left = sorted(dict.fromkeys(name for name in _leaves(data) if name not in used))
    return YamlMission(
        path,
        own["mission"] if isinstance(own["mission"], str) else None,
        own["language"] if isinstance(own["language"], str) else None,
        tuple(_find_file(name, path) for name in names),
        None if guidance is None else _find_file(guidance, path),
        settings,
        tuple(left),
    )


@dataclass(frozen=True)
class BroughtSettings:
    """Rules and settings that come with a mission's tickets."""

    rules: dict[str, str] | None
    settings: dict[str, Any]
    no_counterpart: tuple[str, ...]


def read_brought(config: YamlMission | None, guidance: Path | None, mission: str) -> BroughtSettings:
    """The rules of a guidance file, chosen or named in a YAML file, and the settings of the YAML file."""
    path = guidance or (config.guidance if config is not None else None)
    rules, left = (None, ()) if path is None else read_initial_rules(path, mission)
    if config is None:
        return BroughtSettings(rules, {}, left)
    return BroughtSettings(rules, config.settings, (*config.no_counterpart, *left))


def read_initial_rules(path: Path, mission: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read the rules of a mission from a guidance file, and the names of what is not taken over.

    The file holds the rules by key, or the guidance of one or more missions by name.
    """
    try:
        data = parse_json(read_text_limited(path, MISSION))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError("The guidance can't be read as JSON.", where=str(path)) from error
    left: list[str] = []
    if isinstance(data, dict) and not any(KEY.fullmatch(key) for key in data):
        entry = data.get(mission)
        if not isinstance(entry, dict) or not isinstance(entry.get("experiences"), dict):
            known = one_line(", ".join(map(str, data)), 200)
            raise ConfigError(
                f"The guidance has no rules for the mission {one_line(mission, 60)!r}.",
                where=str(path),
                next_step=f"Choose one of these with --name: {known}.",
            )
        left += [f"guidance.{name}" for name in entry if name != "experiences"]
        left += [f"guidance.{name}" for name in data if data[name] is not entry]
        data = entry["experiences"]
    if not isinstance(data, dict):
        raise ConfigError("The guidance is not a table of rules.", where=str(path))
    rules = {str(key): text for key, text in data.items()}
    seed_guidance(mission, rules, "", str(path))
    return rules, tuple(left)


def _read_yaml(path: Path) -> tuple[dict[str, Any], str]:
    try:
        text = read_text_limited(path, MISSION)
        data = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"The file can't be read: {reason}.", where=str(path)) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        raise ConfigError("The file is not valid YAML.", where=place) from error
    if not isinstance(data, dict):
        raise ConfigError("The file is not a table of settings.", where=str(path))
    return {str(name): value for name, value in data.items()}, text


def _settings(data: Mapping[str, Any], used: set[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, target in (("seed", "seed"), ("epochs", "epochs"), ("runner.epochs", "epochs")):
        value = _get(data, name)
        if value is not None:
            settings[target] = value
            used.add(name)
    for name, kind in _TABLES.items():
        known = {info.encode_name for info in msgspec.structs.fields(kind)}
        given = data.get(name)
        table = {}
        for key, value in given.items() if isinstance(given, dict) else ():
            field = _RENAMED.get(f"{name}.{key}", key)
            if field in known:
                used.add(f"{name}.{key}")
                if value is not None:
                    table[field] = value
        if table:
            settings[name] = table
    sampler = next((choice for choice in _SAMPLERS if _get(data, choice)), None)
    if sampler is not None:
        settings["sampler"] = _sampler(_get(data, sampler), sampler, used)
    return settings


def _sampler(given: Any, name: str, used: set[str]) -> list[dict[str, Any]]:
    """The rows of a sampling grid. Rows that differ only in what has no counterpart are more samples of one."""
    grid = given.get("grid") if isinstance(given, dict) else given
    each = given.get("samples_per_decode", 1) if isinstance(given, dict) else 1
    samples: dict[Any, int] = {}
    for row in grid if isinstance(grid, list) else ():
        if isinstance(row, dict) and isinstance(row.get("temperature"), int | float) and isinstance(each, int):
            count = row.get("samples", each)
            if not isinstance(count, int):
                raise _SamplerError(f"{name}: samples must be an integer.", f"{name}.grid.samples")
            samples[row["temperature"]] = samples.get(row["temperature"], 0) + count
    if not samples:
        raise _SamplerError(f"{name}: no row with a temperature.", name)
    used |= {f"{name}.grid.temperature", f"{name}.temperature", f"{name}.samples_per_decode"}
    used |= {f"{name}.grid.samples", f"{name}.samples"}
    return [{"temperature": float(temperature), "samples": count} for temperature, count in samples.items()]


def _guidance_path(data: Mapping[str, Any], used: set[str]) -> str | None:
    for name in ("guidance.path", "initial_guidance"):
        value = _get(data, name)
        if isinstance(value, str):
            used.add(name)
            return value
    return None


def _find_file(name: str, config: Path) -> Path:
    """A file that a configuration names: relative to the configuration, or to the current folder."""
    places = [config.parent / name, Path(name)]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ConfigError(f"The file {one_line(name, 100)} does not exist.", where=str(config))
    return found


def _names_in_yaml(name: str) -> list[str]:
    """The names that a YAML file may have for a setting of mission.toml."""
    table, _, field = name.partition(".")
    if table == "sampler":
        return [f"{sampler}{part}" for sampler in _SAMPLERS for part in (f".grid.{field}", f".{field}", "") if field]
    renamed = [given for given, known in _RENAMED.items() if name == f"{table}.{known}"]
    return [*renamed, *(["runner.epochs"] if name == "epochs" else []), name]


def _get(data: Mapping[str, Any], name: str) -> Any:
    value: Any = data
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _leaves(value: Any, name: str = "") -> Iterator[str]:
    """The dotted names of all values. The rows of a list have the name of the list."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(row, Mapping) for row in value):
        for row in value:
            yield from _leaves(row, name)
    else:
        yield name
