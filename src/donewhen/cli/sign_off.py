"""A person's word for what no command can show."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import approver_options, asked_for_approval, project_option, workspace_at
from donewhen.cli._output import Finding, Output
from donewhen.cli.decide import tell
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.board.views import refresh
from donewhen.jobs.gates.evidence_status import manual_need, sign_off
from donewhen.jobs.ledger.finding_codes import FindingCode


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
    """Sign off a criterion of JOB that is checked by hand. It holds until the job's outputs change.

    \b
    donewhen sign-off WI-20260214-001 --criterion AC-2 --reason "Looked at it on a phone."
    """
    workspace = workspace_at(project)
    found = workspace.job(job)
    output.say(f"{found.id}  {criterion}: {manual_need(found, criterion).text}", bold=True)
    approval = asked_for_approval(output, "sign this off", key=key, ci=ci)
    if approval is None:
        return output.fail(
            ExitCode.GATE_FAILED, Finding(FindingCode.NOT_DECIDED, "That was another word; nothing was signed off.")
        )
    signed = sign_off(workspace, found, criterion, reason, approval)
    refresh(workspace, workspace.job_at(found.path))
    return tell(output, signed)
