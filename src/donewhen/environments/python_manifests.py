"""Manifests and lock files of Python projects."""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from donewhen.environments.declared import OTHER, Item
from donewhen.environments.names import host_of, normalized, required_name, requirement_of

_PINNED = re.compile(r"={0,3}\s*v?(\d[\w.!+-]*)\Z")
_COMMENT = re.compile(r"(?:\A|\s)#.*")
_INDEX = re.compile(r"\s*(?:-i|-f|--index-url|--extra-index-url|--find-links|--trusted-host)\b[ =]*(\S+)")
_CONDA = re.compile(r"\s*-\s+['\"]?(?:[\w.-]+::)?([A-Za-z0-9_][\w.-]*)\s*(?:(={1,2})\s*([\w.+!]+))?")


def pyproject(text: str) -> Iterator[Item]:
    data = tomllib.loads(text)
    project, tool = _table(data.get("project")), _table(data.get("tool"))
    lists = [project.get("dependencies"), *_table(project.get("optional-dependencies")).values()]
    lists += _table(data.get("dependency-groups")).values()
    lists += _table(_table(tool.get("pdm")).get("dev-dependencies")).values()
    lists += [_table(tool.get("uv")).get("dev-dependencies")]
    for environment in _table(_table(tool.get("hatch")).get("envs")).values():
        lists += [_table(environment).get("dependencies"), _table(environment).get("extra-dependencies")]
    yield from _requirements(line for lines in lists for line in _list(lines))
    poetry = _table(tool.get("poetry"))
    tables = [poetry.get("dependencies"), poetry.get("dev-dependencies")]
    tables += [_table(group).get("dependencies") for group in _table(poetry.get("group")).values()]
    for table in tables:
        yield from _specified(_table(table))
    # A source that the tool takes a package from instead of the index.
    for name in _table(_table(tool.get("uv")).get("sources")):
        yield Item("python", normalized(name), "", OTHER)


def requirements(text: str) -> Iterator[Item]:
    lines = [_COMMENT.sub("", line) for line in text.replace("\\\n", " ").splitlines()]
    hosts = [host_of(found[1]) or OTHER for line in lines if (found := _INDEX.match(line))]
    for item in _requirements(line.partition(" --")[0] for line in lines if not line.lstrip().startswith("-")):
        yield item
        yield from (item._replace(host=host) for host in hosts)


def setup_cfg(text: str) -> Iterator[Item]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    found = [parser.get("options", name, fallback="") for name in ("install_requires", "tests_require")]
    if parser.has_section("options.extras_require"):
        found += parser["options.extras_require"].values()
    yield from _requirements(line for lines in found for line in re.split(r"[\n;](?=\s*[A-Za-z])|\n", lines))


def setup_py(text: str) -> Iterator[Item]:
    wanted = ("install_requires", "extras_require", "tests_require")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.keyword) and node.arg in wanted:
            words = [inner.value for inner in ast.walk(node.value) if isinstance(inner, ast.Constant)]
            yield from _requirements(word for word in words if isinstance(word, str))


def pipfile(text: str) -> Iterator[Item]:
    data = tomllib.loads(text)
    for name in ("packages", "dev-packages"):
        yield from _specified(_table(data.get(name)))


def pipfile_lock(text: str) -> Iterator[Item]:
    data = json.loads(text)
    hosts = {
        str(source.get("name")): host_of(str(source.get("url"))) or OTHER
        for source in _list(_table(data.get("_meta")).get("sources"))
        if isinstance(source, dict)
    }
    for group in ("default", "develop"):
        for name, entry in _table(data.get(group)).items():
            table = _table(entry)
            version = str(table.get("version", "")).lstrip("=")
            host = hosts.get(str(table.get("index", "")), "") if version else OTHER
            yield Item("python", normalized(name), version, host)


def python_lock(text: str) -> Iterator[Item]:
    """`poetry.lock`, `uv.lock`, `pdm.lock` and `pylock.toml`."""
    data = tomllib.loads(text)
    for entry in (*_list(data.get("package")), *_list(data.get("packages"))):
        table = _table(entry)
        source = _table(table.get("source"))
        address = source.get("registry") or (source.get("url") if source.get("type") == "legacy" else "")
        elsewhere = bool(source) and not address
        elsewhere |= any(name in table for name in ("vcs", "directory", "archive", "path", "git", "editable"))
        host = OTHER if elsewhere else host_of(str(address or table.get("index") or ""))
        if address and not host:
            host = OTHER
        yield Item("python", normalized(str(table["name"])), str(table.get("version", "")), host)


def conda_environment(text: str) -> Iterator[Item]:
    for line in text.splitlines():
        if (found := _CONDA.match(_COMMENT.sub("", line))) and "/" not in line:
            yield Item("python", normalized(found[1]), found[3] or "")


def _requirements(lines: Iterable[Any]) -> Iterator[Item]:
    for line in lines:
        if isinstance(line, str) and (name := required_name(line)):
            found = requirement_of(line)
            yield Item("python", name, "", OTHER) if found is None else Item("python", name, found[1] or "")


def _specified(table: Mapping[str, Any]) -> Iterator[Item]:
    """Names with what is wanted of each: a version, or a table."""
    for name, wanted in table.items():
        for entry in wanted if isinstance(wanted, list) else [wanted]:
            elsewhere = isinstance(entry, dict) and {"git", "url", "path", "file", "source", "index"} & entry.keys()
            version = str(_table(entry).get("version", "") if isinstance(entry, dict) else entry)
            pinned = _PINNED.match(version.strip())
            exact = pinned[1] if pinned is not None and "=" in version else ""
            yield Item("python", normalized(name), exact, OTHER if elsewhere else "")


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
