"""The baseline of a test suite: the list of tests that a report is compared with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import read_limited, write_atomically
from donewhen.foundation.size_limits import BASELINE
from donewhen.test_reports.junit import SuiteReport

_SCHEMA = "donewhen/suite-baseline/v1"


@dataclass(frozen=True)
class SuiteBaseline:
    """The ids of the tests that ran, and of those that were skipped, when the baseline was recorded."""

    executed: frozenset[str]
    skipped: frozenset[str] = frozenset()

    @classmethod
    def of(cls, report: SuiteReport) -> SuiteBaseline:
        """The baseline of a report."""
        skipped = frozenset(report.ids("skipped"))
        return cls(frozenset(report.outcomes) - skipped, skipped)

    @classmethod
    def load(cls, path: str | Path) -> SuiteBaseline:
        """Read a baseline file."""
        try:
            data = json.loads(read_limited(Path(path), BASELINE))
            if data["schema"] != _SCHEMA:
                raise ValueError(f"its schema is {data['schema']!r}, not {_SCHEMA!r}")
            return cls(frozenset(_ids(data["executed"])), frozenset(_ids(data["skipped"])))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ConfigError(
                f"The test baseline could not be read: {_explain(error)}.",
                where=str(path),
                next_step=f"Record it with: donewhen baseline --out {path} -- COMMAND",
            ) from error

    def lost_in(self, new: SuiteBaseline) -> tuple[str, ...]:
        """The tests of this baseline that a newer one does not have, or only as skipped; sorted."""
        return tuple(sorted((self.executed - new.executed) | (self.skipped - new.skipped - new.executed)))

    def save(self, path: str | Path) -> None:
        """Write a baseline file: sorted, one id per line, so that a diff shows what changed."""
        data = {"schema": _SCHEMA, "executed": sorted(self.executed), "skipped": sorted(self.skipped)}
        write_atomically(Path(path), (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


@dataclass(frozen=True)
class BaselineUpdate:
    """The outcome of replacing a baseline file."""

    added: int
    lost: tuple[str, ...]
    saved: bool
    """False if tests are lost and the loss was not accepted: the file is unchanged then."""


def update_baseline(path: Path, new: SuiteBaseline, *, accept_losses: bool = False) -> BaselineUpdate:
    """Replace the baseline in a file, unless tests of the old one are lost; a missing file is an empty baseline."""
    old = SuiteBaseline.load(path) if path.exists() else SuiteBaseline(frozenset())
    lost = old.lost_in(new)
    saved = accept_losses or not lost
    if saved:
        new.save(path)
    return BaselineUpdate(len(new.executed - old.executed), lost, saved)


def _ids(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(test, str) for test in value):
        raise ValueError("its test ids must be a list of strings")
    return value


def _explain(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, KeyError):
        return f"the key {error} is missing"
    return str(error)
