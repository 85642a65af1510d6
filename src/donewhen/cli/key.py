"""`donewhen key`: create and show keys for agreeing and signing."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import passphrase_for
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.ledger.signing import create_key_file, key_id, open_key, public_pem


@click.group()
def command() -> None:
    """Create and show keys: for agreeing without a terminal, and for signing attestations."""


@command.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@common_options
@click.pass_obj
def new(output: Output, path: Path) -> ExitCode:
    """Create an ed25519 key protected by a passphrase.

    Prints the public key: for `approval.keys` in donewhen.toml, or for those who verify its signatures.
    """
    public = create_key_file(path, passphrase_for(path, confirm=True))
    output.say(public)
    output.say('  next: add it to donewhen.toml ([approval] keys = ["…"]), then: donewhen agree', dim=True)
    return output.finish(ExitCode.PASS, {"key": public, "path": str(path)})


@command.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--pem", is_flag=True, help="Print it as PEM, for other programs.")
@common_options
@click.pass_obj
def show(output: Output, path: Path, pem: bool) -> ExitCode:
    """Print the public key.

    \b
    donewhen key show release.pem
    donewhen key show release.pem --pem > release.pub
    """
    public, _ = open_key(path, passphrase_for(path))
    for line in public_pem(public).splitlines() if pem else [public]:
        output.say(line)
    return output.finish(ExitCode.PASS, {"key": public, "keyid": key_id(public), "pem": public_pem(public)})
