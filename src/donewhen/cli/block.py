"""`donewhen block`: mark a job as blocked, with the reason."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import job_argument, project_option
from donewhen.cli._output import Output
from donewhen.cli._set_aside import set_aside
from donewhen.foundation.errors import ExitCode


@click.command()
@job_argument
@click.option("--reason", required=True, help="What blocks the job. Recorded in the ledger.")
@project_option
@common_options
@click.pass_obj
def command(output: Output, job: str, reason: str, project: Path | None) -> ExitCode:
    """Mark JOB as blocked and record why. An agent may then stop."""
    return set_aside(output, job, project, reason=reason)
