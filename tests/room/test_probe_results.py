"""What probes have found, as records and lines: decided on values."""

from __future__ import annotations

from pathlib import Path

import pytest

from donewhen.foundation.process import CommandResult
from donewhen.jobs.evidence.mutant_runs import not_tried, tried_by_plugin
from donewhen.jobs.evidence.probe_plugin import PluginReport, ProbePlan, probing, report_in
from donewhen.jobs.evidence.probe_record import (
    MutantsTried,
    OtherOrder,
    ProbeRecord,
    RedBefore,
    SurvivingMutant,
    TestsAlone,
)
from donewhen.jobs.evidence.probe_text import probe_lines
from donewhen.jobs.evidence.probed_work import Mutant, ProbedWork
from donewhen.jobs.evidence.probes import LEAST_SECONDS, seconds_for, summary
from donewhen.jobs.evidence.red_before import compared, new_or_changed, without_ids
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.room.surroundings import Surroundings
from donewhen.mutation.code_changes import code_changes
from donewhen.test_reports.run_reports import RunReport

CODE = "def sign(number):\n    if number < 0:\n        return -1\n    return 1\n"
OLD = "def test_a():\n    assert 1\n\n\ndef test_b():\n    assert 1\n"
NEW = "def test_a():\n    assert 1\n\n\ndef test_b():\n    assert 2\n\n\ndef test_c():\n    assert 3\n"
IDS = [f"tests.test_x::test_{letter}" for letter in "abc"]


def run_with(outcomes: dict[str, str], exit_code: int = 0) -> ReportedRun:
    result = CommandResult(("pytest",), "exited", exit_code, "", 0.1)
    report = RunReport(("junit",), outcomes=outcomes) if outcomes else None  # type: ignore[arg-type]
    return ReportedRun(result, report, None)


def work_of(code: str = CODE, others: tuple[str, ...] = ()) -> ProbedWork:
    mutants = tuple(Mutant("sign.py", change) for change in code_changes(code))
    changed = {"sign.py": code} if code else {}
    return ProbedWork("", changed, others, mutants, (), {}, {}, (), {})


def test_new_tests_and_changed_ones_are_said_to_prove_the_work() -> None:
    before, now = dict.fromkeys(IDS[:2], "passed"), dict.fromkeys(IDS, "passed")
    found = new_or_changed(before, now, {"tests/test_x.py": OLD}, {"tests/test_x.py": NEW})  # type: ignore[arg-type]
    assert found == (IDS[1], IDS[2])
    assert new_or_changed(before, {IDS[0]: "failed"}, {}, {}) == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "outcomes", "exit_code", "expected", "noticed"),
    [
        ({}, {IDS[2]: "failed"}, 1, "yes", "yes"),
        ({}, {IDS[2]: "passed"}, 0, "no", "no"),
        ({}, {"tests.test_x": "errored"}, 2, "could_not_run", "yes"),
        ({}, {}, 2, "could_not_run", "yes"),
        ({IDS[0]: "failed"}, {IDS[2]: "passed"}, 0, "yes", "yes"),
        ({}, {}, 0, "unknown", "unknown"),
    ],
)
def test_red_before_is_decided_on_new_tests_and_on_agreed_ones(
    before: dict[str, str], outcomes: dict[str, str], exit_code: int, expected: str, noticed: str
) -> None:
    now = dict.fromkeys(IDS, "passed")
    found = compared(before, now, (IDS[2],), run_with(outcomes, exit_code), ("tests/test_x.py",))  # type: ignore[arg-type]
    assert (found.outcome, found.undoing_noticed) == (expected, noticed)


def test_without_new_tests_nothing_shows_the_change_unless_agreed_ones_were_red() -> None:
    green = dict.fromkeys(IDS, "passed")
    assert compared(green, green, (), None, ()).outcome == "nothing_new"  # type: ignore[arg-type]
    red = compared({**green, IDS[0]: "failed"}, green, (), None, ())  # type: ignore[arg-type]
    assert (red.outcome, red.red) == ("yes", (IDS[0],))


def test_a_command_without_ids_is_red_or_green_as_a_whole() -> None:
    assert without_ids(run_with({}, 1)).outcome == "yes"
    assert without_ids(run_with({})).undoing_noticed == "no"


