"""What probing a passed check has shown: whether its tests would notice a defect, and whether they need each other.

A record belongs to one run of one command, by the key of that run. Nothing in it refuses anything: it says how much a
passed check is worth. Each part that was not tried says why, and how much of it was left out for lack of time.
"""

from __future__ import annotations

from typing import Literal

import msgspec

PROBES = "donewhen/probes/v1"

WasRed = Literal["yes", "no", "could_not_run", "nothing_new", "unknown"]
"""``yes``: at least one test that passes now fails without the work. ``no``: all new or changed tests pass without it.
``could_not_run``: they can't even be collected without the work, which counts as red. ``nothing_new``: no test was
added or changed, and the agreed ones pass without the work, too. ``unknown``: see ``why``."""
Noticed = Literal["yes", "no", "unknown"]


class SurvivingMutant(msgspec.Struct, frozen=True, kw_only=True):
    """A small change of the work that no test noticed."""

    file: str
    """Relative to the project."""
    line: int
    original: str
    changed: str
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {self.original} → {self.changed}"


class MutantsTried(msgspec.Struct, frozen=True, kw_only=True):
    """Small changes of the changed lines, and how many of them the tests noticed."""

    possible: int = 0
    """All mutants of the changed lines."""
    tried: int = 0
    survived: int = 0
    left_out: int = 0
    """Those that there was no time for."""
    tests: int = 0
    """The tests that were run on each mutant: those that can reach the changed files, as far as there was time."""
    not_loaded: tuple[str, ...] = ()
    """Changed files that none of these tests loads, so that they were not changed any further."""
    differing: int | None = None
    """The survivors that give another answer to some input near those of the tests; None if that was not compared."""
    survivors: tuple[SurvivingMutant, ...] = ()
    why: str = ""
    """Why none were tried, such as another language; empty if some were."""

    @property
    def surviving_share(self) -> float | None:
        """The share of the tried mutants that no test noticed; None if none were tried."""
        return self.survived / self.tried if self.tried else None


class TestsAlone(msgspec.Struct, frozen=True, kw_only=True):
    """Tests that passed with the others, each run alone."""

    __test__ = False

    tried: int = 0
    left_out: int = 0
    only_in_company: tuple[str, ...] = ()
    """Tests that don't pass alone."""
    why: str = ""
    """Why this was not tried; empty if it was."""


class OtherOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The same tests in the opposite order."""

    tried: int = 0
    left_out: int = 0
    failing: tuple[str, ...] = ()
    """Tests that pass in the usual order only."""
    why: str = ""


class RedBefore(msgspec.Struct, frozen=True, kw_only=True):
    """What the tests say about the agreed files without the work."""

    outcome: WasRed = "unknown"
    red: tuple[str, ...] = ()
    """New or changed tests that fail without the work."""
    green: tuple[str, ...] = ()
    """New or changed tests that pass without the work, so that they prove nothing about it."""
    could_not_run: tuple[str, ...] = ()
    """Files of new or changed tests that can't be collected without the work."""
    undoing_noticed: Noticed = "unknown"
    """Whether any of the current tests fails if the work is undone."""
    why: str = ""


class ChangedCode(msgspec.Struct, frozen=True, kw_only=True):
    """The changed code itself, in numbers."""

    files: int = 0
    lines: int = 0
    """Changed lines with code."""
    doubt: float | None = None
    """How likely it is that the work is wrong although its tests pass, compared with other work: 0 is the average,
    more is worse. None if nothing could be measured. See ``donewhen.mutation.doubt``."""


class ProbeRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag=PROBES):
    """The probes of one command that has passed."""

    job: str = ""
    evidence: str = ""
    """The command, with secrets redacted."""
    key: str = ""
    """The key of the run whose tests were probed."""
    code: ChangedCode = ChangedCode()
    mutants: MutantsTried = MutantsTried()
    alone: TestsAlone = TestsAlone()
    other_order: OtherOrder = OtherOrder()
    red_before: RedBefore = RedBefore()
    seconds: float = 0.0
    budget: float = 0.0
    """The seconds that there were for all of it; what was tried within them is counted above."""
