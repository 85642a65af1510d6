"""Lists what programs could load here: finds the interpreters, environments and installations, and reads them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from donewhen.environments.content import Reader, Stamp, are_unchanged, hash_files, read_small, readable_name
from donewhen.environments.interpreters import (
    Installation,
    base_of,
    environment_of,
    installation_of,
    read_interpreter,
)
from donewhen.environments.linked_places import PACKAGE_FOLDERS
from donewhen.environments.listing import Interpreter, Listing, NodeModules, Program, PythonEnvironment
from donewhen.environments.node_packages import package_around, read_node_modules, read_package
from donewhen.environments.programs import behind_shim, started_by, which
from donewhen.environments.python_packages import read_environment, read_site
from donewhen.environments.stores import read_store

_SHARED = ("/", "/usr", "/usr/local", "/opt", "/opt/homebrew", "/opt/local", "/snap")
"""Folders with programs of all kinds, which are not one installation."""
# Documents, and what version managers keep beside the versions.
_IDLE = re.compile(
    r"(?:share/)?(?:doc|man|info)/|plugins/python-build/|(?:versions|installs|downloads|sources|cache|\.git|test)/"
)
_MANAGER_PARTS = ("bin", "libexec", "lib", "plugins", "pyenv.d", "nodenv.d", "rbenv.d", "version", "settings.toml")


@dataclass(frozen=True)
class Wanted:
    """What the checks of a project start and use."""

    root: Path
    """The project's folder, or that of its repository."""
    home: Path
    programs: tuple[Path, ...] = ()
    """The programs that they start, which are listed with what these are a part of."""
    started: frozenset[str] = frozenset()
    """Names of more such programs."""
    words: frozenset[str] = frozenset()
    """Words in the files that they run, which can be names of other programs."""
    path: tuple[str, ...] = ()
    """The folders in which programs are searched for by name."""
    environments: tuple[Path, ...] = ()
    """The folders in the project with installed packages."""
    others: tuple[Path, ...] = ()
    """Folders and modules elsewhere that these name."""
    stores: tuple[Path, ...] = ()
    locked: frozenset[str] = frozenset()
    """Packages with versions, which lock files name."""
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Listed:
    """A listing, and what it cost."""

    listing: Listing
    files: int
    seconds: float
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Files that could not be read, and why."""
    stamps: Mapping[str, Stamp] = field(default_factory=dict, repr=False)

    @property
    def is_still_true(self) -> bool:
        """Whether nothing of it was changed since, not even for a moment."""
        return are_unchanged(self.stamps)

    @property
    def environments(self) -> int:
        """The number of interpreters and folders with packages."""
        listing = self.listing
        return (
            len(listing.interpreters)
            + len(listing.python)
            + len(listing.node)
            + len(listing.tools)
            + len(listing.others)
            + len(listing.stores)
        )

    @property
    def summary(self) -> str:
        """What it cost, as a sentence."""
        return f"Listed {self.files:,} files of {self.environments} installations in {self.seconds:.1f} s."


def list_environment(wanted: Wanted) -> Listed:
    """List what checks could load here. Every content is read."""
    started = time.monotonic()
    inventory = _Inventory(wanted)
    listing = inventory.listing()
    reader = inventory.reader
    return Listed(listing, reader.files, time.monotonic() - started, dict(reader.unreadable), reader.stamps)


class _Inventory:
    """Reads each installation once, however it is found."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.root = os.path.realpath(wanted.root)
        self.home = os.path.realpath(wanted.home)
        self.reader = Reader(self.root)
        self._shared = {*_SHARED, self.home, f"{self.home}/.local", f"{self.home}/.cargo", self.root}
        self._python: dict[str, PythonEnvironment] = {}
        self._interpreters: dict[str, Interpreter] = {}
        self._tools: dict[str, dict[str, str]] = {}
        self._others: dict[str, dict[str, str]] = {}
        self._node: dict[str, NodeModules] = {}

    def listing(self) -> Listing:
        wanted = self.wanted
        for folder in map(str, wanted.environments):
            if os.path.basename(folder) == "node_modules":  # noqa: PTH119
                self._node[self.short(folder)] = read_node_modules(self.reader, folder)
            else:
                self._add_environment(folder)
        started = self._programs((*map(str, wanted.programs), *self._found(wanted.started)))
        programs = dict.fromkeys((*started, *self._programs(self._found(wanted.words))))
        for path in started:
            self._add_installation(path)
        for place in map(str, wanted.others):
            self._add_other(place)
        stores = {
            self.short(str(folder)): read_store(self.reader, str(folder), wanted.locked) for folder in wanted.stores
        }
        return Listing(
            programs={self.short(path): self._program(path) for path in programs},
            searched=dict(self._searched()),
            interpreters=self._interpreters,
            python=self._python,
            node=self._node,
            tools=self._tools,
            others=self._others,
            stores=stores,
        )

    def short(self, path: str) -> str:
        """A path as it is stored."""
        for folder, mark in ((self.root, "."), (self.home, "~")):
            if folder != "/" and (path == folder or path.startswith(f"{folder}/")):
                return readable_name(f"{mark}{path[len(folder) :]}")
        return readable_name(path)

    def _found(self, names: Iterable[str]) -> list[str]:
        return [path for name in sorted(names) for path in which(name, self.wanted.path)]

    def _programs(self, paths: Iterable[str]) -> list[str]:
        """Programs, with those that start them, or that they start in their place."""
        versions = {value for name, value in self.wanted.variables if name.endswith("_VERSION")}
        return started_by(paths, self.wanted.path, self.root, versions)

    def _program(self, path: str) -> Program:
        real = os.path.realpath(path)
        listed = self._listed_folder(path)
        # What lies in an environment is listed there.
        content = f"in {listed}" if listed is not None else self.reader.hash_file(real)
        return Program(content, "" if real == path else self.short(real))

    def _listed_folder(self, path: str) -> str | None:
        shorter = self.short(path)
        return next((folder for folder in self._python if shorter.startswith(f"{folder}/")), None)

    def _add_environment(self, folder: str) -> None:
        name = self.short(folder)
        if name in self._python:
            return
        found = self._python[name] = read_environment(self.reader, folder, self.root)
        with_packages = found.settings.get("include-system-site-packages", "").casefold() == "true"
        for base in base_of(folder, found.settings.get("home", "")):
            self._add_interpreter(base, packages=with_packages)

    def _add_interpreter(self, installation: Installation, *, packages: bool) -> None:
        name = self.short(installation.program)
        if name not in self._interpreters:
            self._interpreters[name] = read_interpreter(self.reader, installation)
        for folder in installation.packages if packages else ():
            if self.short(folder) not in self._python:
                self._python[self.short(folder)] = read_site(self.reader, folder, self.root)

    def _add_installation(self, path: str) -> None:
        """What a program is a part of."""
        environment = environment_of(path)
        if environment is not None:
            self._add_environment(environment)
        python = installation_of(path)
        if python is not None:
            self._add_interpreter(python, packages=environment is None)
            return
        if environment is not None:
            return
        real = os.path.realpath(path)
        if behind_shim(path, self.root):
            manager = os.path.dirname(os.path.dirname(path))  # noqa: PTH120
            self._add_tool(manager, only=_MANAGER_PARTS)
        elif os.path.isfile(f"{os.path.dirname(real)}/rustup"):  # noqa: PTH113, PTH120
            self._add_toolchains()
        elif (package := package_around(real)) is not None and not package.startswith(f"{self.root}/"):
            self._tools.setdefault(self.short(package), read_package(self.reader, package))
        else:
            folder, last = os.path.split(os.path.dirname(real))  # noqa: PTH120
            if last == "bin" and folder not in self._shared and os.path.isdir(f"{folder}/lib"):  # noqa: PTH112
                self._add_tool(folder)

    def _add_toolchains(self) -> None:
        """The compilers that rustup starts under the names of its own programs."""
        home = dict(self.wanted.variables).get("RUSTUP_HOME") or f"{self.home}/.rustup"
        settings = read_small(f"{home}/settings.toml").decode("utf-8", "replace")
        for name in ("rust-toolchain", "rust-toolchain.toml"):
            settings += read_small(f"{self.root}/{name}").decode("utf-8", "replace")
        try:
            found = sorted(os.listdir(f"{home}/toolchains"))  # noqa: PTH208
        except OSError:
            return
        words = set(re.findall(r"[\w.-]+", settings))
        named = [name for name in found if any(name == word or name.startswith(f"{word}-") for word in words)]
        for name in named or found:
            self._add_tool(os.path.realpath(f"{home}/toolchains/{name}"))

    def _add_tool(self, folder: str, only: Collection[str] = ()) -> None:
        name = self.short(folder)
        if name in self._tools:
            return

        def skip(inner: str) -> bool:
            return _IDLE.match(inner) is not None or bool(only and inner.partition("/")[0] not in only)

        self._tools[name] = self._parts_of(folder, skip)

    def _add_other(self, place: str) -> None:
        name = self.short(place)
        if os.path.basename(place) in PACKAGE_FOLDERS:  # noqa: PTH119
            if name not in self._python and self._listed_folder(place) is None:
                self._python[name] = read_site(self.reader, place, self.root)
        elif os.path.isdir(place):  # noqa: PTH112
            # What is hidden there is out of reach.
            self._others[name] = self._parts_of(place, lambda inner: inner.startswith(".") and inner.count("/") == 1)
        else:
            self._others[name] = {"": self.reader.hash_file(os.path.realpath(place))}

    def _parts_of(self, folder: str, skip: Callable[[str], bool]) -> dict[str, str]:
        """The files of a folder, with one hash for each folder of the second level."""
        parts: dict[str, list[tuple[str, str]]] = {}
        for inner, content in self.reader.hash_tree(folder, skip=skip).files.items():
            first = "/".join(inner.split("/")[:2])
            parts.setdefault(readable_name(first), []).append((readable_name(inner), content))
        return {part: hash_files(files) for part, files in parts.items()}

    def _searched(self) -> Iterator[tuple[str, Program]]:
        """The programs in the person's own folders of PATH, which everybody who works here can add to."""
        for position, folder in enumerate(self.wanted.path):
            real = os.path.realpath(folder)
            is_own = real.startswith((f"{self.home}/", f"{self.root}/")) and os.path.basename(real) != "shims"  # noqa: PTH119
            if not is_own or self._listed_folder(f"{real}/x") is not None or environment_of(f"{real}/x"):
                continue
            if any(self.short(real).startswith(f"{tool}/") for tool in self._tools):
                continue
            later = self.wanted.path[position + 1 :]
            for name in _programs_in(real):
                path = f"{real}/{name}"
                content = self.reader.hash_link(path) if os.path.islink(path) else self.reader.hash_file(path)  # noqa: PTH114
                hidden = next((other for other in which(name, later) if os.path.realpath(other) != path), "")
                yield self.short(path), Program(content, self.short(hidden) if hidden else "")


def _programs_in(folder: str) -> Iterable[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not entry.is_dir() and os.access(entry.path, os.X_OK))
    except OSError:
        return ()
