"""The checker that a project's settings describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.completion.composite import CompositeChecker
from donewhen.foundation.errors import ConfigError, DonewhenError

if TYPE_CHECKING:
    from donewhen.config import GuardSettings, TestSettings
    from donewhen.protocols import TaskCompletionChecker


def checker_for(settings: GuardSettings, where: str, table: str = "stop") -> TaskCompletionChecker:
    """The checker for one kind of stop; every check is made, so that the agent hears of all that is missing."""
    return CompositeChecker((one for _, one in checks_for(settings, where, table)), collect_all=True)


def checks_for(settings: GuardSettings, where: str, table: str = "stop") -> list[tuple[str, TaskCompletionChecker]]:
    """The single checks, each with what to call it. ``where`` and ``table`` say whose mistake a mistake is."""
    checks: list[tuple[str, TaskCompletionChecker]] = []
    if settings.files:
        from donewhen.completion.files import FileExistsChecker

        for path in settings.files:
            _inside(path, where, table)
        checks.append((f"files {', '.join(settings.files)}", FileExistsChecker(settings.files, strict=True)))
    if settings.commands:
        from donewhen.completion.command import CommandChecker

        for text in settings.commands:
            argv = _split(text, where, f"{table}.commands")
            checker = CommandChecker(argv, timeout=settings.command_timeout, pass_env=settings.pass_env, name=text)
            checks.append((text, checker))
    if settings.tests is not None:
        checks.append((settings.tests.run, _suite(settings.tests, where, f"{table}.tests.run")))
    if settings.jobs:
        from donewhen.completion.job_checker import JobChecker

        checks.append(("jobs in progress", JobChecker()))
    return checks


def _suite(tests: TestSettings, where: str, name: str) -> TaskCompletionChecker:
    from donewhen.completion.suite import TestSuiteChecker

    try:
        return TestSuiteChecker(
            _split(tests.run, where, name),
            baseline=tests.baseline,
            timeout=tests.timeout,
            pass_env=tests.pass_env,
            name=tests.run,
        )
    except ValueError as error:
        raise ConfigError(f"{name}: {error}.", where=where) from error


def _inside(path: str, where: str, table: str) -> None:
    from donewhen.filesystem.protocol import split_path

    try:
        split_path(path)
    except DonewhenError as error:
        raise _mistake(f"{table}.files", error, where) from error


def _split(text: str, where: str, name: str) -> tuple[str, ...]:
    from donewhen.foundation.process import split_command

    try:
        return split_command(text)
    except DonewhenError as error:
        raise _mistake(name, error, where) from error


def _mistake(name: str, error: DonewhenError, where: str) -> ConfigError:
    return ConfigError(f"{name}: {error.message}", where=where, next_step=error.next_step)
