"""Runs a command at a level of isolation."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from donewhen.foundation.process import CommandResult, run_command
from donewhen.isolation.bubblewrap import run_in_namespaces
from donewhen.isolation.confinement import Confinement, ConfinementError
from donewhen.isolation.landlock import landlock_version, ruleset_of
from donewhen.isolation.supervised import run_supervised


def run_apart(
    argv: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str],
    confinement: Confinement,
    timeout: float,
    pass_fds: Sequence[int] = (),
) -> CommandResult:
    """Run a command so that it reaches nothing but what it may reach, and leaves no process behind.

    ``cwd`` is in the room; ``pass_fds`` are open files that the command inherits. Raise ConfinementError if that does
    not work: nothing is known about the command then.
    """
    if confinement.level == "namespaces":
        return run_in_namespaces(argv, cwd, variables, confinement, timeout, pass_fds)
    if confinement.level == "landlock":
        try:
            ruleset = ruleset_of(confinement, landlock_version())
        except OSError as error:
            raise ConfinementError(f"Landlock can't be used here: {error.strerror}.") from error
        return run_supervised(argv, cwd, variables, ruleset, timeout, pass_fds)
    if sys.platform == "linux":
        return run_supervised(argv, cwd, variables, None, timeout, pass_fds)
    return run_command(argv, cwd=cwd, timeout=timeout, env=variables, pass_fds=pass_fds)
