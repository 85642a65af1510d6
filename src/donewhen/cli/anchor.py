"""`donewhen anchor`: store the heads of the ledger in git notes."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.record.anchors import anchor_lines, write_note


@click.command()
@click.option("--trailer", is_flag=True, help="Only print the heads, as trailers for a commit message.")
@project_option
@common_options
@click.pass_obj
def command(output: Output, trailer: bool, project: Path | None) -> ExitCode:
    """Write the heads of the ledger into a git note (refs/notes/donewhen) on the current commit.

    A rewritten ledger no longer matches the note, and `donewhen audit` reports that. Push the notes to a remote that
    the agent can't rewrite: git push origin refs/notes/donewhen
    """
    workspace = find_project(project)
    ledger = workspace.ledger
    chains = {name: ledger.read(name) for name in ledger.chains()}
    heads = anchor_lines(chains)
    if trailer:
        for line in heads:
            output.say(line)
        return output.finish(ExitCode.PASS, {"heads": list(heads)})
    commit = write_note(workspace, chains)
    output.say(f"{len(heads)} head(s) noted on commit {commit[:10]}.")
    return output.finish(ExitCode.PASS, {"heads": list(heads), "commit": commit})
