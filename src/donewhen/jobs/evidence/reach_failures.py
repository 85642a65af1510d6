"""Says why a failed command may have failed: what it did not find is on this machine, and out of reach of checks."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.room.confining import usable_level
from donewhen.jobs.room.named_programs import is_program
from donewhen.jobs.room.surroundings import Surroundings
from donewhen.jobs.room.tool_folders import covered_folders

# What the C library, shells, make and the runtimes of programming languages say.
_NOT_FOUND = re.compile(
    r"No such file or directory|not found\b|can't open file|[Cc]an(?:not|'t) find (?:module|package)|ENOENT"
    r"|Permission denied|EACCES|does not exist|No such file to load|no such file"
)
_NO_MODULE = re.compile(r"No module named '?([A-Za-z_]\w*)")
_COMMAND = re.compile(r"(?:^|[\s:])([\w.+-]+): (?:command )?not found\b|env: [‘'\"]?([\w.+-]+)['’\"]?: No such file")
_PATH = re.compile(r"(?<![\w./~-])(~?/[^\s'\"`;|&<>(){}\[\],:=*?!#\\‘’“”]+)")
_LAST, _MAX_PATHS, _MAX_MODULES = 1 << 16, 200, 20
_PROGRAM = "name it by its path in the check or in an agreed file that the check runs"
_FILE = "copy it into the project"


def reach_notes(run: ReportedRun, surroundings: Surroundings, top: Path) -> tuple[str, ...]:
    """What to say about a failed run: nothing, or the first thing that it did not find and that is out of its reach.
    It does not decide anything."""
    if run.passed or not surroundings.private:
        return ()
    if usable_level(surroundings.isolation, surroundings.network) == "copy":
        return ()
    output = run.result.output[-_LAST:]
    home = Path.home()
    found = (*_modules(output, surroundings, home), *_paths(output, surroundings, top, home))
    return found[:1]


def _modules(output: str, surroundings: Surroundings, home: Path) -> Iterator[str]:
    for name in [*dict.fromkeys(_NO_MODULE.findall(output))][:_MAX_MODULES]:
        for folder, why in surroundings.reach.refused.items():
            if _has_module(folder, name):
                yield (
                    f"the module {name} lies in {one_line(str(folder), 200)}, which an environment names, but which "
                    f"is out of reach of checks because {why}; install the module into the environment, or move it "
                    "to a folder of its own"
                )
        for folder in sorted(home.glob(".local/lib/python3*/site-packages")):
            if _has_module(folder, name):
                yield (
                    f"the module {name} is installed for the user alone ({one_line(str(folder), 200)}), which is off "
                    "for checks; install it into an environment"
                )


def _has_module(folder: Path, name: str) -> bool:
    return folder.name == name or any(os.path.exists(folder / found) for found in (name, f"{name}.py"))  # noqa: PTH110


def _paths(output: str, surroundings: Surroundings, top: Path, home: Path) -> Iterator[str]:
    lines = [line for line in output.splitlines() if _NOT_FOUND.search(line)]
    paths = (path for line in lines for path in _named(line, home))
    for path in [*dict.fromkeys(paths)][:_MAX_PATHS]:
        if _is_out_of_reach(path, surroundings, top, home):
            what = _PROGRAM if is_program(path) else _FILE
            why = next((why for folder, why in surroundings.reach.refused.items() if _is_in(path, (folder,))), "")
            reason = f" because {why}" if why else ""
            yield (
                f"its output names {one_line(path, 200)}, which exists on this machine but is out of reach of "
                f"checks{reason}; {what} (docs/howto/around-a-check.md)"
            )


def _named(line: str, home: Path) -> Iterator[str]:
    for path in _PATH.findall(line):
        yield os.path.normpath(f"{home}{path[1:]}" if path.startswith("~") else path)
    for names in _COMMAND.findall(line):
        # As the person would find it.
        if found := shutil.which(names[0] or names[1]):
            yield os.path.normpath(found)


def _is_out_of_reach(path: str, surroundings: Surroundings, top: Path, home: Path) -> bool:
    reach = (*surroundings.stores, *surroundings.reach.places, top)
    covered = _is_in(path, covered_folders(home)) and not _is_in(path, reach)
    return covered and "\0" not in path and os.path.isfile(path)  # noqa: PTH113


def _is_in(path: str, folders: Iterable[Path]) -> bool:
    real = os.path.realpath(path)
    return any(Path(place).is_relative_to(folder) for place in (path, real) for folder in folders)
