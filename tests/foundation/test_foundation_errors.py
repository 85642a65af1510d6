"""Errors are sentences with a code, an exit code, a place and a next step."""

from __future__ import annotations

import pytest

from donewhen.foundation.errors import ConfigError, DonewhenError, ExitCode, MissingExtraError, UsageError
from donewhen.foundation.install_line import install_line
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.protocols import ReasonCode


def test_the_exit_codes_are_the_documented_ones():
    assert {code.name: code.value for code in ExitCode} == {
        "PASS": 0,
        "GATE_FAILED": 1,
        "USAGE": 2,
        "INTERNAL": 3,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize(
    ("kind", "code", "exit_code"),
    [
        (DonewhenError, "internal", ExitCode.INTERNAL),
        (UsageError, "usage", ExitCode.USAGE),
        (ConfigError, "config", ExitCode.USAGE),
        (CommandNotRunnableError, "command_not_found", ExitCode.INTERNAL),
    ],
)
def test_each_kind_of_error_says_its_code_and_exit_code(
    kind: type[DonewhenError], code: str, exit_code: ExitCode
) -> None:
    error = kind("It went wrong.")
    assert isinstance(error, DonewhenError)
    assert (error.code, error.exit_code) == (code, exit_code)
    assert error.message == str(error) == "It went wrong."
    assert (error.where, error.next_step) == (None, None)


def test_an_error_reads_place_then_sentence_then_advice():
    error = UsageError("The value is not a number.", where="jobs/a.md:3", next_step="Write a number.")
    assert str(error) == "jobs/a.md:3: The value is not a number. Write a number."
    assert error.args == ("The value is not a number.",)


def test_an_error_without_a_place_still_gives_its_advice():
    assert str(UsageError("No.", next_step="Do this.")) == "No. Do this."


def test_an_error_without_advice_still_gives_its_place():
    assert str(UsageError("No.", where="here")) == "here: No."


def test_a_missing_extra_names_the_feature_and_the_line_that_installs_it():
    error = MissingExtraError("The Claude adapter", "claude")
    assert error.extra == "claude"
    assert error.exit_code == ExitCode.USAGE
    assert "The Claude adapter" in str(error)
    assert str(error).endswith(f"Run: {install_line('claude')}")


def test_a_command_that_can_not_run_has_the_code_that_reasons_explain():
    assert ReasonCode(CommandNotRunnableError.code) is ReasonCode.COMMAND_NOT_FOUND
