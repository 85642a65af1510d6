"""Controls come out in honest runs, whatever the runner and its options, and leave no trace in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from control_kit import Suite
from control_suites import (
    FORGED_WITH_PYTEST,
    FORGED_WITH_UNITTEST,
    PYTEST_TESTS,
    RIGHT,
    UNITTEST_TESTS,
    WRONG,
    with_add,
)

from donewhen.controls.sent_lines import SentLines
from donewhen.jobs.evidence import test_report

pytestmark = pytest.mark.scenes

PYTEST = ("python", "-m", "pytest", "-p", "no:cacheprovider")
UNITTEST = ("python", "-m", "unittest")
FILES = {"app.py": RIGHT, "test_app.py": PYTEST_TESTS}
CASES = {"app.py": RIGHT, "test_app.py": UNITTEST_TESTS}
SHUFFLE = """
import random


def pytest_collection_modifyitems(items):
    random.shuffle(items)
"""
LISTS = """
import sys


def pytest_collection_finish(session):
    print("COLLECTED", len(session.items))


def pytest_runtest_logreport(report):
    print("REPORTED", report.nodeid)


def pytest_runtest_setup(item):
    assert item.name in KNOWN or not sys.modules


def pytest_sessionfinish(session):
    print("LEFT", len(session.items), session.testscollected, session.testsfailed)
"""


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        ((), 6),
        (("-x",), 6),
        (("--maxfail=1", "-v"), 6),
        (("-n2",), 6),
        (("-n2", "--dist=loadfile"), 6),
        (("-k", "zero"), 3),
        (("-k", "not zero", "--strict-markers", "-W", "error"), 3),
        (("test_app.py::AddTest::test_case",), 1),
        (("test_app.py::test_zero_changes_nothing[2]",), 1),
        (("test_app.py::TestMore",), 1),
        (("--durations=0", "-vv", "-rA"), 6),
        (("--assert=plain",), 6),
        (("--import-mode=importlib", "-o", "pythonpath=."), 6),
        (("--cov=app", "--cov-branch", "--cov-fail-under=100"), 6),
        (("-p", "no:unittest", "-k", "TestMore or zero"), 4),
    ],
    ids=str,
)
def test_controls_hold_in_honest_runs_of_pytest(suite: Suite, options: tuple[str, ...], passed: int) -> None:
    run = suite(FILES, *PYTEST, *options)
    assert run.controls.held == "held", (run.controls, run.result.output)
    assert run.passed
    assert run.report is not None and len(run.report.outcomes) == passed


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        (("-m", "quick", "--strict-markers"), 3),
        (("-m", "not quick", "-x"), 3),
        (("-m", "quick and not slow", "-n2"), 3),
    ],
    ids=str,
)
def test_controls_hold_in_what_a_marker_selects(suite: Suite, options: tuple[str, ...], passed: int) -> None:
    marked = PYTEST_TESTS.replace("@pytest.mark.parametrize", "@pytest.mark.quick\n@pytest.mark.parametrize")
    markers = "[pytest]\nmarkers =\n  quick\n  slow\nfilterwarnings = error\n"
    run = suite({**FILES, "test_app.py": marked, "pytest.ini": markers}, *PYTEST, *options)
    assert run.controls.held == "held", (run.controls, run.result.output)
    assert run.passed
    assert run.report is not None and len(run.report.outcomes) == passed
    run = suite({"app.py": with_add(FORGED_WITH_PYTEST["what runs a test"])}, *PYTEST, *options)
    assert run.controls.held == "broken", (run.controls, run.result.output)


def test_controls_hold_where_the_order_is_drawn(suite: Suite) -> None:
    run = suite({**FILES, "conftest.py": SHUFFLE, "test_other.py": PYTEST_TESTS}, *PYTEST)
    assert run.controls.held == "held", (run.controls, run.result.output)
    assert run.passed


def test_all_workers_have_the_same_controls(suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[SentLines] = []
    judge = test_report.judge_controls
    monkeypatch.setattr(test_report, "judge_controls", lambda lines, *rest: sent.append(lines) or judge(lines, *rest))
    for _ in range(2):
        assert suite(FILES, *PYTEST, "-n2").controls.held == "held"
    names = [sorted((name.partition("/")[2], must) for name, must in lines.controls.items()) for lines in sent]
    assert names[0] != names[1], "they are drawn in each run"
    for found in names:
        assert len(found) == 12 and found[::2] == found[1::2], found


@pytest.mark.parametrize(
    "options", [(), ("-f", "-b"), ("-v",), ("-k", "numbers"), ("discover", "-s", ".")], ids=" ".join
)
def test_controls_hold_in_honest_runs_of_unittest(suite: Suite, options: tuple[str, ...]) -> None:
    run = suite(CASES, *UNITTEST, *options)
    assert run.controls.held == "held", (run.controls, run.result.output)
    assert run.passed


def test_coverage_around_a_runner_sees_no_controls(suite: Suite, tmp_path: Path) -> None:
    for runner, files in (("pytest", FILES), ("unittest", CASES)):
        run = suite(files, "python", "-m", "coverage", "run", "-m", runner)
        assert run.controls.held == "held", (run.controls, run.result.output)
        shown = suite({}, "python", "-m", "coverage", "report").result.output
        assert set(re.findall(r"^(\S+\.py|<.*>)", shown, re.MULTILINE)) <= {"app.py", "test_app.py"}, shown
    assert (tmp_path / ".coverage").exists()


def test_a_run_of_pytest_shows_no_trace_of_controls(suite: Suite) -> None:
    """What the project's own plugin and the terminal see is what they would see without the gate."""
    names = re.findall(r"def (test_\w+)", PYTEST_TESTS)
    known = [*names, *(f"test_zero_changes_nothing[{number}]" for number in (1, 2, 3))]
    run = suite({**FILES, "conftest.py": LISTS.replace("KNOWN", repr(known))}, *PYTEST, "-s", "--durations=0", "-vv")
    output = run.result.output
    assert run.controls.held == "held", (run.controls, output)
    assert "COLLECTED 6" in output and "LEFT 6 6 0" in output
    assert set(re.findall(r"REPORTED test_app\.py::(?:\w+::)?(\S+)", output)) == set(known) - {
        "test_zero_changes_nothing"
    }
    assert "6 passed" in output and "warning" not in output and "donewhen" not in re.sub(r"/\S*", "", output)


