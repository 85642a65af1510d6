"""Which levels of isolation work on this machine, found out by trying the smallest real thing at each."""

from __future__ import annotations

import errno
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from donewhen.foundation.process import CommandNotRunnableError
from donewhen.isolation.bubblewrap import CAN_NOT, NoBubblewrapError, bubblewrap, run_in_namespaces
from donewhen.isolation.confinement import Confinement
from donewhen.isolation.explaining import Forbidden, forbidden_namespaces, install_advice
from donewhen.isolation.landlock import landlock_version, ruleset_of
from donewhen.isolation.levels import LEVELS, Level, Network
from donewhen.isolation.supervised import run_supervised

_TIMEOUT = 60.0
_NOT_LINUX = "only Linux has it"
_NO_LANDLOCK: Mapping[int, str] = {
    errno.ENOSYS: "this kernel has no Landlock (Linux 5.13 or later has it, unless it was left out), or a sandbox "
    "around this process hides it",
    errno.EOPNOTSUPP: "Landlock was switched off when this machine started; add landlock to the kernel parameter lsm=",
    errno.EPERM: "a container, or a sandbox around this process such as an agent's own, forbids Landlock",
}


def usable_levels(network: Network = "own") -> Mapping[Level, str]:
    """For each level, why it does not work here; empty if it does."""
    return {level: why_unusable(level, network) for level in LEVELS}


@lru_cache
def why_unusable(level: Level, network: Network = "own") -> str:
    """Why a level does not work here; empty if it does. It is tried once in a process."""
    if level == "copy":
        return ""
    if sys.platform != "linux":
        return _NOT_LINUX
    return _why_no_namespaces(network) if level == "namespaces" else _why_no_landlock()


def _why_no_namespaces(network: Network) -> str:
    try:
        program = bubblewrap()
    except NoBubblewrapError as error:
        return f"{error.message}; {install_advice()}"
    try:
        with tempfile.TemporaryDirectory(prefix="donewhen-") as folder:
            confinement = _smallest("namespaces", network, Path(folder))
            # The one program that is surely there.
            result = run_in_namespaces((program.path, "--version"), Path(folder), {}, confinement, _TIMEOUT)
    except (CommandNotRunnableError, OSError) as error:
        message = error.message if isinstance(error, CommandNotRunnableError) else str(error)
        return forbidden_namespaces(message.removeprefix(CAN_NOT), Forbidden.here())
    return "" if result.succeeded else f"a command that was tried has failed: {result.output.strip()[-200:]}"


def _why_no_landlock() -> str:
    try:
        version = landlock_version()
        with tempfile.TemporaryDirectory(prefix="donewhen-") as folder:
            ruleset = ruleset_of(_smallest("landlock", "host", Path(folder)), version)
            result = run_supervised(("/bin/sh", "-c", ":"), Path("/"), {}, ruleset, _TIMEOUT)
    except CommandNotRunnableError as error:
        return error.message.rstrip(".")
    except OSError as error:
        return _NO_LANDLOCK.get(error.errno or 0, f"Landlock can't be used here: {error.strerror}")
    return "" if result.succeeded else f"a command that was tried has failed: {result.output.strip()[-200:]}"


def _smallest(level: Level, network: Network, folder: Path) -> Confinement:
    """The least that a command needs, with something of each kind."""
    room, place, home, scratch = (folder / name for name in ("room", "place", "home", "tmp"))
    for path in (room, place, home, scratch):
        path.mkdir()
    return Confinement(level, network, room, place, home, scratch, {}, (), (place,))
