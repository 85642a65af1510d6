"""`donewhen key`: create and show keys for agreeing and signing."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import passphrase_for
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.files import read_limited
from donewhen.foundation.size_limits import KEY
from donewhen.jobs.ledger.signing import create_key_file, has_passphrase, key_id, open_key, public_pem
from donewhen.jobs.ledger.ssh_keys import private_ssh_key, public_ssh_key


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
    """Print the public key: of donewhen's own key, or of an SSH key.

    \b
    donewhen key show release.pem
    donewhen key show release.pem --pem > release.pub
    """
    ssh = _public_ssh_key(path)
    if ssh is not None:
        if pem:
            raise UsageError("An SSH key has no PEM form here.", next_step=f"ssh-keygen -e -m PKCS8 -f {path}")
        output.say(ssh)
        output.say('  next: add it to donewhen.toml ([approval] ssh = ["…"]), then: donewhen agree', dim=True)
        return output.finish(ExitCode.PASS, {"key": ssh})
    public, _ = open_key(path, passphrase_for(path) if has_passphrase(path) else None)
    for line in public_pem(public).splitlines() if pem else [public]:
        output.say(line)
    return output.finish(ExitCode.PASS, {"key": public, "keyid": key_id(public), "pem": public_pem(public)})


def _public_ssh_key(path: Path) -> str | None:
    """The public key of an SSH key's file, which needs no passphrase; None if it is another file."""
    try:
        content = read_limited(path, KEY)
    except OSError:
        # A pipe can be read only once.
        return None
    private = private_ssh_key(content)
    public = (
        public_ssh_key(content.decode("utf-8", "replace").partition("\n")[0]) if private is None else private.public
    )
    if public is None:
        return None
    beside = path.with_name(f"{path.name}.pub")
    named = public_ssh_key(read_limited(beside, KEY).decode("utf-8", "replace")) if beside.is_file() else None
    comment = (named or public).comment
    return f"{public.text} {comment}".strip()
