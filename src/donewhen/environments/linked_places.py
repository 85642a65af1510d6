"""What folders with installed packages name elsewhere: in `.pth` files, modules for editable installs, and links.

Programs load from there as from the folder itself.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import all_suffixes

from donewhen.environments.content import read_small
from donewhen.environments.interpreters import environment_of, installation_of

PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_IMPORTS = re.compile(r"\bimport\s+(\w+)")
_VERSIONED = re.compile(r"(?:python|pypy)[\d.]+t?\Z")
_WITH_PACKAGES = re.compile(rb"^include-system-site-packages\s*=\s*true\s*$", re.IGNORECASE | re.MULTILINE)


def linked_places(site: str) -> dict[str, None]:
    """The existing folders and modules that a folder with packages names, as absolute paths."""
    found: dict[str, None] = {}
    for name in _entries(site):
        if not name.endswith(".pth"):
            continue
        for line in read_small(f"{site}/{name}").decode("utf-8-sig", "replace").splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if line.startswith(("import ", "import\t")):
                found |= dict.fromkeys(place for module in _IMPORTS.findall(line) for place in _mapped(site, module))
            else:
                # Relative ones are relative to the folder.
                place = os.path.normpath(os.path.join(site, line.rstrip()))  # noqa: PTH118
                if os.path.exists(place):  # noqa: PTH110
                    found[place] = None
    return found


def linked_packages(modules: str) -> dict[str, None]:
    """The folders that links to packages in a folder `node_modules` lead to, as `npm link` makes them."""
    scopes = [f"{modules}/{name}" for name in _entries(modules) if name.startswith("@")]
    links = [f"{folder}/{name}" for folder in (modules, *scopes) for name in _entries(folder)]
    return {os.path.realpath(path): None for path in links if os.path.islink(path) and os.path.isdir(path)}  # noqa: PTH112, PTH114


def sites_of_environment(folder: str) -> list[str]:
    """The folders with packages of a virtual environment."""
    return [
        site
        for part in ("lib", "lib64", "Lib")
        for inner in ("", *(f"{name}/" for name in _entries(f"{folder}/{part}") if _VERSIONED.match(name)))
        for name in PACKAGE_FOLDERS
        if os.path.isdir(site := f"{folder}/{part}/{inner}{name}")  # noqa: PTH112
    ]


def sites_of_program(program: str) -> list[str]:
    """The folders with packages that a program of a virtual environment, or an interpreter, imports from."""
    environment = environment_of(program)
    found = [] if environment is None else sites_of_environment(environment)
    if environment is None or _WITH_PACKAGES.search(read_small(f"{environment}/pyvenv.cfg")):
        python = installation_of(program if environment is None else f"{environment}/bin/python")
        found += [] if python is None else python.packages
    return found


def _mapped(site: str, module: str) -> Iterator[str]:
    """The places in the code of a module that finds what is installed as editable."""
    if "editable" not in module:
        return
    try:
        code = ast.parse(read_small(f"{site}/{module}.py"))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return
    for node in ast.walk(code):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/"):
            path = os.path.normpath(node.value)
            # A module is named without its ending.
            yield from filter(os.path.exists, (path, *(f"{path}{suffix}" for suffix in all_suffixes())))


def _entries(folder: str) -> list[str]:
    with suppress(OSError):
        return sorted(os.listdir(folder))  # noqa: PTH208
    return []
