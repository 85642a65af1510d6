"""Starts commands so that they write a test report, and reads it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from donewhen.foundation.process import CommandResult, run_command
from donewhen.test_reports.junit import ReportError
from donewhen.test_reports.run_reports import RunReport, read_reports

_OWN_REPORT = ("--junitxml", "--junit-xml")


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
    variables = dict(environment)
    expected = any(placeholder in word for word in argv[1:] for placeholder in placeholders)
    if not expected and is_pytest(argv) and not any(word.startswith(_OWN_REPORT) for word in argv):
        # Request a report through the environment, so that the agreed command stays unchanged.
        expected = True
        options = variables.get("PYTEST_ADDOPTS", "")
        variables["PYTEST_ADDOPTS"] = f"{options} {shlex.quote(f'--junitxml={reports}/junit.xml')}".strip()
    result = run_command(words, cwd=cwd, timeout=timeout, env=variables)
    try:
        report = read_reports(reports)
    except ReportError as error:
        return ReportedRun(result, None, str(error))
    # A test can end the process with status 0 before the report is written.
    missing = expected and report is None and result.succeeded
    return ReportedRun(result, report, "The command wrote no test report." if missing else None)


def reports_tests(argv: Sequence[str]) -> bool:
    """Whether a command is expected to write a test report."""
    return is_pytest(argv) or any("{junit" in word or "{report_dir}" in word for word in argv)


def is_pytest(argv: Sequence[str]) -> bool:
    """Whether a command is pytest."""
    name = Path(argv[0]).name
    return name in ("pytest", "py.test") or (name.startswith("python") and tuple(argv[1:3]) == ("-m", "pytest"))


def _fill_placeholders(word: str, placeholders: Mapping[str, str]) -> str:
    for name, value in placeholders.items():
        word = word.replace(name, value)
    return word
