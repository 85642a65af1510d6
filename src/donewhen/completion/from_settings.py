"""Build the checker that a project's settings describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.completion.composite import CompositeChecker
from donewhen.foundation.errors import ConfigError, DonewhenError

if TYPE_CHECKING:
    from donewhen.config import GuardSettings, TestSettings
    from donewhen.protocols import TaskCompletionChecker


def checker_for(settings: GuardSettings, where: str, table: str = "stop") -> TaskCompletionChecker:
    """Return the checker for one kind of stop; it runs every check, so the feedback lists all that is missing."""
    return CompositeChecker((checker for _, checker in checks_for(settings, where, table)), collect_all=True)


def checks_for(settings: GuardSettings, where: str, table: str = "stop") -> list[tuple[str, TaskCompletionChecker]]:
    """Return the single checks with their names. ``where`` and ``table`` locate a configuration error."""
    checks: list[tuple[str, TaskCompletionChecker]] = []
    if settings.base is not None:
        from donewhen.completion.base_checker import BaseChecker

        return [(f"[{table}] of {settings.base}", BaseChecker(settings.base, table, jobs=settings.jobs))]
    if settings.files:
        from donewhen.completion.files import FileExistsChecker

        for path in settings.files:
            _require_relative_path(path, where, table)
        checks.append((f"files {', '.join(settings.files)}", FileExistsChecker(settings.files, strict=True)))
    if settings.commands:
        from donewhen.completion.command import CommandChecker

        for text in settings.commands:
            argv = _split(text, where, f"{table}.commands")
            checker = CommandChecker(argv, timeout=settings.command_timeout, pass_env=settings.pass_env, name=text)
            checks.append((text, checker))
    if settings.tests is not None:
        checks.append((settings.tests.run, _suite(settings.tests, where, f"{table}.tests.run")))
    if settings.jobs or settings.require_job == "on":
        from donewhen.completion.job_checker import JobChecker

        on = settings.require_job == "on"
        checks.append(("jobs in progress", JobChecker(require_job="ready" if on else False)))
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


def _require_relative_path(path: str, where: str, table: str) -> None:
    from donewhen.filesystem.protocol import split_path

    try:
        split_path(path)
    except DonewhenError as error:
        raise _config_error(f"{table}.files", error, where) from error


def _split(text: str, where: str, name: str) -> tuple[str, ...]:
    from donewhen.foundation.process import split_command

    try:
        return split_command(text)
    except DonewhenError as error:
        raise _config_error(name, error, where) from error


def _config_error(name: str, error: DonewhenError, where: str) -> ConfigError:
    return ConfigError(f"{name}: {error.message}", where=where, next_step=error.next_step)
