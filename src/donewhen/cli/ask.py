"""`donewhen ask`: ask a person about a job, and wait for the answer."""

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
@click.option("--question", required=True, help="The question that a person has to answer.")
@project_option
@common_options
@click.pass_obj
def command(output: Output, job: str, question: str, project: Path | None) -> ExitCode:
    """Ask a person about JOB. An agent may stop and wait for the answer."""
    return set_aside(output, job, project, question=question)