def test_the_report_of_the_plug_in_becomes_a_record() -> None:
    work = work_of()
    verdicts: dict[str, tuple[str, bool | None]] = {"0": ("survived", True), "1": ("noticed", None)}
    report = PluginReport(
        tests=2, alone=[("a", True), ("b", False)], order=["b"], mutants=verdicts, functions=[(9, 3, 1)]
    )
    found = tried_by_plugin(work, report, work.mutants, 5, compared=True)
    assert (found.mutants.tried, found.mutants.survived, found.mutants.differing) == (2, 1, 1)
    assert found.mutants.left_out == len(work.mutants) - 2
    assert found.mutants.surviving_share == 0.5
    assert str(found.mutants.survivors[0]).startswith("sign.py:2  ")
    assert (found.alone.only_in_company, found.alone.left_out) == (("b",), 3)
    assert (found.order.failing, found.order.left_out) == (("b",), 3)
    assert found.code.doubt is not None
    apart = tried_by_plugin(work, report, work.mutants, 5, compared=False)
    assert (apart.mutants.differing, apart.code.doubt) == (None, None)


def test_files_that_no_test_loads_have_no_survivors() -> None:
    work = work_of()
    report = PluginReport(tests=1, mutants={"0": ("not_loaded", None)})
    found = tried_by_plugin(work, report, work.mutants, 1, compared=True)
    assert (found.mutants.tried, found.mutants.left_out, found.mutants.not_loaded) == (0, 0, ("sign.py",))
    assert found.mutants.surviving_share is None
    assert found.mutants.why and found.order.why and found.alone.why


def test_other_languages_and_empty_changes_are_reasons() -> None:
    other = not_tried(work_of("", ("a.js", "b.js", "Makefile")), "no time").mutants
    assert other.why == "there are no mutants for this language (.js, Makefile)"
    assert "decides" in not_tried(work_of(""), "no time").mutants.why
    assert not_tried(work_of(), "no time").mutants.why == "no time"


def test_what_the_plug_in_prints_is_read_and_anything_else_is_nothing() -> None:
    assert report_in('noise\nDONEWHEN-PROBES {"tests": 3}\n') == PluginReport(tests=3)
    assert report_in("DONEWHEN-PROBES {\n") is None
    assert report_in('DONEWHEN-PROBES {"tests": "x"}') is None
    assert report_in("passed") is None


def test_no_more_mutants_are_given_than_a_variable_holds(tmp_path: Path) -> None:
    lines = "".join(f"value_{number} = other_{number * 7919} + {number} - {number * 31}\n" for number in range(6000))
    mutants = [Mutant("long.py", change) for change in code_changes(lines)]
    plan = ProbePlan(seconds=1.0, company=True, near=False, code=["long.py"], files=None)
    around, kept = probing(Surroundings({"PYTHONPATH": "a"}), tmp_path, plan, mutants)
    assert 0 < kept < len(mutants)
    assert len(around.variables["DONEWHEN_PROBES"]) < 128 * 1024
    assert around.variables["PYTHONPATH"].endswith(":a")


def test_the_time_is_that_of_the_suite_or_as_agreed() -> None:
    assert seconds_for("suite", 60.0) == 60.0
    assert seconds_for("suite", 0.1) == LEAST_SECONDS
    assert seconds_for(1.5, 60.0) == 1.5


def full_record() -> ProbeRecord:
    survivors = tuple(
        SurvivingMutant(file="a.py", line=line, original="a < b", changed="a <= b") for line in range(1, 8)
    )
    return ProbeRecord(
        mutants=MutantsTried(possible=30, tried=20, survived=7, left_out=10, not_loaded=("b.py",), survivors=survivors),
        alone=TestsAlone(tried=4, left_out=2, only_in_company=("t::b",)),
        other_order=OtherOrder(tried=6, failing=("t::c",)),
        red_before=RedBefore(outcome="no", green=("t::d",), undoing_noticed="no"),
    )


def test_lines_name_survivors_tests_and_what_was_left_out() -> None:
    lines = probe_lines(full_record())
    assert lines[0] == "mutants: 7 of 20 survived; 10 not tried for lack of time"
    assert "  a.py:1 a < b → a <= b" in lines
    assert "  and 2 more" in lines
    text = "\n".join(lines)
    for part in (
        "b.py",
        "t::b",
        "t::c",
        "t::d",
        "red before the work: no",
        "would not be noticed",
        "2 not tried alone",
    ):
        assert part in text
    assert "7 of 20" in summary(full_record()) and "2 tests" in summary(full_record())


def test_lines_of_what_was_not_tried_say_why() -> None:
    why = "there was no time for it"
    record = ProbeRecord(
        mutants=MutantsTried(why=why), alone=TestsAlone(why=why), red_before=RedBefore(outcome="nothing_new")
    )
    lines = probe_lines(record)
    assert lines[0].endswith(why) and lines[1].endswith(why)
    assert lines[2].startswith("red before the work: nothing shows the change")
