"""`donewhen baseline`: record which tests exist."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.cli.check import suite_checker
from donewhen.completion import SuiteBaseline, TaskCompletionContext
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.plain_text import join_limited
from donewhen.runtime import Session
from donewhen.test_reports.suite_baseline import update_baseline


@click.command()
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FILE", help="File to write the baseline to."
)
@click.option("--accept-losses", is_flag=True, help="Replace the baseline even if tests are missing.")
@click.option("--pass-env", multiple=True, metavar="NAME", help="Pass this environment variable to the command.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=900.0,
    show_default=True,
    metavar="S",
    help="Time limit for a command, in seconds.",
)
@click.argument("argv", nargs=-1, required=True, metavar="COMMAND...")
@common_options
@click.pass_obj
def command(
    output: Output,
    out: Path,
    accept_losses: bool,
    pass_env: tuple[str, ...],
    timeout: float,
    argv: tuple[str, ...],
) -> ExitCode:
    """Run a test command and record which tests ran and which were skipped.

    \b
    donewhen baseline --out tests/baseline.json -- python -m pytest --junitxml={junit}

    The baseline is written only if the tests pass, at least one test ran, and no test of an existing baseline is lost
    (unless --accept-losses is given).
    """
    checker = suite_checker(shlex.join(argv), baseline=None, timeout=timeout, pass_env=pass_env)
    context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(Path.cwd()))
    with output.progress(checker.name):
        result, report = checker.check_with_report(context)
    if not result.complete or report is None:
        code = result.code or "incomplete"
        finding = Finding(code, result.feedback or "", next="Make the tests pass first.")
        return output.fail(ExitCode.GATE_FAILED, finding)
    new = SuiteBaseline.of(report)
    update = update_baseline(out, new, accept_losses=accept_losses)
    lost = update.lost
    if not update.saved:
        return output.fail(
            ExitCode.GATE_FAILED,
            Finding(
                "tests_lost",
                f"{len(lost)} test(s) of the old baseline are missing or newly skipped: {join_limited(lost, 5)}.",
                where=str(out),
                next="Restore them, or accept the loss with --accept-losses.",
            ),
        )
    output.say(
        f"{out}: {len(new.executed)} test(s) run ({update.added} new), {len(new.skipped)} skipped, {len(lost)} lost."
    )
    data = {"path": str(out), "executed": sorted(new.executed), "skipped": sorted(new.skipped), "lost": list(lost)}
    return output.finish(ExitCode.PASS, data)
