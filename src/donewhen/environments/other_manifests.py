"""Manifests and lock files of Rust and Go projects."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from donewhen.environments.declared import OTHER, Item

_MODULE = re.compile(r"(?:require\s+)?([\w.-]+\.[\w.-]+/\S+|[\w.-]+/\S+)\s+(v\S+)")
_TABLES = ("dependencies", "dev-dependencies", "build-dependencies")


def cargo_toml(text: str) -> Iterator[Item]:
    data = tomllib.loads(text)
    for table in _TABLES:
        for name, wanted in data.get(table, {}).items():
            elsewhere = isinstance(wanted, dict) and {"git", "path", "registry"} & wanted.keys()
            yield Item("cargo", name, "", OTHER if elsewhere else "")


def cargo_lock(text: str) -> Iterator[Item]:
    for package in tomllib.loads(text).get("package", []):
        if source := package.get("source"):
            host = "" if source.startswith(("registry+", "sparse+")) else OTHER
            yield Item("cargo", package["name"], package["version"], host)


def go_mod(text: str) -> Iterator[Item]:
    for line in text.splitlines():
        if found := _MODULE.match(line.strip()):
            yield Item("go", found[1], found[2])


def go_sum(text: str) -> Iterator[Item]:
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3:
            yield Item("go", words[0], words[1].removesuffix("/go.mod"))
