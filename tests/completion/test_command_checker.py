"""CommandChecker, on real commands."""

from __future__ import annotations

import contextvars
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from donewhen.completion import CommandChecker, Not, ReasonCode, TaskCompletionContext, TaskCompletionResult
from donewhen.completion.command import lines_that_matter
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.cancellation import cancellable
from donewhen.runtime import Session
from donewhen.testing import make_context
from sentences import assert_sentences


def python(code: str, **settings: Any) -> CommandChecker:
    return CommandChecker([sys.executable, "-c", code], name="it", **settings)


def on_disk(root: Path) -> TaskCompletionContext:
    return TaskCompletionContext(session=Session(), filesystem=HostFilesystem(root))


class TestVerdict:
    def test_exit_status_zero_is_complete(self) -> None:
        assert python("print('FAILED badly, error')").check(make_context()) == TaskCompletionResult.ok(
            "`it` succeeded."
        )

    @pytest.mark.parametrize("status", [1, 2, 5, 255])
    def test_any_other_exit_status_is_incomplete(self, status: int) -> None:
        result = python(f"print('all good'); raise SystemExit({status})").check(make_context())
        assert (result.complete, result.code) == (False, ReasonCode.COMMAND_FAILED)
        assert str(status) in (result.feedback or "")
        assert_sentences(result.feedback)

    def test_a_command_that_a_signal_ended_is_not_turned_into_a_pass_by_not(self) -> None:
        killed = python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        result = Not(killed).check(make_context())
        assert (result.complete, result.code) == (False, ReasonCode.COMMAND_KILLED)

    def test_a_command_that_a_signal_ended_is_incomplete(self) -> None:
        result = python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)").check(make_context())
        assert (result.complete, result.code) == (False, ReasonCode.COMMAND_KILLED)
        assert_sentences(result.feedback)

    def test_a_command_that_does_not_end_is_killed_and_what_it_said_is_quoted(self) -> None:
        # The command speaks first and is then given all the time that the check allows.
        code = "import time; print('working', flush=True); time.sleep(600)"
        for timeout in (0.5, 5.0, 60.0):
            result = python(code, timeout=timeout).check(make_context())
            assert result.complete is False
            assert result.code is ReasonCode.COMMAND_TIMEOUT
            if "working" in (result.feedback or ""):
                break
        assert f"{timeout:g}" in result.feedback
        assert_sentences(result.feedback)

    def test_a_command_that_is_not_there_is_incomplete(self) -> None:
        result = CommandChecker(["no-such-command-anywhere"]).check(make_context())
        assert result.complete is False
        assert result.code is ReasonCode.COMMAND_NOT_FOUND
        assert_sentences(result.feedback)

    def test_a_command_whose_check_was_abandoned_says_so(self) -> None:
        def abandoned() -> TaskCompletionResult:
            cancellable().set()
            return python("import time; time.sleep(600)").check(make_context())

        result = contextvars.copy_context().run(abandoned)
        assert (result.complete, result.code) == (False, ReasonCode.COMMAND_TIMEOUT)
        assert_sentences(result.feedback)

    def test_there_is_no_shell(self) -> None:
        result = CommandChecker([sys.executable, "-c", "raise SystemExit(1)", "||", "true"]).check(make_context())
        assert result.code is ReasonCode.COMMAND_FAILED


class TestSettings:
    def test_a_command_line_is_refused_with_the_list_it_would_be(self) -> None:
        with pytest.raises(TypeError) as caught:
            CommandChecker("pytest -q 'a b'")
        assert_sentences(caught.value)

    @pytest.mark.parametrize("argv", [[], (), [""], ["", "x"], [1], ["ls", 1], ["ls", None], b"ls"], ids=repr)
    def test_an_argv_that_can_not_be_run_is_refused(self, argv: Any) -> None:
        with pytest.raises(ValueError) as caught:
            CommandChecker(argv)
        assert_sentences(caught.value)

    def test_an_empty_word_may_follow_the_command(self) -> None:
        assert CommandChecker(["echo", ""]).argv == ("echo", "")

    @pytest.mark.parametrize("timeout", [0, -1, float("nan")])
    def test_a_timeout_that_is_not_positive_is_refused(self, timeout: float) -> None:
        with pytest.raises(ValueError) as caught:
            CommandChecker(["ls"], timeout=timeout)
        assert_sentences(caught.value)

    def test_five_minutes_are_the_default(self) -> None:
        assert CommandChecker(["ls"]).timeout == 300.0

    def test_the_name_is_the_command_line_or_what_is_given(self) -> None:
        assert CommandChecker(["grep", "-r", "a b"]).name == "grep -r 'a b'"
        assert CommandChecker(["grep"], name="search").name == "search"
        long = CommandChecker(["echo", "x" * 200]).name
        assert len(long) == 80
        assert long.endswith("…")


