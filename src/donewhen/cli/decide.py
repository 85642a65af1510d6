"""`donewhen decide`: record a decision about a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import (
    approver_options,
    ask_for_approval,
    find_project,
    not_confirmed,
    project_option,
    uncounted_finding,
)
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.jobs.contract.decisions import Decision, DecisionKind, DecisionRecord, decide
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.lifecycle.cancelling import effects_of_cancelling
from donewhen.jobs.plan.job import STAKES


@click.command()
@click.argument("job")
@click.option("--raise-budget", type=click.IntRange(min=1), metavar="N", help="Allow N iterations in total.")
@click.option("--rescope", is_flag=True, help="The job will be agreed again with other criteria.")
@click.option("--split", is_flag=True, help="The job will be split into others.")
@click.option(
    "--stakes",
    type=click.Choice(STAKES),
    help="Change the stakes; also changes target and budget, unless they were set.",
)
@click.option("--target", type=click.IntRange(0, 100), metavar="N", help="Change the target score.")
@click.option("--cancel", is_flag=True, help="Cancel the job.")
@click.option("--reason", required=True, help="The reason. Recorded in the ledger.")
@approver_options
@project_option
@common_options
@click.pass_obj
def command(
    output: Output,
    job: str,
    raise_budget: int | None,
    rescope: bool,
    split: bool,
    stakes: str | None,
    target: int | None,
    cancel: bool,
    reason: str,
    key: Path | None,
    ci: bool,
    project: Path | None,
) -> ExitCode:
    """Record a decision about JOB and apply it.

    Only a person can decide. A decision by an agent is recorded as a proposal.

    \b
    donewhen decide WI-20260214-001 --raise-budget 6 --reason "The API changed under us."
    """
    given: dict[DecisionKind, Any] = {
        "raise_budget": raise_budget,
        "rescope": rescope or None,
        "split": split or None,
        "stakes": stakes,
        "target": target,
        "cancel": cancel or None,
    }
    chosen = {kind: value for kind, value in given.items() if value is not None}
    if len(chosen) != 1:
        raise UsageError("Give exactly one of --raise-budget, --rescope, --split, --stakes, --target or --cancel.")
    kind, value = next(iter(chosen.items()))
    workspace = find_project(project)
    found = workspace.job(job)
    decision = Decision(kind, reason, None if value is True else value)
    summary = kind.replace("_", " ") + ("" if value is True else f" {value}")
    output.say(f"{found.id}  {found.title}", bold=True)
    output.say(f"  {summary}: {reason}")
    for effect in effects_of_cancelling(workspace, found) if kind == "cancel" else ():
        output.say(f"  ! {effect}", fg="yellow")
    approval = ask_for_approval(output, "decide this", key=key, ci=ci)
    if approval is None:
        return not_confirmed(output, "Nothing was decided.")
    decided = decide(workspace, found, decision, approval)
    return show_decision(output, decided)


def show_decision(output: Output, decided: DecisionRecord) -> ExitCode:
    """Print the recorded decision and whether it counts."""
    entry = decided.entry
    data = {
        "decision": dict(entry.data),
        "by": entry.by._asdict(),
        "counts": decided.counts,
        "entry": entry.hash,
        "changed": dict(decided.writes),
    }
    if decided.counts:
        for name, value in decided.writes.items():
            output.say(f"  {name}: {value}")
        output.say(f"  decided by {entry.who} ({entry.by.kind})", fg="green")
        return output.finish(ExitCode.PASS, data)
    finding = uncounted_finding(
        Approval(entry.by, why=entry.content.unproved), "decision", "A person has to decide it at a terminal."
    )
    output.say(f"  {finding.message}", fg="yellow")
    return output.finish(ExitCode.GATE_FAILED, data, [finding])
