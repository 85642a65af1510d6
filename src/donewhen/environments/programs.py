"""The programs that checks start: by their paths, the lines that name their interpreters, and version managers."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from donewhen.environments.content import read_small

_DEEPEST = 5
_SHIMS = "shims"
# Installers write this where a path is too long, or has a space in it, for the first line.
_EXEC = re.compile(rb"^'''exec' (\"[^\"]+\"|\S+)", re.MULTILINE)
_VERSION_FILES = (".python-version", ".node-version", ".ruby-version", ".java-version", ".tool-versions", ".nvmrc")


def with_interpreters(programs: Iterable[str], folders: Sequence[str]) -> list[str]:
    """The programs, and those that their first lines name in turn."""
    found: dict[str, None] = {}
    level = [*programs]
    for _ in range(_DEEPEST):
        level = [path for path in dict.fromkeys(level) if path not in found]
        found.update(dict.fromkeys(level))
        level = [inner for path in level for inner in _named_in(path, folders)]
    return [*found]


def started_by(programs: Iterable[str], folders: Sequence[str], root: str, versions: Collection[str] = ()) -> list[str]:
    """Programs, with those that start them, or that they start in their place."""
    found = with_interpreters(dict.fromkeys(map(os.path.normpath, programs)), folders)
    behind = [inner for path in found for inner in behind_shim(path, root, versions)]
    return with_interpreters(dict.fromkeys((*found, *behind)), folders)


def _named_in(path: str, folders: Sequence[str]) -> Iterator[str]:
    head = read_small(path)
    if not head.startswith(b"#!"):
        return
    line = head.partition(b"\n")[0][2:]
    with suppress(ValueError):
        words = shlex.split(os.fsdecode(line))
        if not words:
            return
        yield words[0]
        if os.path.basename(words[0]) == "env":  # noqa: PTH119
            wanted = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
            yield from which(wanted, folders)
    for word in _EXEC.findall(head[:4096]):
        yield os.fsdecode(word.strip(b'"'))


def which(name: str, folders: Iterable[str]) -> Iterator[str]:
    """The program that a name means."""
    if not name or "/" in name:
        return
    for folder in folders:
        path = f"{folder}/{name}"
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            yield path
            return


def behind_shim(path: str, root: str, variables: Collection[str] = ()) -> list[str]:
    """The programs of this name that a version manager can mean by a shim: those of the versions that the project, its
    own settings or a variable name, or else of every version."""
    folder, name = os.path.split(path)
    manager = os.path.dirname(folder)  # noqa: PTH120
    if os.path.basename(folder) != _SHIMS:  # noqa: PTH119
        return []
    wanted = set(variables) | set(_words(f"{manager}/version"))
    wanted |= {word for file in _VERSION_FILES for word in _words(f"{root}/{file}")}
    found = {
        version: program
        for version, place in _versions(manager)
        if os.access(program := f"{place}/bin/{name}", os.X_OK)
    }
    named = [program for version, program in found.items() if any(_is_named(version, word) for word in wanted)]
    return named or [*found.values()]


def _versions(manager: str) -> Iterator[tuple[str, str]]:
    """The installed versions, with their folders: `versions/VERSION`, or `installs/TOOL/VERSION`."""
    for version in _entries(f"{manager}/versions"):
        yield version, f"{manager}/versions/{version}"
    for tool in _entries(f"{manager}/installs"):
        for version in _entries(f"{manager}/installs/{tool}"):
            yield version, f"{manager}/installs/{tool}/{version}"


def _is_named(version: str, word: str) -> bool:
    word = word.removeprefix("v")
    return version == word or version.startswith(f"{word}.")


def _words(path: str) -> list[str]:
    return re.split(r"[\s:]+", read_small(path).decode("utf-8", "replace").strip())


def _entries(folder: str) -> list[str]:
    with suppress(OSError):
        return sorted(os.listdir(folder))  # noqa: PTH208
    return []
