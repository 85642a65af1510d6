"""`donewhen uninit`: take back what init has written."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import ExitCode


@click.command()
@click.option("--purge", is_flag=True, help="Also delete all jobs, the ledger and the evidence.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, without removing it.")
@common_options
@click.pass_obj
def command(output: Output, purge: bool, yes: bool, dry_run: bool) -> ExitCode:
    """Remove donewhen from this folder: its hooks, its settings and its lines in other files.

    Files get back the bytes that they had before `donewhen init`. What somebody has changed since stays, and is
    reported. Jobs, the ledger and the evidence stay as well, except with --purge. Hooks in your own settings
    (`donewhen hooks install --user`) are not touched.
    """
    from donewhen.setup.removing import remove_setup

    root = Path.cwd()
    asks = sys.stdin.isatty() and not output.json
    removal = remove_setup(root, CALLER_VARIABLES, purge=purge, dry_run=True)
    if removal.removed and not (yes or dry_run):
        for name in removal.removed:
            output.say(f"- {name}", fg="red")
        if not asks:
            finding = Finding(
                "not_confirmed", "Nothing was removed: nobody can be asked here.", next="Give --yes to remove it."
            )
            return output.fail(ExitCode.USAGE, finding)
        if not click.confirm("Remove this?", default=not purge, err=True):
            return output.fail(ExitCode.GATE_FAILED, Finding("not_confirmed", "Nothing was removed."))
    if not dry_run:
        removal = remove_setup(root, CALLER_VARIABLES, purge=purge)
    for name in removal.removed:
        output.say(f"{'would remove' if dry_run else 'removed'}: {name}", fg=None if dry_run else "green")
    for name, reason in removal.kept:
        output.say(f"kept: {name} ({reason})")
    if not removal.removed:
        output.say("There is nothing of donewhen to remove here.")
    data = {
        "removed": removal.removed,
        "kept": [{"path": name, "reason": reason} for name, reason in removal.kept],
        "dry_run": dry_run,
    }
    return output.finish(ExitCode.PASS, data)
