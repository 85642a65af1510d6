"""Runs a command below a process that ends whatever the command has started, and that can restrict it by Landlock."""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from donewhen.foundation.process import CommandNotRunnableError, CommandResult, run_command
from donewhen.isolation.bubblewrap import passed_file
from donewhen.isolation.confinement import ConfinementError
from donewhen.isolation.landlock import Ruleset

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))
_TIME_TO_END = 30.0
"""It kills what is left within seconds; on a machine that is busy it may take longer. Only what is left then is not
ended: whoever is killed can't kill others."""


def run_supervised(
    argv: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str],
    ruleset: Ruleset | None,
    timeout: float,
    pass_fds: Sequence[int] = (),
) -> CommandResult:
    """Run a command, and end every process that it has started, also those that have left its session."""
    specification = {
        "argv": list(argv),
        "cwd": str(cwd),
        "environment": dict(variables),
        "gate": os.getpid(),
        "landlock": None
        if ruleset is None
        else {"handled": ruleset.handled, "scoped": ruleset.scoped, "rules": [[*rule] for rule in ruleset.rules]},
    }
    with passed_file(marshal.dumps(specification)) as given, passed_file() as status:
        descriptors = (given.fileno(), status.fileno())
        # Isolated: what the command is told by variables is not said to the interpreter.
        words = [sys.executable, "-I", "-S", "-B", _LAUNCHER, *map(str, descriptors)]
        result = run_command(
            words, cwd=Path("/"), timeout=timeout, env={}, pass_fds=(*descriptors, *pass_fds), time_to_end=_TIME_TO_END
        )
        line = os.pread(status.fileno(), 1 << 14, 0).decode("utf-8", "replace").strip()
    return _result(replace(result, argv=tuple(argv)), line)


def _result(result: CommandResult, line: str) -> CommandResult:
    """What the launcher says about the command."""
    word, _, detail = line.partition(" ")
    if line.startswith("not started "):
        reason = line.removeprefix("not started ")
        raise CommandNotRunnableError(
            f"The command {result.argv[0]!r} could not be started: {reason}.",
            next_step="Checks reach programs of the system, of the project's environments, and in the folders of PATH.",
        )
    if line.startswith("not confined "):
        reason = line.removeprefix("not confined ")
        raise ConfinementError(f"Landlock can't keep the command apart from everything else: {reason}.")
    if word in ("exited", "signaled"):
        return replace(result, exit_code=int(detail) if word == "exited" else -int(detail))
    if result.ending != "exited":
        return result
    if line == "not ended":
        raise ConfinementError(
            "Processes that the command has started can't be ended, so its result can't be relied on.",
            next_step="Let the check start no programs of other users, and none that start themselves again and again.",
        )
    # Its own messages are the only output if it did not start the command.
    detail = result.output.strip().rpartition("\n")[2] if result.exit_code == 1 else ""
    raise ConfinementError(
        "The process that ends what a check has started was itself killed or has failed"
        f"{f' ({detail})' if detail else ''}, so nothing is known about the command.",
        next_step="Run it again. A check must not send signals to processes that it has not started.",
    )
