"""Starts commands so that they write a test report, and reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from donewhen.foundation.process import CommandResult, run_command
from donewhen.test_reports.junit import ReportError, read_report_file
from donewhen.test_reports.reported_command import reported_command
from donewhen.test_reports.run_reports import RunReport, read_reports
from donewhen.test_reports.test_runners import TestRunner, runner_of


@dataclass(frozen=True)
class ReportedRun:
    """The result of a command, with its test report, and what is wrong with that."""

    result: CommandResult
    report: RunReport | None
    problem: str | None

    @property
    def passed(self) -> bool:
        good = self.report is None or self.report.good
        return self.result.succeeded and self.problem is None and good


def run_with_report(
    program: Path, argv: Sequence[str], *, cwd: Path, reports: Path, environment: Mapping[str, str], timeout: float
) -> ReportedRun:
    """Run a command; ``reports`` is an empty folder for its test report."""
    placeholders = {"{junit}": f"{reports}/junit.xml", "{junit_dir}": str(reports), "{report_dir}": str(reports)}
    words = [str(program), *(_fill_placeholders(word, placeholders) for word in argv[1:])]
    filled = any(placeholder in word for word in argv[1:] for placeholder in placeholders)
    # The agreed command stays what it is: a report is asked for beside it.
    asked = reported_command(TestRunner("none") if filled else runner_of(argv), words, str(reports), environment)
    result = run_command(asked.words, cwd=cwd, timeout=timeout, env={**environment, **asked.environment})
    try:
        if asked.own_report is not None:
            _take_own_report(cwd / asked.own_report, reports)
        report = read_reports(reports)
    except ReportError as error:
        return ReportedRun(result, None, str(error))
    # A test can end the process with status 0 before the report is written.
    missing = (filled or asked.expected) and report is None and result.succeeded
    return ReportedRun(result, report, "The command wrote no test report." if missing else None)


def reports_tests(argv: Sequence[str]) -> bool:
    """Whether a command is expected to write a test report."""
    return runner_of(argv).reports_tests or any("{junit" in word or "{report_dir}" in word for word in argv)


def _take_own_report(path: Path, reports: Path) -> None:
    """Copy the report that the command writes to a place of its own."""
    if path.is_file() and not path.is_symlink():
        (reports / "own.xml").write_bytes(read_report_file(path))


def _fill_placeholders(word: str, placeholders: Mapping[str, str]) -> str:
    for name, value in placeholders.items():
        word = word.replace(name, value)
    return word
