"""Starts commands so that they write a test report, and reads it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from donewhen.controls.channel import ControlChannel, control_channel
from donewhen.controls.judging import NOT_ASKED, OTHER_RUNNER, ControlsResult, judge_controls
from donewhen.foundation.process import CommandResult, run_command
from donewhen.isolation.confinement import Confinement
from donewhen.isolation.running import run_apart
from donewhen.test_reports.junit import ReportError, read_report_file
from donewhen.test_reports.known_programs import TASK_RUNNERS
from donewhen.test_reports.reported_command import ReportedCommand, reported_command, with_variable
from donewhen.test_reports.run_reports import RunReport, read_reports
from donewhen.test_reports.test_runners import TestRunner, runner_of


@dataclass(frozen=True)
class ReportedRun:
    """The result of a command, with its test report, and what is wrong with that."""

    result: CommandResult
    report: RunReport | None
    problem: str | None
    controls: ControlsResult = NOT_ASKED
    """What the tests say that the gate has put into the run."""

    @property
    def seems_passed(self) -> bool:
        """Whether it has passed by what it says itself."""
        good = self.report is None or self.report.good
        return self.result.succeeded and self.problem is None and good

    @property
    def is_trusted(self) -> bool:
        return self.controls.held != "broken"

    @property
    def passed(self) -> bool:
        return self.seems_passed and self.is_trusted


def run_with_report(
    program: Path,
    argv: Sequence[str],
    *,
    cwd: Path,
    reports: Path,
    environment: Mapping[str, str],
    timeout: float,
    confinement: Confinement | None = None,
) -> ReportedRun:
    """Run a command; ``reports`` is an empty folder for its test report. ``confinement`` keeps the command apart."""
    placeholders = {"{junit}": f"{reports}/junit.xml", "{junit_dir}": str(reports), "{report_dir}": str(reports)}
    words = [str(program), *(_fill_placeholders(word, placeholders) for word in argv[1:])]
    filled = any(placeholder in word for word in argv[1:] for placeholder in placeholders)
    runner = runner_of(argv)
    # The agreed command stays what it is: a report is asked for beside it.
    asked = reported_command(TestRunner("none") if filled else runner, words, str(reports), environment)
    with ExitStack() as stack:
        watched = not _WITHOUT_CONTROLS.get() and _takes_controls(runner, argv)
        channel = stack.enter_context(control_channel(of_processes=_is_several(runner))) if watched else None
        if channel is not None and runner.script:
            place = runner.script + len(asked.words) - len(words)
            script = (*asked.words[:place], str(channel.script), *asked.words[place:])
            asked = replace(asked, words=script)
        result = _run(asked, runner, cwd, environment, timeout, confinement, channel)
        lines = None if channel is None else channel.finish()
    run = _with_report(result, asked, cwd, reports, filled=filled)
    tests = runner.kind != "none" or (run.report is not None and run.report.has_tests)
    if lines is None or (not lines.started and (runner.script or runner.kind == "wrapper")):
        return replace(run, controls=OTHER_RUNNER) if tests else run
    reported = run.report.outcomes if run.report is not None and run.report.has_tests else None
    controls = judge_controls(lines, result.exit_code, reported)
    if controls.why == NOT_ASKED.why and tests:
        controls = replace(controls, why=OTHER_RUNNER.why)
    return replace(run, controls=controls)


def _run(
    asked: ReportedCommand,
    runner: TestRunner,
    cwd: Path,
    environment: Mapping[str, str],
    timeout: float,
    confinement: Confinement | None,
    channel: ControlChannel | None,
) -> CommandResult:
    """Run a command, with the stream for its controls if it takes some."""
    variables, words = {**environment, **asked.environment}, asked.words
    descriptors: tuple[int, ...] = ()
    if channel is not None and runner.kind == "node":
        words = (*words[: runner.arguments], "--require", str(channel.node_module), *words[runner.arguments :])
        descriptors = (channel.descriptor,)
    elif channel is not None:
        words, added = with_variable(runner, words, "PYTHONPATH", channel.python_path, environment)
        variables, descriptors = {**variables, **added}, (channel.descriptor,)
        if _is_several(runner):
            words, added = with_variable(runner, words, "NODE_OPTIONS", channel.node_options, environment)
            variables = {**variables, **added}
    if confinement is None:
        return run_command(words, cwd=cwd, timeout=timeout, env=variables, pass_fds=descriptors)
    if channel is not None:
        confinement = replace(confinement, read_only={**confinement.read_only, channel.folder: channel.folder})
    return run_apart(words, cwd, variables, confinement, timeout, descriptors)


def _with_report(
    result: CommandResult, asked: ReportedCommand, cwd: Path, reports: Path, *, filled: bool
) -> ReportedRun:
    try:
        if asked.own_report is not None:
            _take_own_report(cwd / asked.own_report, reports)
        report = read_reports(reports)
    except ReportError as error:
        return ReportedRun(result, None, str(error))
    # A test can end the process with status 0 before the report is written.
    missing = (filled or asked.expected) and report is None and result.succeeded
    return ReportedRun(result, report, "The command wrote no test report." if missing else None)


_WITHOUT_CONTROLS: ContextVar[bool] = ContextVar("donewhen_without_controls", default=False)


@contextmanager
def without_controls() -> Iterator[None]:
    """Meanwhile, runs have no controls: they are no evidence, and only compare tests with themselves."""
    token = _WITHOUT_CONTROLS.set(True)
    try:
        yield
    finally:
        _WITHOUT_CONTROLS.reset(token)


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


def _takes_controls(runner: TestRunner, argv: Sequence[str]) -> bool:
    """Whether a command is a test runner that takes controls, or a program that probably starts one."""
    if runner.kind == "wrapper" and not runner.script:
        name = posixpath.basename(argv[runner.arguments])
        is_module = runner.arguments > 0 and argv[runner.arguments - 1] == "-m"
        return name in TASK_RUNNERS or name in _NODE_RUNNERS or name.endswith(".sh") or is_module
    return runner.kind in _WITH_CONTROLS or bool(runner.script)


def _is_several(runner: TestRunner) -> bool:
    """Whether several processes can have controls: one for each file, or one after the other."""
    return runner.kind == "node" or (runner.kind == "wrapper" and not runner.script)


_NODE_RUNNERS = ("npm", "pnpm", "yarn")
"""Programs that run the scripts of a package of Node."""
_WITH_CONTROLS = ("pytest", "unittest", "node")
