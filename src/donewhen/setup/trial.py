"""Runs the proposed checks once, to see what an agent would be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from donewhen.completion import run_check
from donewhen.completion.from_settings import checks_for
from donewhen.config import GuardSettings, TestSettings
from donewhen.filesystem import HostFilesystem
from donewhen.protocols import ReasonCode, TaskCompletionContext
from donewhen.runtime import Session
from donewhen.setup.test_commands import TestCommand

TRIAL_TIMEOUT = 60.0
"""In seconds: how long one command may take in a trial. Hooks allow more."""


@dataclass(frozen=True)
class Trial:
    """What one command said."""

    command: TestCommand
    passed: bool
    can_start: bool
    feedback: str


def try_command(root: Path, command: TestCommand) -> Trial:
    """Run one command as the hooks would."""
    settings = GuardSettings(command_timeout=TRIAL_TIMEOUT)
    if command.reports:
        settings = replace(settings, tests=TestSettings(command.text, timeout=TRIAL_TIMEOUT))
    else:
        settings = replace(settings, commands=(command.text,))
    ((_, checker),) = checks_for(settings, "--run")
    result = run_check(checker, TaskCompletionContext(session=Session(), filesystem=HostFilesystem(root)))
    can_start = result.code is not ReasonCode.COMMAND_NOT_FOUND and not _module_is_missing(command, result.feedback)
    return Trial(command, result.complete, can_start, result.feedback or "")


def first_that_starts(root: Path, commands: Sequence[TestCommand]) -> list[Trial]:
    """Try the commands one after another until one can be started; the last one tried is at the end."""
    trials: list[Trial] = []
    for command in commands:
        trials.append(try_command(root, command))
        if trials[-1].can_start:
            break
    return trials


def _module_is_missing(command: TestCommand, feedback: str | None) -> bool:
    """Whether Python has no such test runner."""
    return command.kind == "pytest" and "No module named pytest" in (feedback or "")
