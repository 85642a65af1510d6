"""Our start of unittest behaves as ``python -m unittest`` does, and reports every test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from donewhen.test_reports.junit import Outcome
from donewhen.test_reports.reported_command import reported_command
from donewhen.test_reports.run_reports import read_reports
from donewhen.test_reports.test_runners import runner_of

_VERSIONS = Path.home() / ".pyenv" / "versions"
# Others are tried where they are installed.
_OTHERS = [*_VERSIONS.glob("3.[89].*/bin/python"), *_VERSIONS.glob("3.1?.*/bin/python")]
PYTHONS = [sys.executable, *sorted(map(str, _OTHERS))]

TESTS = """
import unittest, os, sys, warnings

class TestKinds(unittest.TestCase):
    def test_passes(self): pass
    def test_fails(self): self.assertEqual(1, 2, "a <b> & \\x01")
    def test_errs(self): raise ValueError("so")
    @unittest.skip("why")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
    def test_subtests(self):
        for number in range(4):
            with self.subTest(number=number): self.assertNotEqual(number, 2)
    def test_good_subtests(self):
        for number in range(4):
            with self.subTest(number=number): pass
    def test_two_errors(self):
        self.addCleanup(lambda: 1 / 0)
        self.fail()
    def test_warns(self): warnings.warn("old", DeprecationWarning)

class TestBrokenClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("no room")
    def test_never(self): pass

class TestSkippedClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no network")
    def test_later(self): pass

class TestTearDown(unittest.TestCase):
    @classmethod
    def tearDownClass(cls): raise RuntimeError("left")
    def test_before(self): pass