def test_tests_have_the_environment_that_they_would_have(suite: Suite) -> None:
    test = """
import os, sys


def test_environment():
    assert "PYTHONPATH" not in os.environ
    assert not [name for name in sys.modules if name == "donewhen_controls"]
    assert not [path for path in sys.path if "donewhen-" in path]
"""
    assert suite({"test_it.py": test}, *PYTEST).passed
    run = suite({"test_it.py": test.replace('"PYTHONPATH" not in os.environ', 'os.environ["PYTHONPATH"] == "/x"')},
                *PYTEST, PYTHONPATH="/x")  # fmt: skip
    assert run.passed, run.result.output
    assert run.controls.held == "held"


def test_a_class_is_set_up_as_often_as_without_controls(suite: Suite) -> None:
    run = suite(CASES, *UNITTEST)
    assert run.result.output.count("set up once") == 1
    assert "Ran 4 tests" in run.result.output


def test_fixtures_are_set_up_as_often_as_without_controls(suite: Suite) -> None:
    test = """
import pytest


@pytest.fixture(autouse=True)
def each():
    print("EACH", end=" ")


@pytest.fixture(scope="module", autouse=True)
def whole():
    print("MODULE UP", end=" ")
    yield
    print("MODULE DOWN", end=" ")


class TestFirst:
    @pytest.fixture(scope="class", autouse=True)
    def of_class(self):
        print("CLASS", end=" ")

    def test_a(self): pass
    def test_b(self): pass


def test_c(): pass
"""
    run = suite({"test_it.py": test, "test_other.py": test}, *PYTEST, "-s")
    output = run.result.output
    assert run.controls.held == "held", (run.controls, output)
    assert [output.count(word) for word in ("EACH", "MODULE UP", "MODULE DOWN", "CLASS")] == [6, 2, 2, 2]


def test_tests_that_start_pytest_themselves_are_not_disturbed(suite: Suite) -> None:
    test = """
import subprocess
import sys

pytest_plugins = "pytester"


def test_inside(pytester):
    pytester.makepyfile("def test_fails(): assert 0")
    pytester.runpytest("-p", "no:cacheprovider").assert_outcomes(failed=1)


def test_outside(tmp_path):
    (tmp_path / "test_x.py").write_text("def test_fails(): assert 0")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", str(tmp_path)], capture_output=True, text=True)
    assert "1 failed" in done.stdout
"""
    run = suite({"test_it.py": test}, *PYTEST)
    assert run.passed, run.result.output
    assert run.controls.held == "held", run.controls


def test_controls_hold_where_the_command_clears_the_environment(suite: Suite) -> None:
    for clears in (("env", "-i"), ("env", "-u", "PYTHONPATH"), ("env", "PYTHONPATH=.")):
        run = suite(FILES, *clears, *PYTEST)
        assert run.controls.held == "held", (clears, run.controls, run.result.output)
        assert run.passed


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("python", "-I", "-m", "pytest"), "did not connect"),
        (("python", "-S", "-c", "print()"), "runs no tests"),
        (("make", "test"), "takes none"),
    ],
)
def test_others_have_none(suite: Suite, words: tuple[str, ...], why: str) -> None:
    files = {"test_it.py": "def test_it():\n    pass\n", "Makefile": "test:\n\ttrue\n"}
    run = suite(files, *words)
    assert run.controls.held == "none"
    assert why in run.controls.why
    assert run.passed, run.result.output


