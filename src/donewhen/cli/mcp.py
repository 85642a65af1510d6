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

    Agent runtimes start this command. Agents can list jobs, run checks, complete jobs and ask a person. They can't
    agree, sign off, decide or give verdicts, and everything they do is recorded as an agent's action.
    """
    from donewhen.mcp.server import serve

    if sys.stdin.isatty():
        output.note(
            "This command is for agent runtimes: it reads requests from standard input. Press Ctrl-D to end it."
        )
    serve((Path.cwd() if project is None else project).resolve())
    return ExitCode.PASS
