"""`donewhen promise`: check whether a promise is genuine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.files import TooLargeError, read_limited, read_stream
from donewhen.foundation.size_limits import PROMISE
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.lifecycle.promise import verify_promise


@click.group()
def command() -> None:
    """Check whether a promise is genuine."""


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@project_option
@common_options
@click.pass_obj
def verify(output: Output, file: Path | None, project: Path | None) -> ExitCode:
    """Check whether the promise in FILE, or on stdin, is genuine.

    A genuine promise has a receipt on the next line that is in the ledger, and the completion is still valid.
    """
    text = _text(file)
    workspace = find_project(project)
    found = verify_promise(workspace, text, approval_policy(workspace))
    mark, color = ("✓", "green") if found.real else ("✗", "red")
    output.say(f"{mark} {found.id or 'no promise'}: {found.why}.", fg=color)
    findings = [] if found.real else [Finding("promise", f"{found.why}.", found.id, "donewhen complete JOB")]
    return output.finish(ExitCode.PASS if found.real else ExitCode.GATE_FAILED, found._asdict(), findings)


def _text(file: Path | None) -> str:
    try:
        raw = read_stream(sys.stdin.buffer, PROMISE, "standard input") if file is None else read_limited(file, PROMISE)
    except TooLargeError as error:
        where = "standard input" if file is None else str(file)
        raise UsageError(f"The text can't be read: {error.strerror}.", where=where) from error
    return raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