def test_controls_hold_in_what_a_wrapper_starts(suite: Suite) -> None:
    """In each run of pytest, also if there are several."""
    pytest_words = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    makefile = f"test:\n\t@{pytest_words} -k zero\n\t@{pytest_words} -x --maxfail=1\n"
    run = suite({**FILES, "Makefile": makefile}, "make", "test")
    assert run.passed, (run.controls, run.result.output)
    assert run.controls.held == "held", (run.controls, run.result.output)
    for forgery in ("the report of a test", "the file with the report, at the end"):
        run = suite({"app.py": with_add(FORGED_WITH_PYTEST[forgery])}, "make", "test")
        assert run.controls.held == "broken", (forgery, run.controls, run.result.output)


@pytest.mark.parametrize("command", ["-m unittest", "-m coverage run -m unittest -v", "-Wm unittest discover -s ."])
def test_controls_hold_in_unittest_behind_a_wrapper(suite: Suite, command: str) -> None:
    command = command.replace("-Wm", "-W error -m")
    run = suite({**CASES, "Makefile": f"test:\n\t@{sys.executable} {command}\n"}, "make", "test")
    assert (run.controls.held, run.passed) == ("held", True), (run.controls, run.result.output)
    assert "Ran 4 tests" in run.result.output, run.result.output
    for forgery in ("an assertion", "what runs a test"):
        run = suite({"app.py": with_add(FORGED_WITH_UNITTEST[forgery])}, "make", "test")
        assert (run.controls.held, run.passed) == ("broken", False), (forgery, run.controls, run.result.output)
    run = suite({"app.py": WRONG}, "make", "test")
    assert run.result.exit_code != 0 and not run.passed
    assert "FAILED (failures=3" in run.result.output, run.result.output


def test_a_wrapper_that_ignores_a_failure_is_no_trusted_run(suite: Suite) -> None:
    """With the agreed files alone it is the same, so that nothing is held against the work."""
    files = {"app.py": WRONG, "test_app.py": PYTEST_TESTS}
    run = suite({**files, "t.sh": f"{sys.executable} -m pytest -q || true\n"}, "sh", "t.sh")
    assert (run.result.exit_code, run.controls.faults) == (0, ("exit_status",))


def test_only_tests_of_other_kinds_are_no_alarm(suite: Suite) -> None:
    run = suite({"app.py": '"""\n>>> 1 + 1\n2\n"""\n'}, *PYTEST, "--doctest-modules")
    assert (run.controls.held, run.passed) == ("none", True), (run.controls, run.result.output)


def test_work_that_is_wrong_fails_as_it_would(suite: Suite) -> None:
    for words, tests in ((PYTEST, PYTEST_TESTS), (UNITTEST, UNITTEST_TESTS)):
        run = suite({"app.py": WRONG, "test_app.py": tests}, *words)
        assert not run.seems_passed
        assert run.controls.held == "held", run.controls
        assert run.report is not None and run.report.count("failed")


@pytest.mark.parametrize("option", ["-x", "--maxfail=1"])
def test_a_run_that_stops_at_the_first_failure_is_no_alarm(suite: Suite, option: str) -> None:
    run = suite({"app.py": WRONG, "test_app.py": PYTEST_TESTS}, *PYTEST, option)
    assert not run.seems_passed
    assert run.controls.held in ("held", "none"), run.controls


def test_tests_that_skip_and_are_expected_to_fail_are_no_alarm(suite: Suite) -> None:
    test = """
import pytest

pytestmark = pytest.mark.xfail(reason="not yet")


@pytest.fixture
def broken():
    yield
    raise ValueError


def test_expected(): assert 0
def test_expected_not(): pass


@pytest.mark.skip
def test_skipped(): assert 0


def test_skips():
    pytest.skip("now")
"""
    other = "import pytest\npytestmark = pytest.mark.skip\n\n\ndef test_never():\n    assert 0\n"
    run = suite({"test_it.py": test, "test_other.py": other, "test_ok.py": "def test_ok():\n    pass\n"}, *PYTEST)
    assert run.passed, run.result.output
    assert run.controls.held == "held", (run.controls, run.result.output)


def test_subtests_that_skip_are_no_alarm(suite: Suite) -> None:
    test = """
import unittest


class SkipTest(unittest.TestCase):
    def test_parts(self):
        for number in range(3):
            with self.subTest(number=number):
                if number == 1:
                    self.skipTest("not now")
"""
    run = suite({"test_it.py": test}, *UNITTEST)
    assert run.passed, (run.controls, run.result.output)
    assert run.controls.held == "held"
