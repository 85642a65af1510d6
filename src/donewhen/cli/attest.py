"""`donewhen attest`: create and check receipts that others can verify."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import PASSPHRASE, find_project, passphrase_for, project_option
from donewhen.cli._output import Finding, Output, harmless_text
from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.jobs.receipts.attestation import AttestationError
from donewhen.jobs.receipts.attestation_check import State, check_attestation
from donewhen.jobs.receipts.attestation_file import MAX_BYTES, AttestationFormError, read_attestation

_MARKS: dict[State, tuple[str, str]] = {"holds": ("✓", "green"), "open": ("?", "yellow"), "broken": ("✗", "red")}
_STATUS = {"holds": ExitCode.PASS, "open": ExitCode.INTERNAL, "broken": ExitCode.GATE_FAILED}
_TOLD = {
    "holds": "Valid, and signed by a trusted key.",
    "open": "Unverified: valid, but not signed by a trusted key.",
    "broken": "Invalid.",
}


class _JobOrVerb(click.Group):
    """Treat `attest JOB` as `attest job JOB`: a first word that is not a subcommand is a job."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["job", *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["{JOB [OPTIONS] | verify FILE [OPTIONS]}"]


@click.group(cls=_JobOrVerb)
def command() -> None:
    """Create a receipt that others can verify, or check one.

    `donewhen attest JOB` writes an in-toto Statement about a completed job: the hashes of its outputs, the contract,
    the evidence for each criterion, and the job's ledger chain. `donewhen attest verify FILE` checks such a file
    without the workspace.

    \b
    donewhen attest 001 --out receipt.json
    donewhen attest 001 --key release.pem --out receipt.json
    donewhen attest verify receipt.json --key ed25519:… --files .
    """


@command.command("job")
@click.argument("job", metavar="JOB")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to FILE instead of stdout."
)
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"Sign with this key. The passphrase is read from {PASSPHRASE}, or asked for.",
)
@project_option
@common_options
@click.pass_obj
def attest(output: Output, job: str, out: Path | None, key: Path | None, project: Path | None) -> ExitCode:
    """Attest that JOB is done. Short form: `donewhen attest JOB`.

    Fails without writing anything if the completion is no longer valid or an output has changed. With --key, the
    statement is written as a signed DSSE envelope.
    """
    from donewhen.jobs.receipts.attesting import attest_job

    workspace = find_project(project)
    try:
        with output.progress("attesting"):
            statement = attest_job(workspace, job)
    except AttestationError as error:
        finding = Finding(error.finding, error.message, error.where, error.next_step)
        return output.fail(ExitCode.GATE_FAILED, finding)
    document = _readable(statement) if key is None else _signed(statement, key)
    if out is not None:
        _write(out, document)
        output.say(f"{statement['predicate']['job']}: {len(statement['subject'])} subject(s), {out}")
        output.say(f"  receipt: {statement['predicate']['receipt']}", dim=True)
        if key is None:
            output.say("  not signed; sign it with --key", dim=True)
    elif not output.json:
        click.echo(document, nl=False)
    data = {
        "job": statement["predicate"]["job"],
        "receipt": statement["predicate"]["receipt"],
        "signed": key is not None,
        "path": None if out is None else str(out),
        **({"attestation": json.loads(document)} if out is None else {}),
    }
    return output.finish(ExitCode.PASS, data)


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="A public key that you trust: ed25519:…, or a PEM file. One valid signature is enough.",
)
@click.option(
    "--files",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Compare the files in DIR with the attested hashes.",
)
@click.option("--job", metavar="WI-…", help="The job that the attestation must be about.")
@common_options
@click.pass_obj
def verify(output: Output, file: Path, keys: tuple[str, ...], files: Path | None, job: str | None) -> ExitCode:
    """Check an attestation. FILE may be - for standard input. No workspace, git or network is needed.

    Exit status: 0 if it is valid and signed by a trusted key; 3 if it is valid, but not signed by a trusted key; 1 if
    it is invalid; 2 if it can't be read.
    """
    from donewhen.jobs.ledger.signing import public_key

    trusted = [public_key(key) for key in keys]
    try:
        attestation = read_attestation(_content(file))
    except AttestationFormError as error:
        return output.fail(ExitCode.USAGE, Finding(error.code, error.message, str(file), error.next_step))
    verdict = check_attestation(attestation, keys=trusted, files=files, job=job)
    output.say(f"{attestation.claims.job}  {attestation.claims.title}", bold=True)
    for line in verdict.lines:
        mark, color = _MARKS[line.state]
        output.say(f"  {mark} {line.check}: {line.told}{f' [{line.code}]' if line.code else ''}", fg=color)
    output.say(_TOLD[verdict.state], bold=True)
    findings = [
        Finding(line.code, f"{line.told}.", str(file), line.next) for line in verdict.lines if line.code is not None
    ]
    worst = [line.next for line in sorted(verdict.lines, key=lambda line: line.state != "broken") if line.next]
    if worst:
        output.say(f"  next: {worst[0]}", dim=True)
    data = {
        "job": attestation.claims.job,
        "state": "unverified" if verdict.state == "open" else verdict.state,
        "signed_by": list(verdict.signed_by),
        "checks": [{"check": line.check, "state": line.state, "told": line.told} for line in verdict.lines],
    }
    return output.finish(_STATUS[verdict.state], data, findings)


def _readable(statement: dict[str, Any]) -> bytes:
    """The statement as indented JSON that is safe to print."""
    return harmless_text(json.dumps(statement, indent=2)).encode() + b"\n"


def _signed(statement: dict[str, Any], key: Path) -> bytes:
    from donewhen.jobs.ledger.signing import open_key
    from donewhen.jobs.receipts.dsse import sign_envelope

    public, sign = open_key(key, passphrase_for(key))
    return sign_envelope(canonical_json(statement), public, sign)


def _write(path: Path, document: bytes) -> None:
    from donewhen.foundation.files import write_atomically

    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise UsageError("The path exists and is not a regular file.", where=str(path))
        write_atomically(path, document)
    except OSError as error:
        raise UsageError(f"The attestation can't be written: {error.strerror}.", where=str(path)) from error


def _content(file: Path) -> bytes:
    """Read at most one byte more than the size limit, so that a larger file is detected."""
    if str(file) == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"The file can't be read: {error.strerror}.", where=str(file)) from error
