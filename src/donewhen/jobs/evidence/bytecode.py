"""Compiled modules of interpreters and packages, so that a check that starts with an empty cache need not make them.

They are made once, when a job is agreed to, by the interpreter itself and not by what checks run: that could write
anything. Each names the hash of its source, and Python takes it only while the source has that hash. The agreement
names the hash of all of them.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from donewhen.foundation.executables import resolve_executable
from donewhen.foundation.files import TooLargeError
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.isolation.confinement import ConfinementError
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.room.reading import RoomReading

_MODULE = re.compile(r"(.+)\.(?:cpython|pypy)-?\d+\.pyc\Z")
_MAX_MODULES, _MAX_BYTES = 3000, 64 << 20
_COMPILES = """\
import py_compile, sys
for path in sys.argv[1:]:
    try:
        py_compile.compile(path, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    except Exception:
        pass
"""
COMPILING_TIMEOUT = 300.0
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*t?\Z")


class Compiled(msgspec.Struct, frozen=True):
    """Compiled modules, by their names in a cache folder."""

    modules: dict[str, bytes]


def compiled_sources(cache: Path, reading: RoomReading) -> list[str]:
    """The installed modules that a command has compiled into a cache folder; not those of the project."""
    top = os.path.realpath(reading.agreed.place.top)
    environments = [f"{top}/{name}/" for name in reading.disk.environments]
    found = []
    for name in _files(cache):
        if module := _MODULE.match(name):
            source = f"/{module[1]}.py"
            installed = not source.startswith(f"{top}/") or source.startswith(tuple(environments))
            if installed and os.path.isfile(source):  # noqa: PTH113
                found.append(source)
    return sorted(found)[:_MAX_MODULES]


def interpreter_of(argv: Sequence[str], root: Path, variables: Mapping[str, str]) -> str | None:
    """The Python that runs a command: its program, or the one beside it."""
    with suppress(CommandNotRunnableError, OSError):
        program = resolve_executable(argv[0], root, variables).path
        for path in (program, program.parent / "python", program.parent / "python3"):
            if _PYTHON.match(Path(os.path.realpath(path)).name) and path.is_file():
                return str(path)
    return None


def compiling_command(program: str, sources: Sequence[str]) -> list[str]:
    """The command that compiles modules. It loads nothing but the standard library."""
    return [program, "-I", "-S", "-c", _COMPILES, *sources]


def put_compiled(store: EvidenceStore, cache: Path, sources: Iterable[str]) -> str | None:
    """Store what was compiled, and return its name; None if there is nothing."""
    wanted = {source.removeprefix("/").removesuffix(".py") for source in sources}
    modules: dict[str, bytes] = {}
    size = 0
    for name in sorted(_files(cache)):
        module = _MODULE.match(name)
        if module is not None and module[1] in wanted:
            modules[name] = (cache / name).read_bytes()
            size += len(modules[name])
            if size > _MAX_BYTES:
                return None
    if not modules:
        return None
    with suppress(TooLargeError):
        return store.put(zlib.compress(msgspec.msgpack.encode(Compiled(modules)), 1))
    return None


def read_compiled(store: EvidenceStore, name: str) -> Mapping[str, bytes]:
    """The compiled modules of an agreement; none if they are missing or damaged."""
    content = store.get(name)
    if content is None:
        return {}
    try:
        data = zlib.decompressobj().decompress(content, 2 * _MAX_BYTES)
        return msgspec.msgpack.decode(data, type=Compiled).modules
    except (zlib.error, msgspec.DecodeError, msgspec.ValidationError):
        return {}


def write_compiled(cache: Path, modules: Mapping[str, bytes]) -> None:
    """Write compiled modules into an empty cache folder."""
    made: set[str] = set()
    for name, content in modules.items():
        folder = os.path.dirname(name)  # noqa: PTH120
        if ".." in name.split("/") or name.startswith("/"):
            raise ConfinementError("A compiled module has a name that leads out of its folder.")
        if folder not in made:
            os.makedirs(f"{cache}/{folder}", exist_ok=True)  # noqa: PTH103
            made.add(folder)
        with open(f"{cache}/{name}", "xb") as file:  # noqa: PTH123
            file.write(content)


def _files(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        inner = os.path.relpath(place, folder)
        yield from (os.path.normpath(f"{inner}/{name}") for name in names)
