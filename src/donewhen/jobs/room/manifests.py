"""Manifests of projects, in which dependencies may change and nothing else."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from typing import Any

# A `*` is any name. Not among them: where a package comes from, and what takes the place of another one.
_TABLES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "pyproject.toml": (
        *(("project", "dependencies"), ("project", "optional-dependencies"), ("dependency-groups",)),
        *(("tool", "poetry", "dependencies"), ("tool", "poetry", "dev-dependencies"), ("tool", "poetry", "extras")),
        *(("tool", "poetry", "group", "*", "dependencies"), ("tool", "poetry", "group", "*", "optional")),
        *(("tool", "pdm", "dev-dependencies"), ("tool", "uv", "dev-dependencies"), ("tool", "uv", "default-groups")),
        *(("tool", "hatch", "envs", "*", "dependencies"), ("tool", "hatch", "envs", "*", "extra-dependencies")),
        *(("tool", "pixi", "dependencies"), ("tool", "pixi", "pypi-dependencies")),
        *(("tool", "pixi", "feature", "*", "dependencies"), ("tool", "pixi", "feature", "*", "pypi-dependencies")),
    ),
    "package.json": (
        *(("dependencies",), ("devDependencies",), ("peerDependencies",), ("optionalDependencies",)),
        ("peerDependenciesMeta",),
    ),
    "composer.json": (("require",), ("require-dev",)),
    "cargo.toml": tuple(
        (*table, kind)
        for table in ((), ("workspace",), ("target", "*"))
        for kind in ("dependencies", "dev-dependencies", "build-dependencies")
    ),
    "setup.cfg": (("options", "install_requires"), ("options", "tests_require"), ("options.extras_require",)),
    "pom.xml": (
        *(("dependencies",), ("dependencyManagement", "dependencies")),
        *(("profiles", "profile", "dependencies"), ("profiles", "profile", "dependencyManagement", "dependencies")),
    ),
}
# Both are programs or lists of lines, in which a whole line is a dependency.
_GEM = re.compile(
    r"""\s*gem\s+(?P<name>'[\w.-]+'|"[\w.-]+")"""
    r"""(?:\s*,\s*(?:(?:(?:require|platforms?|groups?):\s*)?(?:'[^'#]*'|"[^"#]*"|:\w+|true|false|\[[\s:\w,'"]*\])))*"""
    r"""\s*(?:\#.*)?"""
)
_GO_MODULE = re.compile(r"\s*[\w.~/-]+\s+v[\w.+-]+\s*(?://.*)?")


def only_dependencies_differ(name: str, before: bytes, after: bytes) -> bool:
    """Whether two versions of a manifest differ in nothing but the dependencies; False if one can't be parsed."""
    last = name.rpartition("/")[2].casefold()
    rest = _RESTS.get(last)
    if rest is None:
        return False
    try:
        old, new = (rest(content.decode("utf-8"), last) for content in (before, after))
    except (ValueError, RecursionError, configparser.Error, ElementTree.ParseError):
        return False
    return bool(old == new)


def _rest_of_document(text: str, name: str) -> Any:
    document = json.loads(text) if name.endswith(".json") else tomllib.loads(text)
    for path in _TABLES[name]:
        document = _without(document, path)
    return document


def _without(table: Any, path: tuple[str, ...]) -> Any:
    """The table without the value at a path; a table that gets empty goes, too."""
    if not isinstance(table, dict):
        return table
    names = [name for name in table if path[0] in ("*", name)]
    rest = {name: value for name, value in table.items() if name not in names}
    if len(path) == 1:
        return rest
    for name in names:
        inner = _without(table[name], path[1:])
        if inner != {}:
            rest[name] = inner
    return rest


def _rest_of_ini(text: str, name: str) -> Any:
    parser = configparser.RawConfigParser(strict=True)
    parser.read_string(text)
    sections = {section: dict(parser.items(section)) for section in parser.sections()}
    for path in _TABLES[name]:
        sections = _without(sections, path)
    return sections


def _rest_of_xml(text: str, name: str) -> Any:
    if "<!" in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL):
        # Declarations could say that any text means another one.
        raise ValueError("declarations are not read")
    return _rest_of_element(ElementTree.fromstring(text), _TABLES[name])  # noqa: S314 - without declarations


def _rest_of_element(element: ElementTree.Element, paths: tuple[tuple[str, ...], ...]) -> Any:
    inner = []
    for child in element:
        tag = child.tag.rpartition("}")[2]
        below = tuple(path[1:] for path in paths if path[0] == tag)
        if () in below:
            continue
        rest = _rest_of_element(child, below)
        if below and not rest[3] and len(child):
            continue
        inner.append(rest)
    return element.tag, dict(element.attrib), (element.text or "").strip(), inner


def _rest_of_go(text: str, _: str) -> Any:
    """The lines of a `go.mod` without what it requires."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        plain = line.strip()
        if inside:
            if plain == ")":
                inside = False
            elif plain and not plain.startswith("//") and not _GO_MODULE.fullmatch(line):
                raise ValueError(line)
        elif re.fullmatch(r"require\s*\(", plain):
            inside = True
        elif plain.startswith("require ") and _GO_MODULE.fullmatch(plain.removeprefix("require ")):
            continue
        elif plain:
            lines.append(plain)
    return lines


def _rest_of_gemfile(text: str, _: str) -> Any:
    """The lines of a `Gemfile` without gems; it is a program, so that a line has to be nothing else."""
    return [line.strip() for line in text.splitlines() if line.strip() and not _GEM.fullmatch(line)]


_RESTS: Mapping[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(("pyproject.toml", "cargo.toml", "package.json", "composer.json"), _rest_of_document),
    "setup.cfg": _rest_of_ini,
    "pom.xml": _rest_of_xml,
    "go.mod": _rest_of_go,
    "gemfile": _rest_of_gemfile,
}
