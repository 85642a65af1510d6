"""Keys that may agree."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import passphrase_for
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.signing import new_key, opened


@click.group()
def command() -> None:
    """Make and look at keys, with which one agrees where there is no terminal of one's own."""


@command.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@common_options
@click.pass_obj
def new(output: Output, path: Path) -> ExitCode:
    """Make an ed25519 key under a passphrase, and print its public half for `approval.keys` in donewhen.toml."""
    public = new_key(path, passphrase_for(path, confirm=True))
    output.say(public)
    output.say('  next: put it into donewhen.toml ([approval] keys = ["…"]), and let a person agree', dim=True)
    return output.finish(ExitCode.PASS, {"key": public, "path": str(path)})


@command.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@common_options
@click.pass_obj
def show(output: Output, path: Path) -> ExitCode:
    """Print the public half of a key."""
    public, _ = opened(path, passphrase_for(path))
    output.say(public)
    return output.finish(ExitCode.PASS, {"key": public})