"""
EXPECTED: Mapping[str, Outcome] = {
    "test_kinds.TestKinds::test_passes": "passed",
    "test_kinds.TestKinds::test_fails": "failed",
    "test_kinds.TestKinds::test_errs": "errored",
    "test_kinds.TestKinds::test_skipped": "skipped",
    "test_kinds.TestKinds::test_expected": "skipped",
    "test_kinds.TestKinds::test_unexpected": "failed",
    "test_kinds.TestKinds::test_subtests": "failed",
    "test_kinds.TestKinds::test_good_subtests": "passed",
    "test_kinds.TestKinds::test_two_errors": "errored",
    "test_kinds.TestKinds::test_warns": "passed",
    "test_kinds.TestBrokenClass::setUpClass": "errored",
    "test_kinds.TestBrokenClass::test_never": "errored",
    "test_kinds.TestSkippedClass::test_later": "skipped",
    "test_kinds.TestTearDown::test_before": "passed",
    "test_kinds.TestTearDown::tearDownClass": "errored",
    "unittest.loader._FailedTest::test_broken": "errored",
    "test_module.TestIt::test_skipped_with_it": "skipped",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def _both(python: str, project: Path, arguments: Sequence[str], options: Sequence[str] = ()) -> Mapping[str, Outcome]:
    """Run unittest without and with our report, and compare."""
    argv = [python, *options, "-m", "unittest", *arguments]
    reports = project.parent / "reports"
    reports.mkdir(exist_ok=True)
    command = reported_command(runner_of(argv), argv, str(reports))
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    plain = subprocess.run(argv, cwd=project, env=environment, capture_output=True, text=True, check=False)
    ours = subprocess.run(
        command.words, cwd=project, env=environment | command.environment, capture_output=True, text=True, check=False
    )
    assert ours.returncode == plain.returncode
    assert ours.stdout == plain.stdout
    assert _without_times(ours.stderr) == _without_times(plain.stderr)
    report = read_reports(reports)
    return {} if report is None else report.outcomes


def _without_times(output: str) -> str:
    return re.sub(r"\d+\.\d+s", "0s", output)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("arguments", [[], ["-v", "-b"]], ids=["plain", "verbose"])
def test_every_kind_of_outcome_is_reported_and_nothing_else_changes(
    python: str, arguments: list[str], project: Path
) -> None:
    (project / "test_kinds.py").write_text(TESTS)
    (project / "test_broken.py").write_text("import missing_module_of_nobody")
    (project / "test_module.py").write_text(
        "import unittest\ndef setUpModule(): raise unittest.SkipTest('no')\n"
        "class TestIt(unittest.TestCase):\n    def test_skipped_with_it(self): pass\n"
    )

    assert _both(python, project, arguments) == EXPECTED


@pytest.mark.parametrize("python", PYTHONS)
def test_no_tests_end_with_the_status_of_unittest(python: str, project: Path) -> None:
    assert _both(python, project, []) == {}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["tests.test_a.A"], {"tests.test_a.A::test_one": "passed", "tests.test_a.A::test_two": "failed"}),
        (["tests/test_a.py", "-k", "one"], {"tests.test_a.A::test_one": "passed"}),
        (["-f", "tests.test_a.B", "tests.test_a.A.test_one"], {"tests.test_a.B::test_zero": "failed"}),
        (["tests.test_a.A.test_two"], {"tests.test_a.A::test_two": "failed"}),
        (["discover", "-s", "tests", "-p", "check*.py"], {"check_b.C::test_cwd": "passed"}),
        (["discover", "tests", "check*.py", "."], {"tests.check_b.C::test_cwd": "passed"}),
        (["--no-such-option"], {}),
        (["--help"], {}),
        (["tests.missing"], {"unittest.loader._FailedTest::missing": "errored"}),
    ],
    ids=lambda value: " ".join(value),
)
def test_arguments_mean_the_same(arguments: list[str], expected: Mapping[str, Outcome], project: Path) -> None:
    (project / "tests").mkdir()
    (project / "tests" / "__init__.py").touch()
    (project / "tests" / "test_a.py").write_text(
        "import unittest\nclass A(unittest.TestCase):\n    def test_one(self): pass\n"
        "    def test_two(self): self.fail()\n"
        "class B(unittest.TestCase):\n    def test_zero(self): self.fail()\n"
    )
    (project / "tests" / "check_b.py").write_text(
        "import os, sys, unittest\nclass C(unittest.TestCase):\n    def test_cwd(self):\n"
        "        print(sys.path, sys.argv, sys.flags, __debug__)\n"
        "        self.assertFalse([name for name in os.environ if name.startswith('DONEWHEN')])\n"
    )

    assert _both(sys.executable, project, arguments) == expected


@pytest.mark.parametrize(
    "options", [["-O"], ["-W", "error"], ["-I"], ["-P"], ["-x"], ["-bb", "-X", "dev"]], ids=" ".join
)
@pytest.mark.parametrize("python", PYTHONS)
def test_options_of_the_interpreter_mean_the_same(python: str, options: list[str], project: Path) -> None:
    if options == ["-P"] and any(old in python for old in ("/3.8.", "/3.9.", "/3.10.")):
        # It is new in Python 3.11.
        options = ["-s"]
    (project / "test_a.py").write_text(
        "import sys, unittest\nclass A(unittest.TestCase):\n    def test_one(self):\n"
        "        print(sys.path[0], sys.argv, sys.flags, sys.warnoptions, __debug__, __name__)\n"
    )

    assert _both(python, project, ["test_a"], options)


def test_modules_of_the_project_with_names_of_ours_are_no_problem(project: Path) -> None:
    for name in ("xml", "typing_extensions", "unittest_report", "donewhen"):
        (project / f"{name}.py").write_text("raise SystemExit(9)")
    (project / "test_a.py").write_text("import unittest\nclass A(unittest.TestCase):\n    def test_one(self): pass\n")

    assert _both(sys.executable, project, []) == {"test_a.A::test_one": "passed"}


def test_the_coverage_of_the_project_does_not_count_our_script(project: Path) -> None:
    pytest.importorskip("coverage")
    (project / "shop.py").write_text("def total():\n    return 1\ndef other():\n    return 2\n")
    (project / "test_a.py").write_text(
        "import unittest, shop\nclass A(unittest.TestCase):\n    def test_one(self): shop.total()\n"
    )
    argv = [sys.executable, "-m", "coverage", "run", "-m", "unittest"]
    command = reported_command(runner_of(argv), argv, str(project.parent))
    totals = []
    for words in (argv, command.words):
        subprocess.run(words, cwd=project, env=os.environ | command.environment, capture_output=True, check=True)
        shown = subprocess.run(
            [sys.executable, "-m", "coverage", "report", "--precision=4"],
            cwd=project, capture_output=True, text=True, check=True,
        )  # fmt: skip
        totals.append([line.split() for line in shown.stdout.splitlines() if line.startswith("TOTAL")])

    assert totals[0] == totals[1] != []
    assert (project.parent / "unittest.xml").exists()