class TestWhere:
    def where(self, checker_cwd: str | Path | None, context: TaskCompletionContext) -> str:
        result = CommandChecker(
            [sys.executable, "-c", "import os; print(os.getcwd()); raise SystemExit(1)"], cwd=checker_cwd
        )
        return (result.check(context).feedback or "").split("\n  ")[1]

    def test_it_runs_where_the_host_filesystem_is(self, tmp_path: Path) -> None:
        assert self.where(None, on_disk(tmp_path)) == str(tmp_path.resolve())

    def test_without_files_on_disk_it_runs_in_the_current_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert self.where(None, make_context()) == str(tmp_path.resolve())
        assert self.where(None, make_context(files={"a": "x"})) == str(tmp_path.resolve())

    def test_a_relative_cwd_is_below_the_workspace(self, tmp_path: Path) -> None:
        (tmp_path / "sub" / "deep").mkdir(parents=True)
        assert self.where("sub/deep", on_disk(tmp_path)) == str((tmp_path / "sub" / "deep").resolve())

    def test_a_relative_cwd_without_files_on_disk_is_below_the_current_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "sub").mkdir()
        monkeypatch.chdir(tmp_path)
        assert self.where("sub", make_context()) == str((tmp_path / "sub").resolve())

    def test_an_absolute_cwd_stands_for_itself(self, tmp_path: Path) -> None:
        (tmp_path / "root").mkdir()
        (tmp_path / "other").mkdir()
        assert self.where(tmp_path / "other", on_disk(tmp_path / "root")) == str((tmp_path / "other").resolve())

    def test_a_folder_that_does_not_exist_is_told(self, tmp_path: Path) -> None:
        result = CommandChecker([sys.executable, "--version"], cwd="gone").check(on_disk(tmp_path))
        assert result.code is ReasonCode.COMMAND_NOT_FOUND
        assert str(tmp_path.resolve() / "gone") in result.feedback
        assert_sentences(result.feedback)


