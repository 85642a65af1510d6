"""Changes how a test command is started, so that it also writes a JUnit report."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from donewhen.test_reports.test_runners import TestRunner, own_report

_HERE = Path(__file__).parent
_UNITTEST_SCRIPT = _HERE / "unittest_report.py"
_NODE_REPORTER = _HERE / "node_report.mjs"
_UNITTEST_VARIABLE = "DONEWHEN_UNITTEST_REPORT"
_PYTEST_VARIABLE = "PYTEST_ADDOPTS"
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class ReportedCommand:
    """How to start a command so that it writes a JUnit report."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    """Variables to add to the environment."""
    expected: bool
    """Whether a report must be there after a successful run."""
    own_report: str | None = None
    """The report that the command writes to a place of its own, relative to the working folder."""


def reported_command(
    runner: TestRunner, words: Sequence[str], report_folder: str, environment: Mapping[str, str] = _NO_VARIABLES
) -> ReportedCommand:
    """How to start a command so that a JUnit report appears in ``report_folder``.

    ``words`` are those in which the runner was found, except that placeholders may have been replaced and the program
    resolved. ``environment`` is the one in which the command is to run.
    """
    words = tuple(words)
    if runner.kind == "none" or (runner.kind == "wrapper" and any("no:junitxml" in word for word in words)):
        return ReportedCommand(words, {}, expected=False)
    if runner.kind == "node":
        return ReportedCommand(_node_words(words, runner.arguments, report_folder), {}, expected=True)
    if runner.kind == "unittest":
        variable, value = _UNITTEST_VARIABLE, f"{report_folder}/unittest.xml"
        words = _unittest_words(words, *runner.module)
    else:
        own = own_report(words[runner.arguments :]) if runner.kind == "pytest" else None
        if own is not None:
            # The command's own option would win, so another one in the environment would be useless.
            path = posixpath.join(runner.folder, own.path)
            inside = posixpath.normpath(path).startswith(posixpath.normpath(report_folder) + "/")
            return ReportedCommand(words, {}, expected=True, own_report=None if inside else path)
        options = _inherited(runner, _PYTEST_VARIABLE, environment)
        value = f"{options} {shlex.quote(f'--junitxml={report_folder}/junit.xml')}".strip()
        variable = _PYTEST_VARIABLE
    expected = runner.kind != "wrapper"
    words, added = with_variable(runner, words, variable, lambda _: value, environment)
    return ReportedCommand(words, added, expected)


def with_variable(
    runner: TestRunner,
    words: tuple[str, ...],
    variable: str,
    value: Callable[[Mapping[str, str]], str],
    environment: Mapping[str, str],
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Give the test runner a variable: return the words of the command, and the variables to add to the environment.

    ``value`` is called with the variables that the runner would have had.
    """
    cleared = runner.cleared
    if cleared is not None and (cleared.everything or variable in cleared.variables):
        had = cleared.variables if cleared.everything else {**environment, **cleared.variables}
        return (*words[: cleared.position], f"{variable}={value(had)}", *words[cleared.position :]), {}
    return words, {variable: value(environment)}


def _inherited(runner: TestRunner, variable: str, environment: Mapping[str, str]) -> str:
    cleared = runner.cleared
    if cleared is not None and variable in cleared.variables:
        return cleared.variables[variable]
    return "" if cleared is not None and cleared.everything else environment.get(variable, "")


def _unittest_words(words: tuple[str, ...], flag: int, module: int) -> tuple[str, ...]:
    """The words with our script in the place of ``-m unittest``."""
    option = words[flag]
    # Other options may be joined: ``-Bm unittest``, and with coverage ``-ma unittest``.
    joined = "" if option.startswith("--") else option
    others = joined[: joined.index("m")] if flag == module else joined.replace("m", "", 1)
    kept = (others,) if len(others) > 1 else ()
    return (*words[:flag], *kept, *words[flag + 1 : module], str(_UNITTEST_SCRIPT), *words[module + 1 :])


def _node_words(words: tuple[str, ...], position: int, report_folder: str) -> tuple[str, ...]:
    """The words with our reporter (node 18.15 or later); the reporters of the command remain."""
    names = [word.partition("=")[0] for word in words[position:]]
    reporters, destinations = names.count("--test-reporter"), names.count("--test-reporter-destination")
    added = [f"--test-reporter={_NODE_REPORTER.as_uri()}", f"--test-reporter-destination={report_folder}/node.xml"]
    if not reporters:
        added += ["--test-reporter=spec"]
    if not destinations:
        # Only a single reporter may be without a destination.
        added += ["--test-reporter-destination=stdout"]
    return (*words[:position], *added, *words[position:])
