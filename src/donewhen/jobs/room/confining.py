"""How strongly the commands of a room are kept apart here, and what they find instead of the caller's folders."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from donewhen.isolation.confinement import ConfinementError
from donewhen.isolation.levels import LEVELS, Level, Network, is_weaker
from donewhen.isolation.usable import why_unusable
from donewhen.jobs.room.building import remove_room
from donewhen.jobs.room.surroundings import Surroundings


class IsolationMissingError(ConfinementError):
    """The project demands that checks are kept apart in a way that does not work here."""

    code = "isolation_missing"


@dataclass(frozen=True)
class PrivateFolders:
    """The folders that a command gets for itself, new and empty."""

    home: Path
    scratch: Path
    reports: Path
    bytecode: Path


def usable_level(demanded: Level | None, network: Network) -> Level:
    """The strongest isolation that works here; raise IsolationMissingError if the project demands a stronger one."""
    level = next((level for level in LEVELS if not why_unusable(level, network)), LEVELS[-1])
    if demanded is not None and is_weaker(level, demanded):
        raise IsolationMissingError(
            f"This project demands that checks are kept apart by {demanded}, which does not work here: "
            f"{why_unusable(demanded, network)}.",
            next_step="Run it where that works (donewhen doctor says what is missing), or have a person agree to a "
            "weaker [jobs] isolation.",
        )
    return level


def is_mounted(surroundings: Surroundings) -> bool:
    """Whether commands find their room at the repository's own path."""
    return surroundings.private and usable_level(surroundings.isolation, surroundings.network) == "namespaces"


@contextmanager
def private_folders() -> Iterator[PrivateFolders]:
    """New folders for one command."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="donewhen-")))
    try:
        made = PrivateFolders(*(folder / name for name in ("home", "tmp", "reports", "bytecode")))
        for path in (made.home, made.scratch, made.reports, made.bytecode):
            path.mkdir(mode=0o700)
        yield made
    finally:
        with suppress(OSError):
            remove_room(folder)


def private_variables(surroundings: Surroundings, folders: PrivateFolders, level: Level) -> dict[str, str]:
    """The variables of a command that has these folders."""
    variables = {
        **surroundings.variables,
        "PYTHONNOUSERSITE": "1",
        "PYTHONPYCACHEPREFIX": str(folders.bytecode),
    }
    if level == "namespaces":
        # The private folders are at the places of the real ones.
        return {**variables, "HOME": str(home_place() or folders.home)}
    _link_stores(surroundings, folders.home)
    return {**variables, "HOME": str(folders.home), "TMPDIR": str(folders.scratch)}


def real_home() -> str:
    """The home folder of the user."""
    return os.path.expanduser("~")  # noqa: PTH111


def home_place() -> Path | None:
    """Where a private home folder can be in the place of the real one; None if there is no such place."""
    home = Path(real_home())
    return home if home.is_absolute() and home.is_dir() and os.path.realpath(home) != "/" else None


def _link_stores(surroundings: Surroundings, home: Path) -> None:
    """Let tools find their stores in the private home folder as in the real one."""
    real = real_home()
    for store in sorted({*surroundings.stores, *surroundings.reach.places}):
        inner = os.path.relpath(store, real)
        if inner != "." and not inner.startswith(".."):
            place = home / inner
            # Sorted: whatever it lies in is linked already.
            if not any(os.path.islink(path) for path in (place, *place.parents)):  # noqa: PTH114
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(store)
