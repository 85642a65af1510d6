"""Runs commands in a folder that is a room: one that was laid out for them, or one that verify has made."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from donewhen.foundation.executables import resolve_executable
from donewhen.jobs.evidence.confined_runs import run_confined
from donewhen.jobs.evidence.room_place import RoomPlace as RoomPlace
from donewhen.jobs.evidence.test_report import ReportedRun, run_with_report
from donewhen.jobs.room.basis import in_place
from donewhen.jobs.room.confining import usable_level
from donewhen.jobs.room.room_environment import program_in_room, room_environment, write_startup
from donewhen.jobs.room.surroundings import Surroundings


class PlacedRoom(Protocol):
    """A folder that is a room itself, so that checks run in it as it is."""

    def run(self, argv: Sequence[str], surroundings: Surroundings, timeout: float) -> ReportedRun:
        """Run a command in the room, and put it back."""
        ...

    def written(self) -> tuple[str, ...]:
        """The files that the last command has changed, and that have to stay as they are."""
        ...


_PLACED: ContextVar[PlacedRoom | None] = ContextVar("donewhen_placed_room", default=None)


def placed_room() -> PlacedRoom | None:
    """The room that checks run in now; None if it is made from a job's agreement."""
    return _PLACED.get()


@contextmanager
def running_in(room: PlacedRoom) -> Iterator[None]:
    """Meanwhile, checks run in this room."""
    token = _PLACED.set(room)
    try:
        with in_place():
            yield
    finally:
        _PLACED.reset(token)


def run_in_place(place: RoomPlace, argv: Sequence[str], surroundings: Surroundings, timeout: float) -> ReportedRun:
    """Run a command so that it finds the files of the room and not those of the checkout."""
    if surroundings.private:
        level = usable_level(surroundings.isolation, surroundings.network)
        return run_confined(place, argv, surroundings, timeout, level)
    with tempfile.TemporaryDirectory(prefix="donewhen-", ignore_cleanup_errors=True) as folder:
        startup, reports = Path(folder) / "startup", Path(folder) / "reports"
        write_startup(startup, place.top, place.folder)
        reports.mkdir()
        program = program_in_room(resolve_executable(argv[0], place.root).path, place.root, place.project)
        variables = room_environment(surroundings.variables, startup)
        return run_with_report(
            program, argv, cwd=place.project, reports=reports, environment=variables, timeout=timeout
        )
