"""`donewhen log`: print the ledger."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.jobs.board.entry_text import entry_text
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import (
    Agreed,
    ChangesAccepted,
    ChangesRefused,
    Decided,
    Disputed,
    Evaluated,
    GuidanceAccepted,
    JudgeRun,
    Overridden,
    Ran,
    Reviewed,
    SignedOff,
    SignsAccepted,
    SignsRefused,
    TermsDecided,
)

_MAX_LISTED = 3


@click.command()
@click.argument("job", required=False)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Show at most N entries, the newest.",
)
@project_option
@common_options
@click.pass_obj
def command(output: Output, job: str | None, limit: int, project: Path | None) -> ExitCode:
    """Print the ledger of JOB, or of the project and all jobs, oldest first."""
    workspace = find_project(project)
    ledger = workspace.ledger
    chains = ledger.chains()
    names = chains if job is None else (job,) if job in chains else (workspace.place(job).id,)
    entries = [(entry.at, name, entry) for name in names for entry in ledger.read(name).entries]
    # Entries of one chain keep their order; entries of different chains are ordered by time.
    entries.sort(key=lambda row: row[0])
    shown = entries[-limit:]
    for _, name, entry in shown:
        who = f"{entry.who} ({entry.by.kind})"
        output.say(f"{entry.at}  {name}  #{entry.seq} {entry.type.ljust(11)} {who}  {_entry_line(entry)}")
    if not shown:
        output.say("The ledger is empty.")
    elif len(entries) > len(shown):
        output.say(f"({len(entries) - len(shown)} older; -n shows more)", dim=True)
    rows = [{"chain": name, **entry.as_dict()} for _, name, entry in shown]
    return output.finish(ExitCode.PASS, {"entries": rows, "total": len(entries)})


def _entry_line(entry: Entry) -> str:
    match entry.content:
        case Agreed() as agreed:
            return one_line(f"{agreed.how}: {agreed.hash[:19]}…")
        case JudgeRun() as run:
            return one_line(f"{run.criterion}: {run.told}", 300)
        case Ran() as run:
            return one_line(f"{'passed' if run.passed else 'failed'}: {run.evidence}")
        case Overridden() as override:
            return one_line(f"{override.criterion}: {override.verdict} {override.reason}", 300)
        case Decided() as decided:
            what = f"{decided.decision}{_value(decided)}"
            return one_line(f"{what}: {decided.reason}" if decided.reason else what)
        case Evaluated(gates=dict(gates)):
            codes = dict.fromkeys(code for reasons in gates.values() for code in reasons)
            return one_line(f"{entry_text(entry)} ({', '.join(codes)})" if codes else entry_text(entry), 300)
        case _:
            return entry_text(entry)


def _value(decided: Decided) -> str:
    """The value of a decision in a word or two."""
    match decided:
        case TermsDecided() if decided.value is not None:
            return f" {decided.value}"
        case SignedOff():
            return f" {decided.value.criterion}"
        case Disputed():
            return f" {', '.join(decided.value.criteria)}"
        case GuidanceAccepted():
            return f" {decided.value.mission}"
        case Reviewed():
            return f" {decided.value.mission} {decided.value.verdict}"
        case ChangesAccepted() | ChangesRefused() | SignsAccepted() | SignsRefused():
            return f" {join_limited([*decided.value.files], _MAX_LISTED)}"
        case _:
            return ""
