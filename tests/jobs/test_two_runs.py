"""What two runs of a command show: pure decisions on results that are made here."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from donewhen.foundation.git_objects import FILE, TreeFile
from donewhen.foundation.process import CommandResult
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.evidence.two_runs import RoomOutcome, compare_outcomes, decide, is_test_of
from donewhen.jobs.evidence.two_runs import tests_of as those_of
from donewhen.jobs.room.room_plan import Change, RoomPlan
from donewhen.test_reports.junit import Outcome
from donewhen.test_reports.run_reports import RunReport

TESTS = Change("tests/test_a.py", "changed", "tests", "b")
OUTSIDE = Change("README.md", "changed", "outside", "c")
WORK = Change("src/a.py", "changed", "work", "d")


def plan(*changes: Change) -> RoomPlan:
    tree = {"src/a.py": TreeFile(FILE, "a")}
    return RoomPlan(tree, tree, changes)


def run(exit_code: int = 0, outcomes: Mapping[str, Outcome] | None = None) -> ReportedRun:
    report = None if outcomes is None else RunReport(("junit",), outcomes)
    return ReportedRun(CommandResult(("check",), "exited", exit_code, "", 0.1), report, None)


@pytest.mark.parametrize(
    ("changes", "first", "second", "passed", "needs", "failed_in"),
    [
        ((WORK,), run(), None, True, "", ""),
        ((WORK,), run(1), None, False, "", "agreed"),
        ((WORK, OUTSIDE), run(), run(), True, "", ""),
        ((WORK, OUTSIDE), run(), run(1), False, "", "whole"),
        ((WORK, OUTSIDE), run(1), run(1), False, "", "both"),
        ((WORK, OUTSIDE), run(1), run(), False, "outside_work_area", "agreed"),
        ((WORK, TESTS), run(1), run(), False, "tests_changed", "agreed"),
        ((TESTS, OUTSIDE), run(1), run(), False, "outside_work_area", "agreed"),
        (
            (TESTS, OUTSIDE),
            run(1, {"tests.test_a::test_one": "failed", "tests.test_b::test_two": "passed"}),
            run(0, {"tests.test_a::test_one": "passed", "tests.test_b::test_two": "passed"}),
            False,
            "tests_changed",
            "agreed",
        ),
        (
            (TESTS, OUTSIDE),
            run(1, {"tests.test_a::test_one": "failed", "tests.test_b::test_two": "failed"}),
            run(0, {"tests.test_a::test_one": "passed", "tests.test_b::test_two": "passed"}),
            False,
            "outside_work_area",
            "agreed",
        ),
    ],
)
def test_both_runs_must_pass_and_a_person_decides_about_changes_that_are_needed(
    changes: tuple[Change, ...],
    first: ReportedRun,
    second: ReportedRun | None,
    passed: bool,
    needs: str,
    failed_in: str,
) -> None:
    decision = decide(plan(*changes), RoomOutcome(first, second))
    assert (decision.passed, decision.needs, decision.failed_in) == (passed, needs, failed_in)
    assert decision.is_person_needed == bool(needs)


def test_a_command_that_changes_agreed_files_has_failed_whatever_it_says() -> None:
    decision = decide(plan(WORK), RoomOutcome(run(), None, written=("tests/test_a.py",)))
    assert (decision.passed, decision.needs, decision.failed_in) == (False, "", "agreed")
    assert "tests/test_a.py" in decision.why


@pytest.mark.parametrize(
    ("exit_code", "known", "passed"), [(5, True, True), (4, True, True), (1, True, False), (5, False, False)]
)
def test_where_no_tests_were_agreed_those_of_the_work_decide(exit_code: int, known: bool, passed: bool) -> None:
    outcome = RoomOutcome(run(exit_code), run(0, {"a::test": "passed"}))
    assert decide(plan(TESTS), outcome, no_agreed_tests=known).passed == passed


def test_tests_that_are_lost_among_the_agreed_ones_only_are_a_matter_of_the_changes() -> None:
    before: Mapping[str, Outcome] = {"tests.test_a::test_one": "passed"}
    lost = compare_outcomes(before, {})
    assert lost.lost == ("tests.test_a::test_one",)
    first, second = run(0, {"x::y": "passed"}), run(0, before)
    decision = decide(
        plan(TESTS), RoomOutcome(first, second, first_loss=lost, second_loss=compare_outcomes(before, before))
    )
    assert (decision.passed, decision.needs) == (False, "tests_changed")
    # Lost in what would be merged: the gate reports it, and nobody is asked.
    both = decide(plan(TESTS), RoomOutcome(first, second, first_loss=lost, second_loss=lost))
    assert both.passed


def test_missing_and_skipped_tests_are_lost_and_renamed_ones_are_not() -> None:
    before: Mapping[str, Outcome] = {"a": "passed", "b": "passed", "c": "failed", "d": "passed", "e": "passed"}
    now: Mapping[str, Outcome] = {"a": "passed", "b": "skipped", "new": "failed"}
    loss = compare_outcomes(before, now, {"d": "new", "c": "new"})
    assert (loss.lost, loss.skipped, loss.before, loss.now) == (("e",), ("b",), 4, 3)
    assert dict(loss.renamed) == {"d": "new"}
    assert loss
    assert not compare_outcomes(before, before)
    assert compare_outcomes(before, None).lost == ("a", "b", "d", "e")


@pytest.mark.parametrize(
    ("test", "name", "expected"),
    [
        ("tests.test_a.TestCart::test_one[2-3]", "tests/test_a.py", True),
        ("test_a::test_one", "shop/tests/test_a.py", True),
        ("tests.test_ab::test_one", "tests/test_a.py", False),
        ("tests.test_a::test_one", "tests/test_ab.py", False),
        ("test/price.test.js::adds > one", "test/price.test.js", True),
        ("price.test.js::adds", "test/price.test.js", True),
        ("price.test.js::adds", "test/other-price.test.js", False),
        ("tests.data::x", "tests/data.json", False),
    ],
)
def test_a_test_belongs_to_the_file_that_its_id_names(test: str, name: str, expected: bool) -> None:
    assert is_test_of(test, name) == expected
    assert those_of([test], [name]) == ((test,) if expected else ())
