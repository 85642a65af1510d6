"""What controls say about a run is decided by pure functions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from donewhen.controls.judging import ControlsResult, Fault, compare_with_agreed, judge_controls
from donewhen.controls.sent_lines import SentLines

GOOD = SentLines(
    started="pytest 8.3.5",
    controls={"test_a.py::test_x": "fail", "test_a.py::test_y": "pass"},
    control_outcomes={"test_a.py::test_x": "failed", "test_a.py::test_y": "passed"},
    tests={"test_a.py::test_1": "passed", "test_a.py::test_2": "skipped"},
    exit_status=0,
)
REPORT = {"test_a::test_1": "passed", "test_a::test_2": "skipped"}


def test_controls_that_come_out_hold() -> None:
    assert judge_controls(GOOD, 0, REPORT) == ControlsResult("held")


@pytest.mark.parametrize(
    ("lines", "report", "fault"),
    [
        (replace(GOOD, control_outcomes={**GOOD.control_outcomes, "test_a.py::test_x": "passed"}), REPORT, "must_fail"),
        (
            replace(GOOD, control_outcomes={**GOOD.control_outcomes, "test_a.py::test_x": "skipped"}),
            REPORT,
            "must_fail",
        ),
        (replace(GOOD, control_outcomes={"test_a.py::test_y": "passed"}), REPORT, "must_fail"),
        (replace(GOOD, control_outcomes={**GOOD.control_outcomes, "test_a.py::test_y": "failed"}), REPORT, "must_pass"),
        (replace(GOOD, control_outcomes={"test_a.py::test_x": "failed"}), REPORT, "must_pass"),
        (replace(GOOD, foreign=True), REPORT, "foreign"),
        (replace(GOOD, exit_status=None), REPORT, "ended_early"),
        (replace(GOOD, exit_status=1), REPORT, "exit_status"),
        (replace(GOOD, turned=("test_a.py::test_1",)), REPORT, "turned"),
        (replace(GOOD, tests={"test_a.py::test_1": "failed"}), REPORT, "report"),
        (GOOD, {**REPORT, "test_a::test_3": "passed"}, "report"),
    ],
)
def test_a_contradiction_in_a_run_that_succeeded_is_a_fault(
    lines: SentLines, report: dict[str, str], fault: Fault
) -> None:
    found = judge_controls(lines, 0, report)
    assert (found.held, found.faults) == ("broken", (fault,))
    assert found.why


def test_a_run_that_failed_may_end_early() -> None:
    """``-x`` stops before a control had its turn; whoever is killed reports nothing."""
    lines = replace(GOOD, control_outcomes={}, exit_status=None)
    assert judge_controls(lines, 1, None).held == "none"


def test_a_test_that_must_fail_does_not_pass_in_a_run_that_failed_either() -> None:
    lines = replace(GOOD, control_outcomes={"test_a.py::test_x": "passed"}, exit_status=1)
    assert judge_controls(lines, 1, REPORT).faults == ("must_fail",)


def test_a_run_without_a_report_of_tests_is_judged_by_its_controls() -> None:
    assert judge_controls(GOOD, 0, None).held == "held"


def test_what_did_not_connect_has_no_controls() -> None:
    found = judge_controls(SentLines(), 0, REPORT)
    assert found == ControlsResult("none", "the test runner did not connect to the gate")


def test_the_runner_says_why_it_takes_none() -> None:
    lines = SentLines(started="pytest 3", without=("it is too old",), tests=GOOD.tests, exit_status=0)
    assert judge_controls(lines, 0, REPORT) == ControlsResult("none", "it is too old")


HELD = ControlsResult("held")
BROKEN = ControlsResult("broken", "a test that must fail passed", ("must_fail",))


def test_what_is_wrong_without_the_work_as_well_is_not_held_against_it() -> None:
    assert compare_with_agreed(BROKEN, BROKEN).held == "none"


@pytest.mark.parametrize(
    "agreed",
    [HELD, ControlsResult("none", "there are no tests"), ControlsResult("broken", "the report", ("report",))],
)
def test_what_is_wrong_only_with_the_work_stays_wrong(agreed: ControlsResult) -> None:
    assert compare_with_agreed(BROKEN, agreed) == BROKEN


def test_controls_that_are_missing_only_with_the_work_are_a_fault() -> None:
    without = ControlsResult("none", "the test runner did not connect to the gate")
    assert compare_with_agreed(without, HELD).faults == ("missing",)
    assert compare_with_agreed(without, without) == without
    assert compare_with_agreed(HELD, without) == HELD
