"""A project with a room, and commands that are kept apart in it at a level that really works here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from donewhen.foundation.process import CommandResult
from donewhen.isolation.confinement import Confinement
from donewhen.isolation.levels import Level, Network
from donewhen.isolation.running import run_apart
from donewhen.isolation.usable import why_unusable

PATIENCE = 60.0
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
INTERPRETER = Path(os.path.realpath(sys.executable))
"""May lie in the home folder."""
STORE = INTERPRETER.parent.parent


def need(level: Level, network: Network = "own") -> None:
    """Skip a test where a level does not work."""
    if why := why_unusable(level, network):
        pytest.skip(f"LOUD: the level {level} is NOT tested here: {why}")


class Apart:
    """A checkout with secrets, and the room that stands for it."""

    def __init__(self, base: Path, level: Level, network: Network = "own", *, place: Path | None = None) -> None:
        place = base / "shop" if place is None else place
        private = base / "private"
        folders = [private / name for name in ("home", "tmp", "reports", "bytecode")]
        person = base / "person"
        room = base / "rooms" / place.name
        for folder in (place, room, person, *folders):
            folder.mkdir(parents=True, exist_ok=True)
        (place / "answer.txt").write_text("the checkout's")
        (place / ".donewhen").mkdir(exist_ok=True)
        (place / ".donewhen" / "ledger").write_text("{}")
        (room / "answer.txt").write_text("the room's")
        (person / "key").write_text("secret")
        self.base, self.place, self.room, self.person = base, place, room, person
        self.confinement = Confinement(
            level=level,
            network=network,
            room=room,
            place=place,
            home=folders[0],
            scratch=folders[1],
            read_only={STORE: STORE},
            writable=(folders[2], folders[3]),
            hidden=(place, base / "rooms"),
            home_place=person,
        )

    def changed(self, **fields: object) -> None:
        self.confinement = replace(self.confinement, **fields)  # type: ignore[arg-type]

    @property
    def home(self) -> Path:
        """Where commands find their home folder."""
        return self.person if self.confinement.level == "namespaces" else self.confinement.home

    @property
    def top(self) -> Path:
        """Where commands find the room."""
        return self.place if self.confinement.level == "namespaces" else self.room

    def sh(self, script: str, *, timeout: float = PATIENCE, inside: str = "", **variables: str) -> CommandResult:
        return self.run("/bin/sh", "-c", script, timeout=timeout, inside=inside, **variables)

    def python(self, code: str, *, timeout: float = PATIENCE, **variables: str) -> CommandResult:
        return self.run(str(INTERPRETER), "-c", code, timeout=timeout, **variables)

    def run(self, *argv: str, timeout: float = PATIENCE, inside: str = "", **variables: str) -> CommandResult:
        environment: Mapping[str, str] = {"PATH": PATH, "HOME": str(self.home), **variables}
        return run_apart(argv, self.room / inside, environment, self.confinement, timeout)


class Alive:
    """Whether some process holds a named pipe of the room open."""

    def __init__(self, room: Path) -> None:
        path = room / "alive"
        os.mkfifo(path)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def __bool__(self) -> bool:
        try:
            return os.read(self._descriptor, 10) != b""
        except BlockingIOError:
            return True

    def close(self) -> None:
        os.close(self._descriptor)


DAEMON = """
(setsid sh -c 'exec 3> alive; trap "" TERM HUP INT; touch up; while :; do sleep 0.1; done' > /dev/null 2>&1 &)
until test -e up; do sleep 0.02; done
"""
"""A shell script that leaves a process behind, which has left its parents and its session, and ignores signals."""
