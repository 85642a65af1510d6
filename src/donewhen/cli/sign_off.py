"""`donewhen sign-off`: sign off a criterion that is checked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import approver_options, ask_for_approval, find_project, not_confirmed, project_option
from donewhen.cli._output import Output
from donewhen.cli.decide import show_decision
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.gates.evidence_status import (
    EvidenceStatus,
    evidence_statuses,
    requirement_to_sign_off,
    sign_off,
)
from donewhen.jobs.lifecycle.project_criteria import project_criterion_to_sign_off, sign_off_project


@click.command()
@click.argument("job")
@click.option("--criterion", required=True, metavar="ID", help="The criterion that is met, such as AC-2.")
@click.option("--reason", required=True, help="What you saw.")
@approver_options
@project_option
@common_options
@click.pass_obj
def command(
    output: Output, job: str, criterion: str, reason: str, key: Path | None, ci: bool, project: Path | None
) -> ExitCode:
    """Sign off a criterion of JOB that is checked by hand. It is valid until the job's outputs change.

    A criterion that is met, but with weaker evidence than the contract asks for, is accepted in the same way: that is
    valid until the work changes.

    JOB may be the project, for a criterion of its own with `check: manual`: that is valid until the work changes.

    \b
    donewhen sign-off WI-20260214-001 --criterion AC-2 --reason "Looked at it on a phone."
    """
    workspace = find_project(project)
    whole = job == workspace.project().id
    if whole:
        found, requirement = project_criterion_to_sign_off(workspace, criterion)
    else:
        found = workspace.job(job)
        requirement = requirement_to_sign_off(workspace, found, criterion)
    output.say(f"{found.id}  {criterion}: {requirement.text}", bold=True)
    if requirement.check.kind != "manual":
        _show_weak(output, evidence_statuses(workspace, found), criterion)
    approval = ask_for_approval(output, "sign this off", key=key, ci=ci)
    if approval is None:
        return not_confirmed(output, "Nothing was signed off.")
    if whole:
        signed = sign_off_project(workspace, criterion, reason, approval)
    else:
        signed = sign_off(workspace, found, criterion, reason, approval)
    return show_decision(output, signed)


def _show_weak(output: Output, statuses: Sequence[EvidenceStatus], criterion: str) -> None:
    """Show the evidence that is to be accepted, and why it is weaker than needed."""
    for status in statuses:
        if status.requirement.name == criterion:
            output.say(f"  checked by: {status.requirement.evidence}")
            for reason in status.why:
                output.say(f"    {reason}", fg="yellow")
