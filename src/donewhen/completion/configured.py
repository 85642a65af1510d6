"""The checker that a project's settings describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.completion.composite import CompositeChecker
from donewhen.foundation.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from donewhen.config import GuardSettings, TestSettings
    from donewhen.protocols import TaskCompletionChecker


def checker_for(settings: GuardSettings, where: str) -> TaskCompletionChecker:
    """The checker for one kind of stop; every check is made, so that the agent hears of all that is missing."""
    checkers: list[TaskCompletionChecker] = []
    if settings.files:
        from donewhen.completion.files import FileExistsChecker

        checkers.append(FileExistsChecker(settings.files, strict=True))
    if settings.commands:
        from donewhen.completion.command import CommandChecker

        checkers += [
            CommandChecker(_split(text, where), timeout=settings.command_timeout, pass_env=settings.pass_env, name=text)
            for text in settings.commands
        ]
    if settings.tests is not None:
        checkers.append(_suite(settings.tests, where))
    return CompositeChecker(checkers, collect_all=True)


def _suite(tests: TestSettings, where: str) -> TaskCompletionChecker:
    from donewhen.completion.suite import TestSuiteChecker

    try:
        return TestSuiteChecker(
            _split(tests.run, where),
            baseline=tests.baseline,
            timeout=tests.timeout,
            pass_env=tests.pass_env,
            name=tests.run,
        )
    except ValueError as error:
        raise ConfigError(f"tests.run: {error}.", where=where) from error


def _split(text: str, where: str) -> tuple[str, ...]:
    from donewhen.foundation.process import split_command

    try:
        return split_command(text)
    except UsageError as error:
        raise ConfigError(error.message, where=where, next_step=error.next_step) from error
