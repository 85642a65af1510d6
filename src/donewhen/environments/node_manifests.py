"""Manifests and lock files of JavaScript projects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from donewhen.environments.declared import OTHER, Item
from donewhen.environments.names import host_of

_TABLES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_EXACT = re.compile(r"v?(\d+\.\d+\.\d+[\w.+-]*)\Z")
# A version, a range of versions, or the name of a release.
_OF_REGISTRY = re.compile(r"(?:npm:@?[\w./-]+@)?(?:[\w.^~<>=*|+\s-]*|workspace:[\w.^~*]*)\Z")
_YARN_NAME = re.compile(r"\"?(@?[^@\"\s,]+)@")
_YARN_VERSION = re.compile(r"  version:? \"?([^\"\s]+)\"?")
_YARN_PLACE = re.compile(r"  (?:resolved|resolution:) \"([^\"]+)\"")
_PNPM = re.compile(r"  ['\"]?/?(@?[^@'\"\s:()]+)[@/](\d[^'\"\s:()]*)(?:\([^'\"]*\))?['\"]?:\s*\Z")
_PNPM_TARBALL = re.compile(r"tarball: ([^\s,}]+)")
_BUN = re.compile(r"\s*\"[^\"]+\": \[\"(@?[^@\"]+)@([^\"]+)\"(?:, \"([^\"]*)\")?")


def package_json(text: str) -> Iterator[Item]:
    data = json.loads(text)
    for table in _TABLES:
        for name, wanted in _table(data.get(table)).items():
            version = str(wanted).strip()
            exact = _EXACT.match(version)
            yield Item("node", name, exact[1] if exact else "", "" if _OF_REGISTRY.match(version) else OTHER)


def package_lock(text: str) -> Iterator[Item]:
    """`package-lock.json` and `npm-shrinkwrap.json`."""
    data = json.loads(text)
    for place, entry in _table(data.get("packages")).items():
        table = _table(entry)
        if place and not table.get("link"):
            name = str(table.get("name") or place.rpartition("node_modules/")[2])
            yield Item("node", name, str(table.get("version", "")), _host(str(table.get("resolved", ""))))
    yield from _first_form(_table(data.get("dependencies")))


def _first_form(tables: Mapping[str, Any]) -> Iterator[Item]:
    for name, entry in tables.items():
        table = _table(entry)
        yield Item("node", name, str(table.get("version", "")), _host(str(table.get("resolved", ""))))
        yield from _first_form(_table(table.get("dependencies")))


def yarn_lock(text: str) -> Iterator[Item]:
    name = version = place = ""
    for line in (*text.splitlines(), "end"):
        if line and not line[0].isspace():
            if name and version:
                yield Item("node", name, version, _yarn_host(place))
            found = _YARN_NAME.match(line)
            name, version, place = found[1] if found and not line.startswith("#") else "", "", ""
        elif found := _YARN_VERSION.match(line):
            version = found[1]
        elif found := _YARN_PLACE.match(line):
            place = found[1]


def pnpm_lock(text: str) -> Iterator[Item]:
    name = version = ""
    host = ""
    for line in (*text.splitlines(), "end:"):
        if line and not line.startswith("   "):
            if name:
                yield Item("node", name, version, host)
            found = _PNPM.match(line)
            name, version = (found[1], found[2]) if found else ("", "")
            host = ""
        elif found := _PNPM_TARBALL.search(line):
            host = host_of(found[1]) or OTHER


def bun_lock(text: str) -> Iterator[Item]:
    for line in text.splitlines():
        if found := _BUN.match(line):
            exact = _EXACT.match(found[2])
            host = host_of(found[3] or "") if exact else OTHER
            yield Item("node", found[1], exact[1] if exact else "", host)


def _yarn_host(place: str) -> str:
    # `name@npm:1.2.3` is from the registry.
    return "" if "@npm:" in place else _host(place)


def _host(address: str) -> str:
    return (host_of(address) or OTHER) if address else ""


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
