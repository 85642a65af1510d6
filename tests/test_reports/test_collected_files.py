"""The files that a runner collects by itself are those that the real runner collects."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.lean_python import lean_python

from donewhen.test_reports.collected_files import collected_patterns, is_collected
from donewhen.test_reports.reported_command import reported_command
from donewhen.test_reports.run_reports import read_reports
from donewhen.test_reports.test_runners import runner_of

PYTHON = lean_python()
TEST = "import unittest\nclass TestA(unittest.TestCase):\n    def test_one(self): pass\n"
FILES = (
    *("test_a.py", "a_test.py", "testing.py", "atest.py", "check_a.py", "a.py", "conftest.py"),
    *("sub/test_b.py", "sub/b_test.py", "sub/check_b.py", "sub/spec_b.py"),
)


def _collected(command: str, settings: dict[str, str] | None = None) -> set[str]:
    argv = shlex.split(command)
    patterns = collected_patterns(runner_of(argv), argv, settings or {})
    return {path for path in FILES if is_collected(path, patterns)}


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ("-m pytest", {}),
        ("-m pytest -o python_files='check_*.py spec_*.py'", {}),
        ("-m pytest check_a.py", {}),
        ("-m pytest", {"pytest.ini": "[pytest]\npython_files = check_*.py\n  *_test.py"}),
        ("-m pytest", {"pytest.ini": "", "tox.ini": "[pytest]\npython_files = check_*.py"}),
        ("-m pytest", {"pyproject.toml": '[tool.pytest.ini_options]\npython_files = ["check_*.py", "a.py"]'}),
        ("-m pytest", {"pyproject.toml": "[tool.x]", "tox.ini": "[pytest]\npython_files = check_*.py"}),
        ("-m pytest", {"setup.cfg": "[tool:pytest]\npython_files = sub/spec_*.py"}),
        ("-m pytest -c other.ini", {"other.ini": "[pytest]\npython_files = spec_*.py", "pytest.ini": ""}),
        ("-m unittest", {}),
        ("-m unittest discover -p 'check*.py'", {}),
        ("-m unittest discover . '*_test.py'", {}),
        ("-m unittest discover -pa*.py -v", {}),
        ("-m unittest sub.check_b", {}),
        ("-m unittest sub.check_b.TestA.test_one", {}),
        ("-m unittest sub/check_b.py", {}),
    ],
)
def test_patterns_match_the_files_that_the_runner_collects(
    arguments: str, settings: dict[str, str], tmp_path: Path
) -> None:
    project, reports = tmp_path / "project", tmp_path / "reports"
    (project / "sub").mkdir(parents=True)
    reports.mkdir()
    (project / "sub" / "__init__.py").touch()
    for path in FILES:
        (project / path).write_text(TEST)
    for path, text in settings.items():
        (project / path).write_text(text)
    argv = [PYTHON, *shlex.split(arguments)]
    command = reported_command(runner_of(argv), argv, str(reports))
    subprocess.run(command.words, cwd=project, env=os.environ | command.environment, capture_output=True, check=True)
    report = read_reports(reports)
    assert report is not None
    names = {path: path.removesuffix(".py").replace("/", ".") for path in FILES}
    ran = {path for path, name in names.items() if f"{name}.TestA::test_one" in report.outcomes}

    expected = _collected(f"python {arguments}", settings)

    assert ran <= expected if _names_files(arguments) else ran == expected
    assert ran


def _names_files(arguments: str) -> bool:
    """Whether the runner only runs what is named, beside which it would collect more."""
    return "check_" in arguments and "python_files" not in arguments


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_patterns_match_the_files_that_node_collects(tmp_path: Path) -> None:
    (tmp_path / "sub" / "test" / "deep").mkdir(parents=True)
    files = ["a.test.js", "a-test.mjs", "a_test.cjs", "test-a.js", "test.js", "sub/test/deep/b.js", "sub/a.js"]
    for name in files:
        (tmp_path / name).touch()
    command = reported_command(runner_of(["node", "--test"]), ["node", "--test"], str(tmp_path))
    subprocess.run(command.words, cwd=tmp_path, capture_output=True, check=True)
    report = read_reports(tmp_path)
    assert report is not None

    patterns = collected_patterns(runner_of(["node", "--test"]), ["node", "--test"])

    assert {f"{name}::(file)" for name in files if is_collected(name, patterns)} == set(report.outcomes)
    assert is_collected("src/a.test.ts", patterns)


def test_a_wrapper_may_run_every_runner_and_nothing_collects_nothing() -> None:
    assert _collected("make test") >= {"test_a.py", "a_test.py", "testing.py"}
    assert _collected("true") == set()


@pytest.mark.parametrize("text", ["[pytest", "\x00", "[pytest]\npython_files = '", "[pytest]\npython_files"])
@pytest.mark.parametrize("name", ["pytest.ini", "pyproject.toml", "setup.cfg", "pytest.toml"])
def test_settings_that_cant_be_read_leave_patterns(name: str, text: str) -> None:
    assert collected_patterns(runner_of(["pytest"]), ["pytest"], {name: text})
