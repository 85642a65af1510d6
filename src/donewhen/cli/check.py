"""`donewhen check`: run the checks given on the command line."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.completion import (
    REASONS,
    CommandChecker,
    FileExistsChecker,
    TaskCompletionChecker,
    TaskCompletionContext,
    TaskCompletionResult,
    TestSuiteChecker,
    run_check,
)
from donewhen.completion.from_settings import checks_for
from donewhen.config import load
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.process import split_command
from donewhen.runtime import Session


@click.command()
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file that must exist and not be empty.")
@click.option(
    "--run", "commands", multiple=True, metavar="CMD", help="A command that must succeed. It runs without a shell."
)
@click.option(
    "--tests",
    "suites",
    multiple=True,
    metavar="CMD",
    help="A test command that must succeed, and so must its JUnit report; {junit} is replaced by the report's path.",
)
@click.option(
    "--baseline", type=click.Path(dir_okay=False), help="Fail if a test of this baseline is lost or newly skipped."
)
@click.option("--pass-env", multiple=True, metavar="NAME", help="Pass this environment variable to the commands.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=900.0,
    show_default=True,
    metavar="S",
    help="Time limit for a command, in seconds.",
)
@common_options
@click.pass_obj
def command(
    output: Output,
    files: tuple[str, ...],
    commands: tuple[str, ...],
    suites: tuple[str, ...],
    baseline: str | None,
    pass_env: tuple[str, ...],
    timeout: float,
) -> ExitCode:
    """Run all given checks. Every one must pass.

    Without options, runs the checks of [stop] in the settings. They run in this folder as it is, and nobody has agreed
    to them; with `base = "REF"` in [stop], what judges comes from that branch.

    \b
    donewhen check
    donewhen check --file report.md --run "ruff check ."
    donewhen check --tests "python -m pytest --junitxml={junit}" --baseline tests/baseline.json
    """
    checks: list[tuple[str, TaskCompletionChecker]] = []
    if files:
        checks.append((f"files {', '.join(files)}", FileExistsChecker(files, strict=True)))
    checks += [
        (text, CommandChecker(split_command(text), timeout=timeout, pass_env=pass_env, name=text)) for text in commands
    ]
    checks += [(text, suite_checker(text, baseline=baseline, timeout=timeout, pass_env=pass_env)) for text in suites]
    if baseline is not None and not suites:
        raise UsageError("--baseline needs --tests: the baseline is compared with a test report.")
    root = Path.cwd()
    against = "nothing"
    if not checks:
        settings = load(root)
        root = settings.root
        against = "base" if settings.stop.base else "jobs" if settings.stop.jobs else "nothing"
        checks = checks_for(settings.stop, str(settings.source))
    if not checks:
        raise UsageError(
            "There is nothing to check, and zero checks is not a pass.",
            next_step="Give --file, --run or --tests, or write a [stop] table into donewhen.toml.",
        )
    context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(root))
    results = [(label, _asked(output, label, checker, context)) for label, checker in checks]
    return _print_results(output, results, against)


def suite_checker(
    text: str, *, baseline: str | None, timeout: float, pass_env: tuple[str, ...] = ()
) -> TestSuiteChecker:
    """The checker for a test command."""
    try:
        return TestSuiteChecker(split_command(text), baseline=baseline, timeout=timeout, pass_env=pass_env, name=text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}.") from error


def _asked(
    output: Output, label: str, checker: TaskCompletionChecker, context: TaskCompletionContext
) -> TaskCompletionResult:
    with output.progress(label):
        result = run_check(checker, context)
    mark, color = ("✓", "green") if result.complete else ("✗", "red")
    code = f" [{result.code}]" if result.code else ""
    output.say(f"{mark} {label}{code}", fg=color, bold=True)
    for line in (result.feedback or "").split("\n"):
        output.say(f"  {line}")
    return result


def _print_results(output: Output, results: list[tuple[str, TaskCompletionResult]], against: str) -> ExitCode:
    failures = [(label, result) for label, result in results if not result.complete]
    findings = [
        Finding(
            result.code or "incomplete",
            result.feedback or "",
            where=label,
            next=REASONS[result.code].next_step if result.code else None,
        )
        for label, result in failures
    ]
    undecided = any(result.code is not None and result.code.undecided for _, result in failures)
    status = ExitCode.INTERNAL if undecided else ExitCode.GATE_FAILED if failures else ExitCode.PASS
    passed = len(results) - len(failures)
    output.say()
    output.say(f"{passed} of {len(results)} check(s) passed: {'done.' if not failures else 'not done.'}", bold=True)
    if against == "nothing":
        output.say("No agreement covers these checks.", dim=True)
    data = {
        "against": against,
        "checks": [
            {"check": label, "complete": result.complete, "code": result.code, "feedback": result.feedback}
            for label, result in results
        ],
    }
    return output.finish(status, data, findings)
