"""The programs that checks start: by the first word of a command, in the files that they run, and by paths anywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from donewhen.environments.programs import started_by, which
from donewhen.foundation.executables import resolve_executable
from donewhen.foundation.git_objects import LINK
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.jobs.room.named_programs import programs_named_in
from donewhen.jobs.room.nested_commands import commands_in
from donewhen.jobs.room.reach import Reach, reach_of
from donewhen.jobs.room.reading import RoomReading
from donewhen.jobs.room.surroundings import Surroundings

_STARTERS = frozenset({"env", "time", "timeout", "nice", "nohup", "exec", "command", "xargs", "stdbuf", "sh", "bash"})
_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*")
DECIDE_VERSIONS = frozenset({"PYENV_VERSION", "RUSTUP_HOME"})
"""Variables that decide which of several versions a program starts."""


@dataclass(frozen=True)
class Checks:
    """What is run to check the work, and where."""

    commands: Sequence[Sequence[str]]
    files: Collection[tuple[str, bytes]]
    """The agreed files that these run, with their contents."""
    root: Path
    """The project's folder."""
    top: Path
    """That of its repository."""
    environments: Sequence[str] = ()
    """The folders in the repository with installed packages."""


@dataclass(frozen=True)
class Started:
    """The programs that checks start."""

    programs: tuple[Path, ...]
    """By their paths, without those that are files of the project."""
    names: frozenset[str]
    """Names that are searched for in the folders of PATH."""


def checks_of(reading: RoomReading, root: Path) -> Checks:
    """What checks the work of a job."""
    commands = (*reading.basis.commands, *reading.basis.prepare)
    files = judging_contents(reading)
    return Checks(commands, files, root, reading.agreed.place.top, reading.disk.environments)


def judging_contents(reading: RoomReading) -> list[tuple[str, bytes]]:
    """The agreed files that checks run, with their contents."""
    files = reading.agreed.files
    names = sorted(name for name in reading.judges.named if name in files and files[name].mode != LINK)
    return [*zip(names, reading.blobs.contents([(name, files[name].blob) for name in names]), strict=True)]


def started_by_checks(checks: Checks, variables: Mapping[str, str]) -> Started:
    """The programs that checks start."""
    found = dict.fromkeys(_first_programs(checks, variables))
    nested = [command for name, content in checks.files for command in commands_in(name, content)]
    names = {word for command in nested for word in started_words(command) if _NAME.fullmatch(word)}
    folders = search_path(variables)
    words = [word for command in (*checks.commands, *nested) for word in command]
    contents = [content for _, content in checks.files]
    for path in programs_named_in(words, contents, checks.root, checks.top, Path.home()):
        # What is found by its name, too, is listed under the path at which it is found.
        if any(os.path.realpath(other) == os.path.realpath(path) for other in which(path.name, folders)):
            names.add(path.name)
        else:
            found[path] = None
    return Started(tuple(found), frozenset(names))


def reach_of_checks(checks: Checks, surroundings: Surroundings) -> Reach:
    """What lies outside of the project and is in reach of its checks."""
    variables = surroundings.variables
    started = started_by_checks(checks, variables)
    folders = search_path(variables)
    paths = [*map(str, started.programs), *(path for name in sorted(started.names) for path in which(name, folders))]
    versions = {variables[name] for name in DECIDE_VERSIONS & {*variables} if name.endswith("_VERSION")}
    programs = started_by(paths, folders, str(checks.top), versions)
    outside = [path for path in map(Path, programs) if not _is_file_of_project(path, checks)]
    environments = [checks.top / name for name in checks.environments]
    return reach_of(outside, environments, checks.top, Path.home(), surroundings.stores)


def search_path(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The folders in which programs are searched for by name."""
    folders = variables.get("PATH", "").split(os.pathsep)
    return tuple(folder for folder in folders if os.path.isabs(folder))  # noqa: PTH117


def started_words(words: Sequence[str]) -> Iterator[str]:
    """The program of a command, and the one that it starts if that is all it does: `env NAME=VALUE python`."""
    for word in words:
        if word.startswith("-") or "=" in word or word.replace(".", "").isdigit():
            continue
        yield word
        if word.rpartition("/")[2] not in _STARTERS:
            return


def _first_programs(checks: Checks, variables: Mapping[str, str]) -> Iterator[Path]:
    for words in checks.commands:
        for word in started_words(words):
            # What is missing says so when it is run.
            with suppress(CommandNotRunnableError, OSError):
                path = resolve_executable(word, checks.root, variables).path
                # `../venv/bin/python` is no file of the project.
                path = Path(os.path.normpath(path)) if ".." in path.parts else path
                if not _is_file_of_project(path, checks):
                    yield path


def _is_file_of_project(path: Path, checks: Checks) -> bool:
    return path.is_relative_to(checks.top) and not any(
        path.is_relative_to(checks.top / environment) for environment in checks.environments
    )
