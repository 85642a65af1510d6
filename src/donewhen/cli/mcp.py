"""`donewhen mcp`: serve tools for agents."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from donewhen.cli._jobs import project_option
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode


@click.command()
@project_option
@click.pass_obj
def command(output: Output, project: Path | None) -> ExitCode:
    """Serve the jobs of one project to agents, over the Model Context Protocol on stdin and stdout.

    An agent's runtime starts this. Agents can look at jobs, let the gate run what they have to show, complete them and
    ask a person. Nothing here agrees, signs off, decides or sets a verdict, and all of it is recorded as an agent's.
    """
    from donewhen.mcp.server import serve

    if sys.stdin.isatty():
        output.note("Runtimes of agents start this and talk to it here; to end it, press Ctrl-D.")
    serve((Path.cwd() if project is None else project).resolve())
    return ExitCode.PASS
