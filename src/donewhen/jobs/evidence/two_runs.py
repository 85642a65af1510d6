"""What two runs of a command show: one on the agreed files with the work, one on everything as the agent has it.

Pure functions: they get the results and the plan of the room.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from donewhen.foundation.plain_text import join_limited
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.room.room_plan import RoomPlan
from donewhen.test_reports.junit import Outcome

Needs = Literal["", "outside_work_area", "tests_changed"]
Outcomes = Mapping[str, Outcome]
_MAX_LISTED = 5
_NO_TESTS = (4, 5)
"""pytest's exit statuses if a named file does not exist, and if there are no tests; unittest has the second, too."""


@dataclass(frozen=True)
class TestLoss:
    """The tests that passed in the agreed tree and did not run, or were skipped, with the work."""

    __test__ = False

    lost: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    before: int = 0
    now: int = 0

    def __bool__(self) -> bool:
        return bool(self.lost or self.skipped)


@dataclass(frozen=True)
class RoomOutcome:
    """One command in the room."""

    first: ReportedRun
    second: ReportedRun | None
    written: tuple[str, ...] = ()
    """Agreed files that the command has changed, which makes the run worthless."""
    first_loss: TestLoss = TestLoss()
    second_loss: TestLoss = TestLoss()

    @property
    def loss(self) -> TestLoss:
        """The tests that are lost in what would be merged."""
        return self.first_loss if self.second is None else self.second_loss


@dataclass(frozen=True)
class Decision:
    """Whether a command has passed, or what a person has to decide first."""

    passed: bool
    needs: Needs = ""
    failed_in: Literal["", "agreed", "whole", "both"] = ""
    why: str = ""

    @property
    def is_person_needed(self) -> bool:
        return bool(self.needs)


def decide(plan: RoomPlan, outcome: RoomOutcome, *, no_agreed_tests: bool = False) -> Decision:
    """Decide on a command. ``no_agreed_tests`` says that it runs tests, and that none were agreed."""
    if outcome.written:
        return Decision(False, "", "agreed", written_text(outcome.written))
    first, second = outcome.first.passed, outcome.second.passed if outcome.second is not None else None
    if not first and no_agreed_tests and second and outcome.first.result.exit_code in _NO_TESTS:
        first = True
    if second is not None and not outcome.second_loss:
        # Tests that are lost only among the agreed ones are a matter of the changes, too.
        first = first and not outcome.first_loss
    if first and second is not False:
        return Decision(True)
    if second:
        report = outcome.first.report
        decision = person_decision(plan, {} if report is None else report.outcomes)
        gone = (*outcome.second_loss.lost, *outcome.second_loss.skipped)
        if not gone:
            return decision
        return replace(decision, why=f"{decision.why}; agreed tests that are gone: {join_limited(gone, _MAX_LISTED)}")
    if second is None:
        return Decision(False, "", "agreed")
    return Decision(False, "", "whole" if first else "both")


def compare_outcomes(before: Outcomes, now: Outcomes | None, renamed: Mapping[str, str] | None = None) -> TestLoss:
    """The tests that passed before, and are missing or skipped now; a renamed test is looked up by its new name."""
    names = renamed or {}
    found = now or {}
    passed = [test for test, outcome in before.items() if outcome == "passed"]
    outcomes = {test: found.get(names.get(test, test)) for test in passed}
    return TestLoss(
        lost=tuple(test for test, outcome in outcomes.items() if outcome is None),
        skipped=tuple(test for test, outcome in outcomes.items() if outcome == "skipped"),
        renamed={test: name for test, name in names.items() if test in outcomes},
        before=len(passed),
        now=len(found),
    )


def is_test_of(test: str, name: str) -> bool:
    """Whether a test belongs to a file, by its id; a Python module is named from some folder downwards."""
    group = test.partition("::")[0]
    if group == name or name.endswith(f"/{group}"):
        return True
    if not name.endswith(".py"):
        return False
    module = name.removesuffix(".py").replace("/", ".")
    parts = group.split(".")
    prefixes = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return any(module == prefix or module.endswith(f".{prefix}") for prefix in prefixes)


def tests_of(tests: Iterable[str], names: Collection[str]) -> tuple[str, ...]:
    """Those of some tests that belong to one of these files."""
    return tuple(test for test in tests if any(is_test_of(test, name) for name in names))


def written_text(names: Sequence[str]) -> str:
    """Why a run is worthless that has changed these files; empty if there are none."""
    if not names:
        return ""
    listed = join_limited(names, _MAX_LISTED)
    return f"it changed files that have to stay as they were agreed while checks run: {listed}"


def person_decision(plan: RoomPlan, outcomes: Outcomes) -> Decision:
    """What a person has to decide if a command passes on everything as the agent has it and not on the agreed files
    with the work; ``outcomes`` are those of its tests on the latter."""
    changed_tests = [change.name for change in plan.tests]
    outside = [change.name for change in plan.outside]
    failing = [test for test, result in outcomes.items() if result in _BAD]
    only_tests = bool(changed_tests) and (
        not outside or (bool(failing) and len(tests_of(failing, changed_tests)) == len(failing))
    )
    if only_tests:
        names = join_limited(changed_tests, _MAX_LISTED)
        why = f"it passes only with the changed tests, not with the agreed ones: {names}"
        return Decision(False, "tests_changed", "agreed", why)
    names = join_limited([*outside, *changed_tests], _MAX_LISTED)
    return Decision(False, "outside_work_area", "agreed", f"it passes only with changes outside the work area: {names}")


_BAD: tuple[Outcome, ...] = ("failed", "errored")
