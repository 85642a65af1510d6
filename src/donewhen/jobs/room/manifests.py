"""Manifests of projects, in which dependencies may change and nothing else."""

from __future__ import annotations

import json
import tomllib
from typing import Any

_DEPENDENCIES: tuple[tuple[str, ...], ...] = (
    *(("project", "dependencies"), ("project", "optional-dependencies"), ("dependency-groups",)),
    *(("tool", "poetry", "dependencies"), ("tool", "poetry", "dev-dependencies"), ("tool", "poetry", "group")),
    *(("tool", "pdm", "dev-dependencies"), ("tool", "uv", "dev-dependencies")),
    *(("dependencies",), ("devDependencies",), ("peerDependencies",), ("optionalDependencies",)),
    *(("dev-dependencies",), ("build-dependencies",), ("require",), ("require-dev",)),
)


def only_dependencies_differ(name: str, before: bytes, after: bytes) -> bool:
    """Whether two versions of a manifest differ in nothing but the dependencies; False if one can't be parsed."""
    parse = json.loads if name.endswith(".json") else tomllib.loads if name.endswith(".toml") else None
    if parse is None:
        return False
    try:
        old, new = (parse(content.decode("utf-8")) for content in (before, after))
    except (ValueError, RecursionError):
        return False
    return bool(_without_dependencies(old) == _without_dependencies(new))


def _without_dependencies(document: Any) -> Any:
    for path in _DEPENDENCIES:
        document = _without(document, path)
    return document


def _without(table: Any, path: tuple[str, ...]) -> Any:
    """The table without the value at a path; a table that gets empty goes, too."""
    if not isinstance(table, dict) or path[0] not in table:
        return table
    rest = {name: value for name, value in table.items() if name != path[0]}
    if len(path) == 1:
        return rest
    inner = _without(table[path[0]], path[1:])
    return rest if inner == {} else {**rest, path[0]: inner}
