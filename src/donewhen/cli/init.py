"""`donewhen init`: create a project."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.plan.creating import create_project


@click.command()
@click.option("--title", default="", help="Title of the project (default: the folder's name).")
@click.option("--workstreams", is_flag=True, help="Create a folder PJ-… with workstreams instead.")
@common_options
@click.pass_obj
def command(output: Output, title: str, workstreams: bool) -> ExitCode:
    """Create a project in this folder: jobs/ for the plans, .donewhen/ for the ledger and the evidence.

    \b
    donewhen init --title "Shop"
    donewhen add "Log in with a password" \\
        --criterion "A wrong password is refused :: run python -m pytest -q" --output /src/login.py
    donewhen agree
    """
    workspace = create_project(Path.cwd(), title, form="big" if workstreams else "small")
    project = workspace.project()
    output.say(f"{project.id}  {project.title}", bold=True)
    output.say(f"  {workspace.where(workspace.project_file)} and {workspace.folder.name}/ in {workspace.root}")
    output.say('  next: donewhen add "What has to be done"', dim=True)
    data = {"project": project.id, "root": str(workspace.root), "form": workspace.form}
    return output.finish(ExitCode.PASS, data)
