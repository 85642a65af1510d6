"""Beginning to work with jobs."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.plan.creating import create_project


@click.command()
@click.option("--title", default="", help="What the project is called; without it, the folder's name.")
@click.option("--workstreams", is_flag=True, help="Make the big form: a folder PJ-… of its own, with workstreams.")
@common_options
@click.pass_obj
def command(output: Output, title: str, workstreams: bool) -> ExitCode:
    """Make a project here: jobs/ beside your code, and .donewhen/ for what is agreed and what was shown.

    \b
    donewhen init --title "Shop"
    donewhen add "Log in with a password" --verify "python -m pytest -q"
    """
    workspace = create_project(Path.cwd(), title, form="big" if workstreams else "small")
    project = workspace.project()
    output.say(f"{project.id}  {project.title}", bold=True)
    output.say(f"  {workspace.where(workspace.project_file)} and {workspace.folder.name}/ in {workspace.root}")
    output.say('  next: donewhen add "What has to be done"', dim=True)
    data = {"project": project.id, "root": str(workspace.root), "form": workspace.form}
    return output.finish(ExitCode.PASS, data)
