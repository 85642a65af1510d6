"""The checker that a project's settings describe."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from donewhen.completion import ReasonCode, SuiteBaseline, TaskCompletionContext, TaskCompletionResult
from donewhen.completion.from_settings import checker_for, checks_for
from donewhen.config import GuardSettings, TestSettings
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.errors import ConfigError
from donewhen.runtime import Session
from sentences import assert_sentences

PYTHON = shlex.quote(sys.executable)
REPORT = '<testsuite><testcase name="a"/></testsuite>'
WRITES = f"""
import os, sys
with open(sys.argv[1], "w") as file:
    file.write({REPORT!r})
sys.exit("MY_SETTING" not in os.environ)
"""


def on_disk(root: Path) -> TaskCompletionContext:
    return TaskCompletionContext(session=Session(), filesystem=HostFilesystem(root))


def check(root: Path, settings: GuardSettings) -> TaskCompletionResult:
    return checker_for(settings, "donewhen.toml").check(on_disk(root))


def script(root: Path, name: str, code: str) -> str:
    (root / name).write_text(code)
    return f"{PYTHON} {name}"


def test_files_are_required_strictly(tmp_path: Path) -> None:
    settings = GuardSettings(files=("a.txt",))
    assert check(tmp_path, settings).code is ReasonCode.FILES_MISSING
    (tmp_path / "a.txt").write_text(" \n")
    assert check(tmp_path, settings).code is ReasonCode.FILES_EMPTY
    (tmp_path / "a.txt").write_text("x")
    assert check(tmp_path, settings) == TaskCompletionResult.ok("All required files exist.")


def test_every_command_must_succeed(tmp_path: Path) -> None:
    good = script(tmp_path, "good.py", "")
    bad = script(tmp_path, "bad.py", "raise SystemExit(3)")
    assert check(tmp_path, GuardSettings(commands=(good, good))).complete is True
    result = check(tmp_path, GuardSettings(commands=(good, bad)))
    assert result.code is ReasonCode.COMMAND_FAILED
    assert str(bad) in result.feedback
    assert_sentences(result.feedback)


def test_everything_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    bad = script(tmp_path, "bad.py", "raise SystemExit(3)")
    settings = GuardSettings(
        files=("a.txt",), commands=(bad, bad), tests=TestSettings(run=f"{PYTHON} bad.py {{junit}}")
    )
    feedback = check(tmp_path, settings).feedback or ""
    assert "Missing required files: a.txt" in feedback
    assert_sentences(feedback)


def test_commands_see_the_variables_that_are_passed_on_and_have_their_own_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SETTING", "yes")
    looks = script(tmp_path, "looks.py", "import os; raise SystemExit(os.environ.get('MY_SETTING') != 'yes')")
    assert check(tmp_path, GuardSettings(commands=(looks,))).complete is False
    assert check(tmp_path, GuardSettings(commands=(looks,), pass_env=("MY_SETTING",))).complete is True
    hangs = script(tmp_path, "hangs.py", "import time; time.sleep(600)")
    result = check(tmp_path, GuardSettings(commands=(hangs,), command_timeout=0.2))
    assert result.code is ReasonCode.COMMAND_TIMEOUT


def test_the_tests_must_pass_and_keep_to_their_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SETTING", "yes")
    script(tmp_path, "tests.py", WRITES)
    run = f"{PYTHON} tests.py {{junit}}"
    assert check(tmp_path, GuardSettings(tests=TestSettings(run=run))).code is ReasonCode.REPORT_DISAGREES
    passing = TestSettings(run=run, pass_env=("MY_SETTING",), baseline="baseline.json")
    SuiteBaseline(frozenset({"a"})).save(tmp_path / "baseline.json")
    result = check(tmp_path, GuardSettings(tests=passing))
    assert (result.complete, result.code) == (True, None)
    assert_sentences(result.feedback)
    SuiteBaseline(frozenset({"a", "b"})).save(tmp_path / "baseline.json")
    assert check(tmp_path, GuardSettings(tests=passing)).code is ReasonCode.TESTS_LOST


def test_the_tests_have_their_own_timeout(tmp_path: Path) -> None:
    script(tmp_path, "hangs.py", "import time; time.sleep(600)")
    tests = TestSettings(run=f"{PYTHON} hangs.py {{junit}}", timeout=0.2)
    result = check(tmp_path, GuardSettings(tests=tests, command_timeout=900.0))
    assert result.code is ReasonCode.COMMAND_TIMEOUT
    assert "0.2 seconds" in (result.feedback or "")
    assert_sentences(result.feedback or "")


@pytest.mark.parametrize("text", ["make test || true", "pytest | tail", "echo $HOME", "echo 'open", " "])
def test_a_command_that_needs_a_shell_is_refused_with_the_place(text: str) -> None:
    for settings in (GuardSettings(commands=(text,)), GuardSettings(tests=TestSettings(run=text))):
        with pytest.raises(ConfigError) as caught:
            checker_for(settings, "donewhen.toml")
        assert_sentences(caught.value)


def test_a_test_command_that_is_not_told_where_to_write_is_refused_with_the_setting() -> None:
    with pytest.raises(ConfigError) as caught:
        checker_for(GuardSettings(tests=TestSettings(run="pytest")), "donewhen.toml")
    assert_sentences(caught.value)


@pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "a/../../b", "a\0b"], ids=repr)
def test_a_required_file_outside_of_the_workspace_is_refused_with_the_setting(path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checker_for(GuardSettings(files=("fine.txt", path)), "donewhen.toml", "task_completed")
    assert_sentences(caught.value)


def test_every_single_check_has_a_name() -> None:
    settings = GuardSettings(
        files=("a", "b"), commands=("make lint", "make docs"), tests=TestSettings(run="pytest --junitxml={junit}")
    )
    assert [name for name, _ in checks_for(settings, "donewhen.toml")] == [
        "files a, b",
        "make lint",
        "make docs",
        "pytest --junitxml={junit}",
    ]


def test_without_settings_there_is_nothing_to_check(tmp_path: Path) -> None:
    assert checks_for(GuardSettings(), "donewhen.toml") == []
    assert check(tmp_path, GuardSettings()) == TaskCompletionResult.ok("No checkers configured.")
