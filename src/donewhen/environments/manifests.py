"""Reads which packages the manifests and lock files of a project declare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from donewhen.environments.declared import Declared, Item, declared_between
from donewhen.environments.node_manifests import bun_lock, package_json, package_lock, pnpm_lock, yarn_lock
from donewhen.environments.other_manifests import cargo_lock, cargo_toml, go_mod, go_sum
from donewhen.environments.python_manifests import (
    conda_environment,
    pipfile,
    pipfile_lock,
    pyproject,
    python_lock,
    requirements,
    setup_cfg,
    setup_py,
)

_Parser = Callable[[str], Iterator[Item]]
_PARSERS: Mapping[str, _Parser] = {
    "pyproject.toml": pyproject,
    "setup.cfg": setup_cfg,
    "setup.py": setup_py,
    "pipfile": pipfile,
    "pipfile.lock": pipfile_lock,
    "poetry.lock": python_lock,
    "uv.lock": python_lock,
    "pdm.lock": python_lock,
    "pylock.toml": python_lock,
    "environment.yml": conda_environment,
    "environment.yaml": conda_environment,
    "package.json": package_json,
    "package-lock.json": package_lock,
    "npm-shrinkwrap.json": package_lock,
    "yarn.lock": yarn_lock,
    "pnpm-lock.yaml": pnpm_lock,
    "bun.lock": bun_lock,
    "cargo.toml": cargo_toml,
    "cargo.lock": cargo_lock,
    "go.mod": go_mod,
    "go.sum": go_sum,
}
_REQUIREMENTS = re.compile(r"(?:\A|/)(?:requirements/[^/]+|[^/]*(?:requirements|constraints)[^/]*)\.(?:txt|in)\Z")
_LARGEST = 64 << 20


def is_manifest(path: str) -> bool:
    """Whether a file declares dependencies, by its name."""
    return _parser_of(path) is not None


def declared_changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Declared:
    """What these manifests declare after that they did not declare before."""
    return declared_between(_items(before), _items(after))


def locked_packages(files: Mapping[str, bytes]) -> frozenset[str]:
    """The packages that lock files of cargo and Go name, as their stores call them."""
    locks = {name: content for name, content in files.items() if name.rpartition("/")[2] in ("Cargo.lock", "go.sum")}
    joint = {"cargo": "-", "go": "@"}
    return frozenset(f"{item.name}{joint[item.ecosystem]}{item.version}" for item in _items(locks))


def is_lock_of_store(path: str) -> bool:
    """Whether a file says which packages of a store outside of the project are used."""
    return path.rpartition("/")[2] in ("Cargo.lock", "go.sum")


def _items(files: Mapping[str, bytes]) -> list[Item]:
    found: list[Item] = []
    for name, content in files.items():
        parser = _parser_of(name)
        if parser is None or len(content) > _LARGEST:
            continue
        try:
            found += parser(content.decode("utf-8-sig", "replace"))
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError, SyntaxError, MemoryError):
            # What can't be read declares nothing.
            continue
    return found


def _parser_of(path: str) -> _Parser | None:
    parser = _PARSERS.get(path.rpartition("/")[2].casefold())
    return parser or (requirements if _REQUIREMENTS.search(path.casefold()) else None)
