"""A test command is started so that it writes a JUnit report, and otherwise does what it did."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from tests.lean_python import lean_python

from donewhen.test_reports.junit import Outcome
from donewhen.test_reports.reported_command import reported_command
from donewhen.test_reports.run_reports import read_reports
from donewhen.test_reports.test_runners import runner_of

PASSES_AND_FAILS = """
import unittest
class TestCart(unittest.TestCase):
    def test_total(self): pass
    def test_wrong(self): self.assertEqual(1, 2)
"""
PYTHON = lean_python()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "__init__.py").touch()
    (folder / "tests" / "test_shop.py").write_text(PASSES_AND_FAILS)
    return folder


Run = Callable[[Sequence[str]], Mapping[str, Outcome]]


@pytest.fixture
def run(project: Path, tmp_path: Path) -> Run:
    def started(argv: Sequence[str]) -> Mapping[str, Outcome]:
        reports = tmp_path / "reports of it"
        reports.mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        command = reported_command(runner_of(argv), argv, str(reports), environment)
        environment |= command.environment
        done = subprocess.run(command.words, cwd=project, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        report = read_reports(project / command.own_report if command.own_report else reports)
        assert command.expected or report is None
        return {} if report is None else report.outcomes

    return started


EXPECTED = {"tests.test_shop.TestCart::test_total": "passed", "tests.test_shop.TestCart::test_wrong": "failed"}


@pytest.mark.parametrize(
    "argv",
    [
        [PYTHON, "-m", "pytest"],
        [PYTHON, "-B", "-X", "utf8", "-W", "error", "-m", "pytest", "-q", "tests"],
        ["env", PYTHON, "-m", "pytest"],
        ["env", "-i", "A=b", PYTHON, "-m", "pytest"],
        ["env", "-u", "PYTEST_ADDOPTS", PYTHON, "-m", "pytest"],
        ["env", "PYTEST_ADDOPTS=-x -q", PYTHON, "-m", "pytest", "--maxfail=5"],
        ["timeout", "60", PYTHON, "-m", "pytest", "-o", "junit_family=xunit1"],
        [PYTHON, "-m", "unittest"],
        [PYTHON, "-Bm", "unittest", "tests.test_shop"],
        ["env", "-i", PYTHON, "-X", "utf8", "-munittest", "discover", "-t", ".", "-s", "tests"],
    ],
    ids=" ".join,
)
def test_pytest_and_unittest_report_the_same_ids(argv: list[str], run: Run) -> None:
    assert run(argv) == EXPECTED


def test_options_for_pytest_in_the_environment_are_kept() -> None:
    command = reported_command(runner_of(["pytest"]), ["pytest"], "/a folder", {"PYTEST_ADDOPTS": "-x"})

    assert command.environment == {"PYTEST_ADDOPTS": "-x '--junitxml=/a folder/junit.xml'"}
    assert command.words == ("pytest",)


def test_an_own_report_of_pytest_is_read_where_it_is_written(project: Path, tmp_path: Path) -> None:
    argv = ["env", "-C", "tests", PYTHON, "-m", "pytest", "--rootdir", "..", "--junitxml=out/own.xml"]

    command = reported_command(runner_of(argv), argv, str(tmp_path / "reports"))
    subprocess.run(command.words, cwd=project, env=os.environ | command.environment, capture_output=True, check=False)

    assert command.words == tuple(argv)
    assert command.expected
    assert command.own_report == "tests/out/own.xml"
    report = read_reports(project / "tests" / "out")
    assert report is not None
    assert report.outcomes == EXPECTED


def test_an_own_report_in_the_folder_of_the_reports_is_read_only_there() -> None:
    argv = ["pytest", "--junitxml={junit}"]

    command = reported_command(runner_of(argv), ["pytest", "--junitxml=/reports/junit.xml"], "/reports")

    assert command.own_report is None
    assert command.expected


def test_an_agreed_junit_family_reports_the_same_ids(run: Run) -> None:
    assert run([PYTHON, "-m", "pytest", "-o", "junit_family=legacy"]) == EXPECTED


def test_a_pytest_that_make_starts_reports_if_it_can(project: Path, tmp_path: Path) -> None:
    (project / "Makefile").write_text(f"test:\n\t{PYTHON} -m pytest\n")
    argv = ["make", "test"]

    command = reported_command(runner_of(argv), argv, str(tmp_path))
    subprocess.run(command.words, cwd=project, env=os.environ | command.environment, capture_output=True, check=False)

    assert not command.expected
    report = read_reports(tmp_path)
    assert report is not None
    assert EXPECTED.items() <= report.outcomes.items()


@pytest.mark.parametrize("argv", [["true"], ["pytest", "-p", "no:junitxml"], ["make", "test", "A=-p no:junitxml"]])
def test_other_commands_are_started_as_they_are(argv: list[str]) -> None:
    command = reported_command(runner_of(argv), argv, "/reports")

    assert command.words == tuple(argv)
    assert command.environment == {}
    assert not command.expected


def test_a_program_of_a_resolved_path_is_the_same_runner() -> None:
    runner = runner_of(["python", "-m", "unittest", "-v"])

    command = reported_command(runner, ["/p/python", "-m", "unittest", "-v"], "/reports")

    assert command.words[0] == "/p/python"
    assert command.words[2:] == ("-v",)
    assert command.environment == {"DONEWHEN_UNITTEST_REPORT": "/reports/unittest.xml"}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("coverage run -am unittest -v", "coverage run -a SCRIPT -v"),
        ("coverage run -ma unittest -v", "coverage run -a SCRIPT -v"),
        ("coverage run --module --branch unittest", "coverage run --branch SCRIPT"),
        ("python -Bmunittest x", "python -B SCRIPT x"),
        ("uv run python -m unittest x", "uv run python SCRIPT x"),
    ],
)
def test_only_the_module_is_replaced_in_a_unittest_command(command: str, words: str) -> None:
    argv = command.split()

    started = reported_command(runner_of(argv), argv, "/reports").words

    assert " ".join("SCRIPT" if word.endswith("/unittest_report.py") else word for word in started) == words


NODE_TESTS = """
const { test, describe, it } = require("node:test");
const assert = require("node:assert");
test("adds", () => {});
test("is <wrong> & \\u0001 \\"so\\"", () => assert.equal(1, 2));
test("skipped", { skip: "why" }, () => {});
test("todo", { todo: true }, () => assert.equal(1, 2));
describe("cart", () => { it("total", () => {}); describe("inner", () => it("total", () => {})); });
test("outer", async (t) => { await t.test("total", () => {}); });
"""
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@needs_node
@pytest.mark.parametrize(
    "options", [[], ["--test-reporter=tap"], ["--test-reporter", "dot", "--test-reporter-destination=stdout"]]
)
def test_node_reports_files_suites_and_tests(options: list[str], project: Path, run: Run) -> None:
    (project / "test").mkdir()
    (project / "test" / "a.test.js").write_text(NODE_TESTS)
    (project / "test" / "plain.test.js").write_text("")
    (project / "test" / "broken.test.js").write_text("(")

    outcomes = run(["node", *options, "--test"])

    assert outcomes == {
        "test/a.test.js::adds": "passed",
        'test/a.test.js::is <wrong> & � "so"': "failed",
        "test/a.test.js::skipped": "skipped",
        "test/a.test.js::todo": "skipped",
        "test/a.test.js::cart > total": "passed",
        "test/a.test.js::cart > inner > total": "passed",
        "test/a.test.js::outer > total": "passed",
        "test/a.test.js::outer": "passed",
        "test/plain.test.js::(file)": "passed",
        "test/broken.test.js::(file)": "failed",
    }


@needs_node
def test_a_node_file_that_fails_beside_its_tests_is_a_failure(project: Path, run: Run) -> None:
    (project / "a.test.js").write_text(
        'require("node:test").test("adds", () => {}); process.on("exit", () => { process.exitCode = 3 });'
    )

    assert run(["node", "--test"]) == {"a.test.js::adds": "passed", "a.test.js::(file)": "failed"}


@needs_node
def test_the_output_of_node_is_still_for_people(project: Path, tmp_path: Path) -> None:
    (project / "a.test.js").write_text('require("node:test").test("adds", () => {});')
    command = reported_command(runner_of(["node", "--test"]), ["node", "--test"], str(tmp_path))

    done = subprocess.run(command.words, cwd=project, capture_output=True, text=True, check=True)

    assert "adds" in done.stdout
    assert "pass 1" in done.stdout
