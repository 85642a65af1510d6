"""Error classes. Messages say what was expected, what was found, where, and what to do next."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """The exit statuses of the command line."""

    PASS = 0
    GATE_FAILED = 1
    USAGE = 2
    INTERNAL = 3
    INTERRUPTED = 130


class DonewhenError(Exception):
    """The base of every error this package raises on purpose.

    ``code`` names the kind, ``exit_code`` is what the command line returns for it, ``where`` is a place
    (a file and line, an option) and ``next_step`` is what the reader can do about it.
    """

    code: ClassVar[str] = "internal"
    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(self, message: str, *, where: str | None = None, next_step: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.next_step = next_step

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f" {self.next_step}" if self.next_step else ""
        return f"{place}{self.message}{advice}"


class UsageError(DonewhenError):
    """The arguments are invalid."""

    code = "usage"
    exit_code = ExitCode.USAGE


class ConfigError(DonewhenError):
    """A setting or a settings file is invalid."""

    code = "config"
    exit_code = ExitCode.USAGE


class MissingExtraError(DonewhenError):
    """A feature needs an optional dependency that isn't installed."""

    code = "missing_extra"
    exit_code = ExitCode.USAGE

    def __init__(self, feature: str, extra: str) -> None:
        from donewhen.foundation.install_line import install_line

        line = install_line(extra)
        super().__init__(
            f"{feature} needs the optional dependency donewhen[{extra}], which is not installed.",
            next_step=f"Run: {line}" if line else f"Install donewhen again from where you got it, with [{extra}].",
        )
        self.extra = extra
