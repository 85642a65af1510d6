"""What lies outside of a project and stays in reach of its checks: their programs, and folders that environments name.

Whatever of it is neither an installation nor an environment, which are listed anyway, is in ``others``: it is listed by
content as well, so that nothing comes into reach that a person has not accepted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from donewhen.environments.interpreters import environment_of, installation_of
from donewhen.environments.linked_places import linked_packages, linked_places, sites_of_environment, sites_of_program
from donewhen.jobs.room.tool_folders import covered_folders, installation_around, program_folders

_MAX_FILES = 20_000
_CACHE = "__pycache__"


@dataclass(frozen=True)
class Reach:
    """Folders and files outside of a project."""

    tools: tuple[Path, ...] = ()
    """Programs, with their environments, interpreters and installations."""
    others: tuple[Path, ...] = ()
    """What environments name, and folders of other programs."""
    refused: Mapping[Path, str] = field(default_factory=dict)
    """What of it stays out of reach, and why."""

    @property
    def places(self) -> tuple[Path, ...]:
        """Everything that is in reach."""
        return (*self.tools, *self.others)

    @property
    def hidden(self) -> tuple[Path, ...]:
        """What in these folders is no code: a repository, caches, environments of their own."""
        return tuple(Path(entry) for place in self.others for entry in hidden_folders(str(place)))


def reach_of(
    programs: Iterable[Path], environments: Iterable[Path], top: Path, home: Path, known: Sequence[Path] = ()
) -> Reach:
    """What these programs and environments bring into reach. ``known`` are folders that are in reach and listed."""
    tools: dict[Path, None] = {}
    environments = [*environments]
    wanted: dict[Path, None] = {}
    sites = [site for environment in environments for site in sites_of_environment(str(environment))]
    for program in programs:
        sites += sites_of_program(str(program))
        if not _is_alone(program, home, known):
            tools |= dict.fromkeys(program_folders(program, top))
            continue
        tools[program] = None
        folder = Path(os.path.realpath(program)).parent
        # Hidden ones have settings and credentials in them.
        if not any(part.startswith(".") for part in folder.parts):
            wanted[folder] = None
    wanted |= {Path(place): None for site in dict.fromkeys(sites) for place in linked_places(site)}
    wanted |= {
        Path(place): None
        for folder in environments
        if folder.name == "node_modules"
        for place in linked_packages(str(folder))
    }
    others: dict[Path, None] = {}
    refused: dict[Path, str] = {}
    for place in wanted:
        real = Path(os.path.realpath(place))
        if real.is_relative_to(os.path.realpath(top)):
            # Those are the room's.
            continue
        if why := _why_not(real, top, home):
            refused[place] = why
        else:
            others[place] = None
    return Reach(tuple(tools), tuple(_outermost(others, tuple(tools))), refused)


def hidden_folders(place: str) -> Iterator[str]:
    """The hidden folders directly in a folder; nothing is imported from there."""
    try:
        with os.scandir(place) as entries:
            yield from sorted(entry.path for entry in entries if entry.name.startswith(".") and entry.is_dir())
    except OSError:
        return


def _is_alone(program: Path, home: Path, known: Sequence[Path]) -> bool:
    """Whether a program is a part of nothing that is listed as a whole, and lies in a folder that is out of reach."""
    real = Path(os.path.realpath(program))
    if environment_of(str(program)) or environment_of(str(real)) or installation_of(str(real)):
        return False
    folder = real.parent
    if installation_around(folder) != folder or any(real.is_relative_to(os.path.realpath(path)) for path in known):
        return False
    return any(real.is_relative_to(path) for path in covered_folders(home))


def _why_not(real: Path, top: Path, home: Path) -> str:
    if Path(os.path.realpath(top)).is_relative_to(real):
        return "it contains the project"
    if any(path.is_relative_to(real) for path in covered_folders(home)):
        return "it contains the home folder or temporary files"
    if _has_more_files(real):
        return f"it has more than {_MAX_FILES:,} files"
    return ""


def _has_more_files(folder: Path) -> bool:
    count = 0
    for place, inner, files in os.walk(folder):
        inner[:] = [name for name in inner if name != _CACHE and (place != str(folder) or not name.startswith("."))]
        count += 0 if place.endswith(_CACHE) else len(files)
        if count > _MAX_FILES:
            return True
    return False


def _outermost(places: Iterable[Path], known: Sequence[Path]) -> Iterator[Path]:
    """Without what lies in another one, or in one that is known."""
    listed = sorted(places, key=lambda place: len(place.parts))
    kept: list[Path] = []
    for place in listed:
        if not any(place.is_relative_to(other) for other in (*kept, *known)):
            kept.append(place)
            yield place
