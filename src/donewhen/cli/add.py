"""`donewhen add`: create a job."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.board.views import update_views
from donewhen.jobs.lifecycle.agreeing import propose_work_areas, write_work_area
from donewhen.jobs.plan.creating import DEFAULT_OUTPUTS, add_job
from donewhen.jobs.plan.criteria import criterion_item
from donewhen.jobs.plan.job import STAKES, Stakes


@click.command()
@click.argument("title")
@click.option(
    "--criterion",
    "criteria",
    multiple=True,
    metavar="TEXT",
    help='An acceptance criterion and, after "::", its check: "No test fails :: run pytest -q".',
)
@click.option(
    "--verify", "commands", multiple=True, metavar="CMD", help="A command that must succeed. It runs without a shell."
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="PATH",
    help=f"A file that the job creates or changes; relative to the job, or to the project with a leading slash "
    f"(default: {DEFAULT_OUTPUTS[0]}, a report in the job's folder).",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="PATH",
    help="A file, folder or pattern that the job depends on (default: everything that git tracks).",
)
@click.option(
    "--work",
    multiple=True,
    metavar="PATTERN",
    help="What the job may change besides its outputs, such as '/src/shop/**' (default: packages, docs and tests).",
)
@click.option("--depends-on", multiple=True, metavar="JOB", help="A job that must be done first.")
@click.option("--stakes", type=click.Choice(STAKES), default="normal", show_default=True, help="How much is at stake.")
@click.option("--workstream", metavar="NAME", help="The workstream of the job; created if it does not exist.")
@project_option
@common_options
@click.pass_obj
def command(
    output: Output,
    title: str,
    criteria: tuple[str, ...],
    commands: tuple[str, ...],
    outputs: tuple[str, ...],
    inputs: tuple[str, ...],
    work: tuple[str, ...],
    depends_on: tuple[str, ...],
    stakes: Stakes,
    workstream: str | None,
    project: Path | None,
) -> ExitCode:
    """Create a job. A person has to agree to it before it can start.

    \b
    donewhen add "Log in with a password" \\
        --criterion "A wrong password is refused :: run python -m pytest -q tests/test_login.py" \\
        --output /src/login.py
    """
    workspace = find_project(project)
    job = add_job(
        workspace,
        title,
        stakes=stakes,
        depends_on=depends_on,
        outputs=outputs or DEFAULT_OUTPUTS,
        inputs=inputs,
        commands=commands,
        criteria=[criterion_item(text, "--criterion") for text in criteria],
        workstream=workstream,
        work=work or None,
    )
    job = write_work_area(workspace, propose_work_areas(workspace, [job])[0])
    update_views(workspace, job)
    output.say(f"{job.id}  {job.title}", bold=True)
    output.say(f"  {workspace.where(job.path)}")
    area = ", ".join(dict.fromkeys((*(job.work or ()), *job.outputs)))
    output.say(f"  may change: {area}; checks see all other files as they are when you agree")
    if not outputs:
        path = workspace.where(job.folder / DEFAULT_OUTPUTS[0])
        output.say(f"  has to write {path}; if the work is in other files, name one in outputs (--output /PATH)")
    next_step = f"donewhen agree {job.id}" if criteria else "write its acceptance criteria, then: donewhen agree"
    output.say(f"  next: {next_step}", dim=True)
    return output.finish(ExitCode.PASS, {"job": job.id, "path": workspace.where(job.path), "work": [*(job.work or ())]})
