"""`donewhen dispute`: disagree with a refusal, so that a person decides."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, job_argument, project_option
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.entry_content import Disputed
from donewhen.jobs.lifecycle.setting_aside import record_dispute


@click.command()
@job_argument
@click.option("--reason", required=True, help="Why the refusal is wrong. A person reads it.")
@project_option
@common_options
@click.pass_obj
def command(output: Output, job: str, reason: str, project: Path | None) -> ExitCode:
    """Dispute the refusal to complete JOB. A person decides each criterion; an agent may stop and wait."""
    workspace = find_project(project)
    entry = record_dispute(workspace, job, unproved_actor(), reason)
    disputed = workspace.job(job)
    dispute = entry.read_as(Disputed)
    criteria = dispute.value.criteria
    output.say(f"{disputed.id}  {disputed.title}", bold=True)
    output.say(f"  disputed: {', '.join(criteria)}: {dispute.reason}", fg="yellow")
    output.say("  next, for a person: donewhen review", dim=True)
    data = {"job": disputed.id, "status": disputed.status, "criteria": criteria, "reason": dispute.reason}
    return output.finish(ExitCode.PASS, data)
