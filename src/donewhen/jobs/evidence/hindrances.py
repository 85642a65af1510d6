"""What keeps a check from showing anything about the work: a missing program, or a machine that had no time for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from donewhen.foundation.executables import safe_path
from donewhen.foundation.process import CommandResult
from donewhen.jobs.ledger.gate_results import GateCode


def missing_program(
    program: str, root: Path, variables: Mapping[str, str], *, known: bool, ran_here: bool = False
) -> GateCode | None:
    """PROGRAM_MISSING if a program that was not found is missing on the machine; None if it may be part of the work.

    A path in the project is part of the work. A name can be, if a virtual environment of the project is searched: the
    work may have to bring that program. Not if it is ``known``, which means that it was run before; unless that was on
    this machine (``ran_here``): then somebody has taken it out of a folder that the agent can write to.
    """
    project = Path(os.path.realpath(root))
    if "/" in program:
        return None if Path(os.path.realpath(root / program)).is_relative_to(project) else GateCode.PROGRAM_MISSING
    # An environment that was removed as a whole is still named.
    searched = variables.get("PATH", "") if ran_here else safe_path(root, variables)
    folders = [folder for folder in searched.split(os.pathsep) if os.path.isabs(folder)]  # noqa: PTH117
    of_project = any(Path(os.path.realpath(folder)).is_relative_to(project) for folder in folders)
    return None if of_project and (ran_here or not known) else GateCode.PROGRAM_MISSING


def timeout_text(result: CommandResult) -> str:
    """That a command timed out, and why, if the machine is the reason."""
    return f"timed out, and {result.strain}" if result.strain else "timed out"
