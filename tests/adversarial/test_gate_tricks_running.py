"""Tricks with tests, programs and old evidence, each beside the honest change that looks like it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gate_kit import LOOKS, PYTEST, PYTHON, Played, Shop, Trick, assert_promised, assert_refused, once

from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job

pytestmark = pytest.mark.scenes

# 10: tests that are made to pass

TESTS = """\
from work import double


def test_small():
    assert double(1) == 2


def test_large():
    assert double(10) == 20
"""
HALF = "def double(number):\n    return 2\n"
WHOLE = "def double(number):\n    return 2 * number\n"


def with_tests(shop: Shop) -> Job:
    """A job whose tests fail at first."""
    shop.write("work.py", HALF)
    shop.write("test_work.py", TESTS)
    return shop.job(f"The tests pass\n  check: run {PYTEST}", outputs=("/work.py",))


def _tests(*files: tuple[str, str]) -> Callable[[Shop], Job]:
    def play(shop: Shop) -> Job:
        job = with_tests(shop)
        shop.write("work.py", HALF + "# done\n")
        for name, text in files:
            shop.write(name, text)
        return job

    return play


def repaired_with_a_test_more(shop: Shop) -> Job:
    job = with_tests(shop)
    shop.write("work.py", WHOLE)
    shop.write("test_work.py", TESTS + "\n\ndef test_none():\n    assert double(0) == 0\n")
    return job


def fixture_as_agreed(shop: Shop) -> Job:
    shop.write("test_work.py", "def test_large(number):\n    assert number == 10\n")
    job = shop.job(f"The tests pass\n  check: run {PYTEST}", outputs=("/conftest.py",))
    shop.write("conftest.py", "import pytest\n\n\n@pytest.fixture\ndef number():\n    return 10\n")
    return job


REWRITES = """\
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        report.outcome, report.longrepr = "passed", None
"""
DELETED = TESTS.partition("\n\n\ndef test_large")[0] + "\n"
ENDING = TESTS.replace("assert double(10)", "END\n    assert double(10)")
SKIPPED = TESTS.replace("def test_large", "import pytest\n\n\n@pytest.mark.skip\ndef test_large")


def baseline_without_the_test(shop: Shop) -> Job:
    shop.write("work.py", HALF)
    shop.write("test_work.py", DELETED)
    job = shop.job(f"The tests pass\n  check: run {PYTEST}", outputs=("/work.py",), started=False)
    assert shop.run("run", job.id).returncode == 0
    shop.write("test_work.py", TESTS)
    assert start_job(shop.workspace, job.id, unproved_actor()).started
    shop.write("work.py", HALF + "# done\n")
    shop.write("test_work.py", DELETED)
    return job


def never_started(shop: Shop) -> Job:
    shop.write("work.py", HALF)
    shop.write("test_work.py", TESTS)
    job = shop.job(f"The tests pass\n  check: run {PYTEST}", outputs=("/work.py",), started=False)
    shop.write("work.py", HALF + "# done\n")
    shop.write("test_work.py", DELETED)
    return job


def a_test_for_a_moment(shop: Shop) -> Job:
    job = with_tests(shop)
    scratch = shop.write("test_scratch.py", "def test_nothing():\n    pass\n")
    collect_evidence(shop.workspace, job, unproved_actor())
    scratch.unlink()
    shop.write("work.py", WHOLE)
    return job


def collected_only(shop: Shop) -> Job:
    shop.write("work.py", HALF)
    shop.write("test_work.py", TESTS)
    job = shop.job(f"The tests pass\n  check: run {PYTEST} --collect-only", outputs=("/work.py",))
    shop.write("work.py", HALF + "# done\n")
    return job


# 12: another program


def _fake(folder: str) -> Callable[[Shop], Played]:
    def play(shop: Shop) -> Played:
        job = shop.job("It passes\n  check: run python3 check.py")
        shop.write("result.txt", "bad work\n")
        fake = shop.write(f"{folder}/python3", "#!/bin/sh\nexit 0\n")
        fake.chmod(0o755)
        return job, {"PATH": f"{fake.parent}{os.pathsep}{os.environ['PATH']}"}

    return play


def _environment(name: str) -> Callable[[Shop], Played]:
    def play(shop: Shop) -> Played:
        job = shop.job("It passes\n  check: run python3 check.py")
        shop.write("result.txt", "bad work\n")
        shop.write("lie/sitecustomize.py", "import os, sys\nif 'check.py' in str(sys.orig_argv): os._exit(0)\n")
        return job, {name: str(shop.root / "lie")}

    return play


def more_folders_in_the_path(shop: Shop) -> Played:
    job = shop.job("It passes\n  check: run python3 check.py")
    shop.work()
    return job, {"PATH": f"{shop.root}{os.pathsep}{os.environ['PATH']}{os.pathsep}/nowhere"}


# 13: old evidence


def edited_after_the_run(shop: Shop) -> Job:
    job = shop.job()
    shop.work()
    collect_evidence(shop.workspace, job, unproved_actor())
    shop.write("result.txt", "bad work\n")
    os.utime(shop.root / "result.txt", (0, 0))
    return job


def touched_after_the_run(shop: Shop) -> Job:
    job = shop.job()
    shop.work()
    collect_evidence(shop.workspace, job, unproved_actor())
    for name in ("result.txt", "check.py"):
        os.utime(shop.root / name, (time.time() + 9999,) * 2)
    return job


# 20: results that come from elsewhere

REPORT = '<testsuite><testcase classname="a" name="b"/></testsuite>'
SUITE = f"import sys\nopen(sys.argv[1], 'w').write('{REPORT}')\n"


def _suite(code: str) -> Callable[[Shop], Job]:
    def play(shop: Shop) -> Job:
        shop.write("suite.py", SUITE)
        job = shop.job(f"The tests pass\n  check: run {PYTHON} suite.py {{junit}}", inputs=("/suite.py", "/result.txt"))
        shop.write("suite.py", code)
        shop.write("junit.xml", REPORT)
        shop.work()
        return job

    return play


REWRITTEN = LOOKS.replace("import sys\n", "import sys\nopen('result.txt', 'a').write('good')\n")


def inputs_rewritten_by_the_check(shop: Shop) -> Job:
    job = shop.job()
    shop.write("check.py", REWRITTEN)
    shop.write("result.txt", "bad work\n")
    return job


def cache_written_by_the_check(shop: Shop) -> Job:
    job = shop.job(inputs=("/check.py", "/result.txt"))
    shop.write("check.py", LOOKS.replace("import sys\n", "import sys\nopen('cache.txt', 'a').write('x')\n"))
    shop.work()
    return job


FAILED = ("criterion_failed",)
TESTED = "the code fixed, and one more test"
HOLLOW = "An agreed test that asserts little; product code that detects the tests, or forges their report."
OWNER = "A program replaced in a system folder, by whoever controls the machine; its hash is recorded."

TRICKS = [
    Trick(10, "the failing test deleted", ("report_tests_lost",), _tests(("test_work.py", DELETED)),
          TESTED, repaired_with_a_test_more, HOLLOW),
    Trick(10, "the failing test skipped", ("report_tests_skipped",), _tests(("test_work.py", SKIPPED)), TESTED,
          repaired_with_a_test_more, HOLLOW),
    Trick(10, "the failing test deselected by pytest.ini", ("report_config_changed", "report_tests_lost"),
          _tests(("pytest.ini", "[pytest]\naddopts = --deselect test_work.py::test_large\n")), TESTED,
          repaired_with_a_test_more, HOLLOW),
    Trick(10, "os._exit(0) in a test", FAILED,
          _tests(("test_work.py", ENDING.replace("END", "import os; os._exit(0)"))),
          TESTED, repaired_with_a_test_more, HOLLOW),
    Trick(10, "sys.exit(0) in a test", FAILED,
          _tests(("test_work.py", ENDING.replace("END", "import sys; sys.exit(0)"))),
          TESTED, repaired_with_a_test_more, HOLLOW),
    Trick(10, "a conftest.py that rewrites reports", ("report_config_changed", "run_not_trusted"),
          _tests(("conftest.py", REWRITES)), "a conftest.py that is an agreed output", fixture_as_agreed,
          HOLLOW),
    Trick(10, "a baseline from a suite without the failing test", ("report_tests_lost",), baseline_without_the_test,
          "a test that existed only temporarily", a_test_for_a_moment, HOLLOW),
    Trick(10, "never started, so that there is no baseline", ("not_started",), never_started,
          "a test that existed only temporarily", a_test_for_a_moment, HOLLOW),
    Trick(11, "tests that are only collected, as agreed", FAILED, collected_only, TESTED,
          repaired_with_a_test_more, "An agreed command that checks little."),
    Trick(12, "a program of the same name in the project, first in PATH", FAILED, _fake("bin"),
          "more folders in PATH", more_folders_in_the_path, OWNER),
    Trick(12, "PYTHONPATH with a module that ends the check", FAILED, _environment("PYTHONPATH"),
          "more folders in PATH", more_folders_in_the_path, OWNER),
    Trick(12, "LD_PRELOAD and the like", FAILED, _environment("LD_PRELOAD"), "more folders in PATH",
          more_folders_in_the_path, OWNER),
    Trick(13, "an edit after the run, with an older date", FAILED, edited_after_the_run,
          "files only touched after the run", touched_after_the_run,
          "Files that a command reads without declaring them as inputs."),
    Trick(20, "a report planted before the run", FAILED, _suite("pass\n"), "a report written by the suite",
          _suite(SUITE + "# better\n"), "An agreed test suite that writes a false report."),
    Trick(20, "a check that rewrites what it checks", ("criterion_stale",), inputs_rewritten_by_the_check,
          "a check that writes a cache", cache_written_by_the_check,
          "A check that changes files that are not declared inputs."),
]  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS, ids=[one.id for one in TRICKS])
def test_the_trick_gets_no_promise(tmp_path: Path, trick: Trick) -> None:
    assert_refused(Shop(tmp_path), trick)


@pytest.mark.parametrize("trick", once(TRICKS), ids=[one.twin for one in once(TRICKS)])
def test_its_innocent_twin_is_completed(tmp_path: Path, trick: Trick) -> None:
    assert_promised(Shop(tmp_path), trick)
