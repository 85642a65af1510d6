"""Finds installed Pythons: the interpreter of a program or environment, and its standard library."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from donewhen.environments.content import Reader, hash_files, read_small, readable_name
from donewhen.environments.listing import Interpreter

_PYTHON = re.compile(r"(?:python|pypy)(\d+(?:\.\d+t?)?)?[a-z]*\Z")
_LIBRARY = re.compile(r"(?:python|pypy)\d+\.\d+t?\Z")
_VERSION = re.compile(rb'#define PY_VERSION\s+"([^"]+)"')
_PACKAGES = ("site-packages/", "dist-packages/")
# What is installed for every interpreter of a system, and by its administrator.
_OF_SYSTEM = ("/usr/lib/python3/dist-packages", "/usr/local/lib/{name}/dist-packages", "/usr/lib/{name}/dist-packages")


class Installation(NamedTuple):
    """An installed Python."""

    program: str
    prefix: str

    @property
    def libraries(self) -> list[str]:
        """The folders of its standard library."""
        found: list[str] = []
        wanted = _PYTHON.match(os.path.basename(self.program))  # noqa: PTH119
        for part in ("lib", "lib64"):
            folder = f"{self.prefix}/{part}"
            with suppress(OSError):
                names = sorted(name for name in os.listdir(folder) if _LIBRARY.match(name))  # noqa: PTH208
                exact = [name for name in names if wanted and wanted[1] and name.endswith(wanted[1])]
                found += [f"{folder}/{name}" for name in (exact or names)]
        real = dict.fromkeys(map(os.path.realpath, found))
        return [folder for folder in real if os.path.isfile(f"{folder}/os.py")]  # noqa: PTH113

    @property
    def packages(self) -> list[str]:
        """The folders of packages that are installed for it."""
        found = [f"{library}/{name.rstrip('/')}" for library in self.libraries for name in _PACKAGES]
        if self.prefix == "/usr":
            names = [os.path.basename(library) for library in self.libraries]  # noqa: PTH119
            found += [pattern.format(name=name) for pattern in _OF_SYSTEM for name in names]
        return [folder for folder in dict.fromkeys(map(os.path.realpath, found)) if os.path.isdir(folder)]  # noqa: PTH112


def installation_of(program: str) -> Installation | None:
    """The Python that a program is; None if it is something else."""
    real = os.path.realpath(program)
    folder, name = os.path.split(real)
    if _PYTHON.match(name) is None or not os.path.isfile(real):  # noqa: PTH113
        return None
    found = Installation(real, os.path.dirname(folder))  # noqa: PTH120
    # A version manager has programs of the same name, which only start it.
    return found if found.libraries else None


def environment_of(program: str) -> str | None:
    """The virtual environment that a program lies in, by its path."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(program)))  # noqa: PTH100, PTH120
    return folder if os.path.isfile(f"{folder}/pyvenv.cfg") else None  # noqa: PTH113


def base_of(environment: str, home: str) -> Iterator[Installation]:
    """The Pythons that a virtual environment was made with: by its program, and by its settings."""
    folders = [f"{environment}/bin", *([home] if home else [])]
    for folder in folders:
        with suppress(OSError):
            for name in sorted(os.listdir(folder)):  # noqa: PTH208
                # Of a folder with many interpreters, the one that the environment has is known by its own link.
                wanted = ("python", "python3") if folder == home else (name,)
                found = installation_of(f"{folder}/{name}") if name in wanted and _PYTHON.match(name) else None
                if found is not None:
                    yield found


def read_interpreter(reader: Reader, installation: Installation) -> Interpreter:
    """The program and the standard library, each module or package as one."""
    prefix = installation.prefix
    parts: dict[str, list[tuple[str, str]]] = {}
    libraries = installation.libraries
    for library in libraries:
        name = os.path.basename(library)  # noqa: PTH119
        for inner, content in reader.hash_tree(library, skip=lambda inner: inner in _PACKAGES).files.items():
            first, slash, rest = inner.partition("/")
            if first == "lib-dynload":
                first, slash, rest = inner, "", ""
            parts.setdefault(f"{name}/{first}{slash}", []).append((readable_name(rest), content))
    found = {readable_name(name): hash_files(files) for name, files in parts.items()}
    found |= dict(_files_beside(reader, prefix))
    found[readable_name(os.path.basename(installation.program))] = reader.hash_file(installation.program)  # noqa: PTH119
    return Interpreter(_version(prefix, libraries), found)


def _files_beside(reader: Reader, prefix: str) -> Iterator[tuple[str, str]]:
    """Other files that the interpreter reads at its start: its own library, an archive, settings of its path."""
    patterns = (
        ("lib", re.compile(r"(?:libpython[^/]*\.(?:so|dylib)[\d.]*|python\d+\.zip)\Z")),
        ("bin", re.compile(r"(?:[^/]*\._pth|pyvenv\.cfg|pybuilddir\.txt)\Z")),
        (".", re.compile(r"(?:Python|pyvenv\.cfg)\Z")),
    )
    for part, pattern in patterns:
        with suppress(OSError):
            for name in sorted(os.listdir(f"{prefix}/{part}")):  # noqa: PTH208
                path = f"{prefix}/{part}/{name}"
                if pattern.match(name) and os.path.isfile(path):  # noqa: PTH113
                    yield f"{part}/{name}", reader.hash_link(path) if os.path.islink(path) else reader.hash_file(path)  # noqa: PTH114


def _version(prefix: str, libraries: list[str]) -> str:
    for library in libraries:
        name = os.path.basename(library)  # noqa: PTH119
        for header in (f"{prefix}/include/{name}/patchlevel.h", f"{prefix}/include/{name}m/patchlevel.h"):
            if found := _VERSION.search(read_small(header)):
                return found[1].decode("ascii", "replace")
    return re.sub(r"\A[a-z]+", "", os.path.basename(libraries[0])) if libraries else ""  # noqa: PTH119
