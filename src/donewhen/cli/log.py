"""`donewhen log`: print the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.entry_text import entry_text
from donewhen.jobs.ledger.ledger import Entry


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
        who = f"{entry.by.name} ({entry.by.kind})"
        output.say(f"{entry.at}  {name}  #{entry.seq} {entry.type.ljust(11)} {who}  {_entry_line(entry)}")
    if not shown:
        output.say("The ledger is empty.")
    elif len(entries) > len(shown):
        output.say(f"({len(entries) - len(shown)} older; -n shows more)", dim=True)
    rows = [{"chain": name, **entry._asdict(), "by": entry.by._asdict()} for _, name, entry in shown]
    return output.finish(ExitCode.PASS, {"entries": rows, "total": len(entries)})


def _entry_line(entry: Entry) -> str:
    data: Mapping[str, Any] = entry.data
    match entry.type:
        case "agreed":
            return one_line(f"{data.get('how')}: {str(data.get('hash'))[:19]}…")
        case "ran" if data.get("what") == "judge":
            return one_line(f"{data.get('criterion')}: {data.get('told')}", 300)
        case "ran":
            return one_line(f"{'passed' if data.get('passed') else 'failed'}: {data.get('evidence')}")
        case "overridden":
            return one_line(f"{data.get('criterion')}: {data.get('verdict')} {data.get('reason', '')}", 300)
        case "decided":
            return one_line(f"{data.get('decision')}{_value(data.get('value'))}: {data.get('reason')}")
        case "completed" | "refused" | "evaluated" if isinstance(gates := data.get("gates"), Mapping):
            codes = dict.fromkeys(str(code) for found in gates.values() if isinstance(found, list) for code in found)
            return one_line(f"{entry_text(entry)} ({', '.join(codes)})" if codes else entry_text(entry), 300)
        case _:
            return entry_text(entry)


def _value(value: object) -> str:
    """The value of a decision in a word or two."""
    if isinstance(value, str | int):
        return f" {value}"
    if not isinstance(value, dict):
        return ""
    named = value.get("criterion") or value.get("mission") or ", ".join(value.get("criteria", ()))
    verdict = f" {value['verdict']}" if "verdict" in value else ""
    return f" {named}{verdict}"
