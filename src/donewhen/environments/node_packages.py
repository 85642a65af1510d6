"""The packages in a folder ``node_modules``."""

from __future__ import annotations

import json
import os
from typing import Any

from donewhen.environments.content import Reader, hash_files, read_small, readable_name
from donewhen.environments.listing import NodeModules, NodePackage

_MANIFEST = "package.json"
_MODULES = "node_modules"
_REQUIRED = ("dependencies", "peerDependencies", "optionalDependencies", "peerDependenciesMeta")
# The hidden folders in which packages and programs are installed. The others hold caches, and checks don't see them.
_HIDDEN = (".bin/", ".pnpm/", ".store/")


def read_node_modules(reader: Reader, folder: str) -> NodeModules:
    """What is installed in a folder."""
    tree = reader.hash_tree(folder, skip=_is_cache, keep=lambda name: name.rpartition("/")[2] == _MANIFEST)
    packages: dict[str, list[tuple[str, str]]] = {}
    loose: dict[str, str] = {}
    manifests = {name.rpartition("/")[0] for name in tree.contents}
    for name, content in tree.files.items():
        package = _package_of(name)
        if package is None or (package not in manifests and package == name):
            loose[readable_name(name)] = content
        else:
            packages.setdefault(package, []).append((readable_name(name[len(package) :]), content))
    return NodeModules(
        {
            readable_name(package): _package(package, tree.contents.get(f"{package}/{_MANIFEST}", b""), files)
            for package, files in packages.items()
        },
        loose,
    )


def read_package(reader: Reader, folder: str) -> dict[str, str]:
    """The files of one package, each folder as one."""
    parts: dict[str, list[tuple[str, str]]] = {}
    for name, content in reader.hash_tree(folder).files.items():
        first, slash, rest = name.partition("/")
        parts.setdefault(f"{first}{slash}", []).append((rest, content))
    return {readable_name(name): hash_files(_readable(files)) for name, files in parts.items()}


def package_around(program: str) -> str | None:
    """The folder of the package that a program is a part of."""
    folder = os.path.dirname(os.path.realpath(program))  # noqa: PTH120
    while folder not in ("/", "/usr", "/usr/local"):
        if read_small(f"{folder}/{_MANIFEST}"):
            return folder
        folder = os.path.dirname(folder)  # noqa: PTH120
    return None


def _readable(files: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(readable_name(name), content) for name, content in files]


def _is_cache(name: str) -> bool:
    return name == ".pnpm/lock.yaml" or (name.startswith(".") and not name.startswith(_HIDDEN))


def _package_of(name: str) -> str | None:
    """The folder of the innermost package that a file lies in; None for links in the folder itself, and programs."""
    parts = name.split("/")
    start = 0
    for position, part in enumerate(parts[:-1]):
        if part == _MODULES:
            start = position + 1
    rest = parts[start:]
    if rest[0].startswith("."):
        # `.bin/NAME`, `.pnpm/lock.yaml`
        return None
    length = 2 if rest[0].startswith("@") else 1
    return "/".join(parts[: start + length]) if len(rest) >= length else None


def _package(place: str, manifest: bytes, files: list[tuple[str, str]]) -> NodePackage:
    try:
        noted = json.loads(manifest.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        noted = {}
    noted = noted if isinstance(noted, dict) else {}
    name = place.rpartition(f"{_MODULES}/")[2] or place
    requires = {str(key) for table in _REQUIRED for key in _table(noted.get(table))}
    scripts = noted.get("bin")
    names = {name.rpartition("/")[2]} if isinstance(scripts, str) else set(map(str, _table(scripts)))
    return NodePackage(
        name=_text(str(noted.get("name", "") or name)),
        version=_text(str(noted.get("version", ""))),
        hash=hash_files(files),
        requires=tuple(sorted(map(_text, requires))),
        scripts=tuple(sorted(map(_text, names))),
    )


def _table(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()
