"""A checker that requires the tests to pass, and none of the baseline's tests to be missing."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from donewhen.completion.command import CommandChecker, failure_of_command, not_runnable_result, run_checked_command
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.foundation.process import CommandNotRunnableError, CommandResult
from donewhen.protocols import ReasonCode, TaskCompletionContext, TaskCompletionResult
from donewhen.test_reports.junit import ReportError, SuiteReport, read_junit, read_report_file
from donewhen.test_reports.suite_baseline import SuiteBaseline

_SHOWN = 3


class TestSuiteChecker(CommandChecker):
    """Complete when a test command succeeds *and* its JUnit report agrees.

    The command writes its report to the path that replaces ``{junit}`` in ``argv`` or ``env``, or into the
    folder that replaces ``{junit_dir}``: a fresh one with a name that nothing could have written to before.

    Zero tests is incomplete. With a ``baseline`` (a :class:`SuiteBaseline` or the path of a saved one), tests
    that have disappeared, or that ran then and are skipped now, are incomplete as well.

        TestSuiteChecker(["python", "-m", "pytest", "--junitxml={junit}"], baseline="tests/baseline.json")
    """

    __test__ = False  # pytest collects classes by their name

    def __init__(
        self,
        argv: Sequence[str],
        *,
        baseline: SuiteBaseline | str | Path | None = None,
        timeout: float = 900.0,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        pass_env: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        super().__init__(argv, timeout=timeout, cwd=cwd, env=env, pass_env=pass_env, name=name)
        self.baseline = baseline
        texts = (*self.argv, *self.env.values())
        if not any("{junit}" in text or "{junit_dir}" in text for text in texts):
            raise ValueError(
                "the command does not know where to write its report: put {junit} (a file) or {junit_dir} (a folder) "
                "into argv or env, as in --junitxml={junit}"
            )

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        return self.check_with_report(context)[0]

    def check_with_report(self, context: TaskCompletionContext) -> tuple[TaskCompletionResult, SuiteReport | None]:
        """Return the result together with the test report, if there is one."""
        try:
            command, report = self._run(context)
        except CommandNotRunnableError as error:
            return not_runnable_result(error), None
        except ReportError as error:
            return TaskCompletionResult.incomplete(str(error), code=ReasonCode.REPORT_UNREADABLE), None
        failure = failure_of_command(self, command)
        if command.ending != "exited" and failure is not None:
            return failure, report
        if report is None:
            detail = f" {failure.feedback}" if failure is not None else ""
            return TaskCompletionResult.incomplete(
                f"`{self.name}` wrote no JUnit report, so nothing shows that tests ran.{detail}",
                code=ReasonCode.REPORT_MISSING,
            ), None
        verdict = _verdict(report, failure)
        if verdict is None:
            verdict = self._compare_with_baseline(report, context)
        return (_passed(report) if verdict is None else verdict), report

    def _run(self, context: TaskCompletionContext) -> tuple[CommandResult, SuiteReport | None]:
        """Run the tests and read the report; None if the command wrote none."""
        with tempfile.TemporaryDirectory(prefix="donewhen-", ignore_cleanup_errors=True) as folder:

            def fill_placeholders(text: str) -> str:
                return text.replace("{junit_dir}", folder).replace("{junit}", f"{folder}/junit.xml")

            argv = [fill_placeholders(word) for word in self.argv]
            env = {name: fill_placeholders(value) for name, value in self.env.items()}
            result = run_checked_command(self, argv, env, context)
            if result.ending != "exited":
                return result, None
            files = sorted(path for path in Path(folder).rglob("*.xml") if path.is_file() and not path.is_symlink())
            return result, read_junit(map(read_report_file, files)) if files else None

    def _compare_with_baseline(
        self, report: SuiteReport, context: TaskCompletionContext
    ) -> TaskCompletionResult | None:
        if self.baseline is None:
            return None
        try:
            baseline = self._load_baseline(self.baseline, context)
        except ConfigError as error:
            return TaskCompletionResult.incomplete(str(error), code=ReasonCode.BASELINE_UNREADABLE)
        return against_baseline(report, baseline)

    def _load_baseline(self, baseline: SuiteBaseline | str | Path, context: TaskCompletionContext) -> SuiteBaseline:
        if isinstance(baseline, SuiteBaseline):
            return baseline
        root = getattr(context.filesystem, "root", None)
        return SuiteBaseline.load(root / baseline if isinstance(root, Path) else baseline)


def against_baseline(report: SuiteReport, baseline: SuiteBaseline) -> TaskCompletionResult | None:
    """Return what the suite has lost since the baseline; None if nothing."""
    lost = sorted((baseline.executed | baseline.skipped) - report.outcomes.keys())
    if lost:
        return TaskCompletionResult.incomplete(
            f"{len(lost)} test(s) of the baseline are missing: {_join_names(lost)}. "
            "Restore them or record a new baseline.",
            code=ReasonCode.TESTS_LOST,
        )
    skipped = sorted(baseline.executed.intersection(report.ids("skipped")))
    if skipped:
        return TaskCompletionResult.incomplete(
            f"{len(skipped)} test(s) that ran in the baseline are skipped now: {_join_names(skipped)}. "
            "Enable them again, or record a new baseline.",
            code=ReasonCode.TESTS_SKIPPED,
        )
    return None


def _verdict(report: SuiteReport, failure: TaskCompletionResult | None) -> TaskCompletionResult | None:
    """Return the failure shown by the report or the exit status; None if both are fine."""
    failing = report.ids("failed", "errored")
    if failing:
        lines = [f"{test} ({report.messages[test]})" if test in report.messages else test for test in failing]
        return TaskCompletionResult.incomplete(
            f"{len(failing)} of {report.executed} test(s) are failing: {_join_names(lines)}",
            code=ReasonCode.TESTS_FAILED,
        )
    if not report.executed:
        skipped = f"; {len(report.outcomes)} were skipped" if report.outcomes else ""
        return TaskCompletionResult.incomplete(
            f"No test was executed{skipped}. Zero tests is not a pass.", code=ReasonCode.TESTS_NONE
        )
    if failure is not None:
        return TaskCompletionResult.incomplete(
            f"The report has no failing test, but the command did not succeed. {failure.feedback}",
            code=ReasonCode.REPORT_DISAGREES,
        )
    return None


def _passed(report: SuiteReport) -> TaskCompletionResult:
    skipped = len(report.outcomes) - report.executed
    return TaskCompletionResult.ok(
        f"All {report.executed} test(s) passing" + (f", {skipped} skipped." if skipped else ".")
    )


def _join_names(names: Sequence[str]) -> str:
    return join_limited([one_line(name, 400) for name in names], _SHOWN)
