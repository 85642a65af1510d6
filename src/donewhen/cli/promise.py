"""`donewhen promise`: check whether a promise is genuine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.files import TooLargeError, read_given, read_stream
from donewhen.foundation.size_limits import PROMISE
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.ledger.gate_program import gate_text
from donewhen.jobs.lifecycle.promise import PromiseCheck, verify_promises


@click.group()
def command() -> None:
    """Check whether promises are genuine."""


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@project_option
@common_options
@click.pass_obj
def verify(output: Output, file: Path | None, project: Path | None) -> ExitCode:
    """Check whether every promise in FILE, or on stdin, is genuine.

    A genuine promise has a receipt on the next line that is in the ledger, and the completion is still valid: of a
    workstream or project, with all jobs that were done for it.
    """
    text = _text(file)
    workspace = find_project(project)
    with output.progress("checking the promises"):
        checks = verify_promises(workspace, text, approval_policy(workspace))
    for found in checks:
        mark, color = ("✓", "green") if found.real else ("✗", "red")
        output.say(f"{mark} {found.id or 'no promise'}: {found.why}.", fg=color)
        if found.gate is not None:
            output.say(f"  by {gate_text(found.gate)}", dim=True)
    findings = [
        Finding("promise", f"{found.why}.", found.id, "donewhen complete JOB") for found in checks if not found.real
    ]
    worst = next((found for found in checks if not found.real), checks[0])
    data = {**_data(worst), "promises": [_data(found) for found in checks]}
    return output.finish(ExitCode.GATE_FAILED if findings else ExitCode.PASS, data, findings)


def _data(check: PromiseCheck) -> dict[str, Any]:
    return {**check._asdict(), "gate": msgspec.to_builtins(check.gate)}


def _text(file: Path | None) -> str:
    try:
        raw = read_stream(sys.stdin.buffer, PROMISE, "standard input") if file is None else read_given(file, PROMISE)
    except TooLargeError as error:
        where = "standard input" if file is None else str(file)
        raise UsageError(f"The text can't be read: {error.strerror}.", where=where) from error
    return raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
