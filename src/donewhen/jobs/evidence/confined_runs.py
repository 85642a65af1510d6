"""Runs a command of a room apart from everything else on the machine."""

from __future__ import annotations

import os
import pwd
import re
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from donewhen import test_reports
from donewhen.foundation.executables import resolve_executable
from donewhen.isolation.confinement import Confinement
from donewhen.isolation.levels import Level
from donewhen.jobs.evidence.bytecode import write_compiled
from donewhen.jobs.evidence.room_place import RoomPlace
from donewhen.jobs.evidence.test_report import ReportedRun, run_with_report
from donewhen.jobs.room.building import environment_mounts
from donewhen.jobs.room.confining import (
    PrivateFolders,
    home_place,
    private_folders,
    private_variables,
    real_home,
)
from donewhen.jobs.room.own_folders import own_folder
from donewhen.jobs.room.room_environment import program_in_room, room_environment, write_startup
from donewhen.jobs.room.surroundings import Surroundings
from donewhen.jobs.room.tool_folders import program_folders, readable_tools, tool_folders

_PYTHON = re.compile(r"(?:python|pypy)3?(?:\.(?:[89]|\d\d))?t?")
"""Versions from 3.8 on know the option."""
_OPTIONS = re.compile(r"-[^-]\S*")
_IGNORES_VARIABLES = re.compile(r"-[^XWmcEI]*[EI]")
_REPORTERS = Path(test_reports.__file__).resolve().parent


def run_confined(
    place: RoomPlace, argv: Sequence[str], surroundings: Surroundings, timeout: float, level: Level
) -> ReportedRun:
    """Run a command with new and empty folders of its own, so that it can't change or read what judges it."""
    with private_folders() as folders:
        variables = private_variables(surroundings, folders, level)
        program = resolve_executable(argv[0], place.root, surroundings.variables).path
        if level == "namespaces":
            # The room is at the repository's own path.
            program = program_in_room(program, place.folder, place.top)
        else:
            startup = _startup(folders)
            write_startup(startup, place.top, place.folder)
            variables = room_environment(variables, startup)
            program = program_in_room(program, place.root, place.project)
        write_compiled(folders.bytecode, surroundings.bytecode)
        run = run_with_report(
            program,
            _with_bytecode(program, argv, folders.bytecode),
            cwd=place.project,
            reports=folders.reports,
            environment=variables,
            timeout=timeout,
            confinement=_confinement(place, surroundings, folders, level, program),
        )
        if surroundings.on_bytecode is not None:
            surroundings.on_bytecode(folders.bytecode)
        return run


def _with_bytecode(program: Path, argv: Sequence[str], bytecode: Path) -> Sequence[str]:
    """The words of a command, so that Python takes compiled modules from this folder also if its options say that the
    variable for it does not count. Those beside the installed modules could say anything."""
    if _PYTHON.fullmatch(Path(os.path.realpath(program)).name) is None:
        return argv
    takes_value = False
    for word in argv[1:]:
        if takes_value:
            takes_value = False
        elif not _OPTIONS.fullmatch(word):
            break
        elif _IGNORES_VARIABLES.match(word):
            return (argv[0], "-X", f"pycache_prefix={bytecode}", *argv[1:])
        else:
            takes_value = word in ("-X", "-W")
    return argv


def _confinement(
    place: RoomPlace, surroundings: Surroundings, folders: PrivateFolders, level: Level, program: Path
) -> Confinement:
    variables = surroundings.variables
    mounts = environment_mounts(place.top, surroundings.environments)
    # What is installed in the repository is among these, and the rest of such a folder is the agent's.
    stores = {*surroundings.stores, *(tool for home in _other_homes() for tool in tool_folders(variables, home))}
    readable = {store: store for store in stores if not store.is_relative_to(place.top)}
    if program not in surroundings.reach.tools:
        readable |= {path: path for path in program_folders(program, place.top)}
    private = (own_folder(), *_private_folders_of_person())
    readable |= {path: path for path in surroundings.reach.places if not _is_in(path, private)}
    # They report the tests of unittest and node; donewhen may be installed in a folder that is out of reach.
    readable |= {_REPORTERS: _REPORTERS}
    if level == "namespaces":
        readable |= mounts
    else:
        readable |= {path: path for path in (*mounts, *readable_tools(variables, place.top), _startup(folders))}
    return Confinement(
        level=level,
        network=surroundings.network,
        room=place.folder,
        place=place.top,
        home=folders.home,
        scratch=folders.scratch,
        read_only=readable,
        writable=(folders.reports, folders.bytecode),
        hidden=(place.top, *private, *_temporary_folder(), *_other_homes(), *surroundings.reach.hidden),
        home_place=home_place(),
    )


def _is_in(path: Path, folders: Iterable[Path]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(folder) for folder in folders)


def _startup(folders: PrivateFolders) -> Path:
    return folders.reports.parent / "startup"


def _temporary_folder() -> list[Path]:
    """The folder that other commands have their folders in at the same time."""
    folder = Path(os.path.realpath(tempfile.gettempdir()))
    return [folder] if folder != folder.parent else []


def _other_homes() -> list[Path]:
    """The home folder that the system knows, if a variable says that it is another one."""
    with suppress(KeyError):
        home = Path(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
        if home.is_dir() and home != home.parent and str(home) != os.path.realpath(real_home()):
            return [home]
    return []


def _private_folders_of_person() -> list[Path]:
    """Folders in which the person's keys, and marks about ledgers, can lie outside of the home folder."""
    found = (os.environ.get(name) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"))
    folders = [Path(os.path.realpath(value)) / "donewhen" for value in found if value]
    return [folder for folder in folders if folder.is_dir() and not folder.is_relative_to(real_home())]