class TestEnvironment:
    CODE = "import os; raise SystemExit(0 if os.environ.get({name!r}) == {value!r} else 1)"

    def sees(self, name: str, value: str | None, **settings: Any) -> bool:
        return python(self.CODE.format(name=name, value=value), **settings).check(make_context()).complete

    def test_secrets_and_loader_variables_stay_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("MY_TOKEN", "PYTHONPATH", "PYTEST_ADDOPTS"):
            monkeypatch.setenv(name, "secret")
            assert self.sees(name, None)

    def test_variables_named_in_pass_env_come_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_TOKEN", "secret")
        assert self.sees("MY_TOKEN", "secret", pass_env=("MY_TOKEN",))
        assert self.sees("NOT_SET_ANYWHERE", None, pass_env=["NOT_SET_ANYWHERE"])

    def test_variables_given_in_env_come_in_and_win(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_TOKEN", "outer")
        assert self.sees("MY_TOKEN", "inner", pass_env=("MY_TOKEN",), env={"MY_TOKEN": "inner"})
        assert self.sees("PATH", os.environ["PATH"])

    def test_changing_the_mapping_later_changes_nothing(self) -> None:
        env = {"A": "1"}
        it = python(self.CODE.format(name="A", value="1"), env=env)
        env["A"] = "2"
        assert it.check(make_context()).complete is True


PYTEST_OUTPUT = """\
============================= test session starts ==============================
platform linux -- Python 3.12.1, pytest-9.0.2, pluggy-1.6.0
rootdir: /work
collected 2 items

test_it.py .F                                                            [100%]

=================================== FAILURES ===================================
___________________________________ test_two ___________________________________

    def test_two():
>       assert 1 + 1 == 3
E       assert (1 + 1) == 3

test_it.py:5: AssertionError
=========================== short test summary info ============================
FAILED test_it.py::test_two - assert (1 + 1) == 3
========================= 1 failed, 1 passed in 0.02s ==========================
"""


class TestLinesThatMatter:
    def test_of_a_pytest_run_the_failure_and_the_summary_are_kept(self) -> None:
        lines = lines_that_matter(PYTEST_OUTPUT)
        assert lines[-1] == "========================= 1 failed, 1 passed in 0.02s =========================="
        assert "FAILED test_it.py::test_two - assert (1 + 1) == 3" in lines
        assert "E       assert (1 + 1) == 3" in lines
        assert len(lines) == 12

    def test_lines_without_letters_and_digits_are_dropped(self) -> None:
        output = "one\n======\n\n   \n*** --- ___\n_____\n│ └──\n>>>\ntwo\n"
        assert lines_that_matter(output) == ["one", "two"]

    def test_decoration_around_words_stays(self) -> None:
        assert lines_that_matter("=== FAILURES ===\n__ test_x __") == ["=== FAILURES ===", "__ test_x __"]

    def test_of_a_short_output_every_line_is_kept_in_order(self) -> None:
        lines = [f"line {number}" for number in range(12)]
        assert lines_that_matter("\n".join(lines)) == lines

    def test_of_a_long_output_the_end_is_kept(self) -> None:
        lines = [f"line {number}" for number in range(13)]
        assert lines_that_matter("\n".join(lines)) == lines[1:]

    def test_early_trouble_is_kept_when_the_end_is_noise(self) -> None:
        trouble = "main.c:7:5: error: use of undeclared identifier 'x'"
        noise = [f"note number {number}" for number in range(50)]
        assert lines_that_matter("\n".join(["cc -c main.c", trouble, *noise])) == [trouble, "…", *noise[-6:]]

    def test_of_much_early_trouble_the_latest_is_kept(self) -> None:
        trouble = [f"file{number}.c: error: bad" for number in range(20)]
        noise = [f"note number {number}" for number in range(50)]
        assert lines_that_matter("\n".join([*trouble, *noise])) == [*trouble[-6:], "…", *noise[-6:]]

    def test_early_trouble_gives_way_when_the_end_speaks_of_trouble_itself(self) -> None:
        noise = [f"note number {number}" for number in range(50)]
        lines = ["early error: one", *noise, "late error: two"]
        assert lines_that_matter("\n".join(lines)) == lines[-12:]

    def test_only_noise_gives_the_last_lines(self) -> None:
        noise = [f"note number {number}" for number in range(50)]
        assert lines_that_matter("\n".join(noise)) == noise[-12:]

    @pytest.mark.parametrize(
        "line",
        [
            "error: x",
            "2 errors",
            "FAILED test",
            "a Failure here",
            "fatal: not a repository",
            "Unhandled exception",
            "kernel panic",
            "x is undefined",
            "expected ';'",
            "TypeError at line 3",
            "E   assert False",
        ],
    )
    def test_these_lines_speak_of_trouble(self, line: str) -> None:
        noise = [f"note number {number}" for number in range(20)]
        assert line in lines_that_matter("\n".join([line, *noise]))

    @pytest.mark.parametrize("line", ["all fine", "Every test", "unexpectedly quick", "faile", "Eat  "])
    def test_these_lines_do_not(self, line: str) -> None:
        noise = [f"note number {number}" for number in range(20)]
        assert lines_that_matter("\n".join([line, *noise])) == noise[-12:]

    @pytest.mark.parametrize("output", ["", "\n\n", "   ", "=====\n-----\n"], ids=repr)
    def test_of_nothing_nothing_is_left(self, output: str) -> None:
        assert lines_that_matter(output) == []

    def test_colours_and_other_control_sequences_are_taken_out(self) -> None:
        output = "\x1b[1;31mFAILED\x1b[0m test_x\n\x1b[2J\x1b[H\nprogress 1%\rprogress 100%\n\x1b]0;title\x07done"
        assert lines_that_matter(output) == ["FAILED test_x", "progress 1%", "progress 100%", "done"]

    def test_a_long_line_is_cut(self) -> None:
        (line,) = lines_that_matter("x" * 500)
        assert line == "x" * 199 + "…"

    def test_indentation_stays_and_trailing_space_goes(self) -> None:
        assert lines_that_matter("    def f():   \n") == ["    def f():"]

    def test_the_limit_can_be_set(self) -> None:
        lines = [f"line {number}" for number in range(10)]
        assert lines_that_matter("\n".join(lines), limit=3) == lines[-3:]
        assert lines_that_matter("\n".join(["error: a", *lines]), limit=3) == ["error: a", "…", *lines[-2:]]


class TestFeedback:
    def test_the_lines_are_quoted_indented_below_the_verdict(self) -> None:
        code = (
            "import sys; print('\\x1b[31mfirst\\x1b[0m'); print('-----'); print('second', file=sys.stderr); sys.exit(3)"
        )
        result = python(f"import sys; sys.stdout.reconfigure(line_buffering=True); {code}").check(make_context())
        assert_sentences(result.feedback)

    def test_a_command_that_said_nothing_is_told(self) -> None:
        assert_sentences(python("raise SystemExit(1)").check(make_context()).feedback)

    def test_output_that_is_no_text_does_no_harm(self) -> None:
        code = "import sys; sys.stdout.buffer.write(b'bad \\xff\\xfe bytes\\n'); sys.exit(1)"
        assert "bad �� bytes" in (python(code).check(make_context()).feedback or "")
