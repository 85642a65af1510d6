"""Resting honestly: blocked for a reason, or waiting for an answer."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, job_argument, project_option
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.rest import record_dispute as dispute_refusal
from donewhen.jobs.lifecycle.rest import set_job_aside


@click.command()
@job_argument
@click.option("--reason", required=True, help="What is in the way; it is kept.")
@project_option
@common_options
@click.pass_obj
def block(output: Output, job: str, reason: str, project: Path | None) -> ExitCode:
    """Set JOB aside, with what is in the way. An agent may stop then: that is honest, where pretending is not."""
    return _rest(output, job, project, reason=reason)


@click.command()
@job_argument
@click.option("--question", required=True, help="What a person has to answer.")
@project_option
@common_options
@click.pass_obj
def ask(output: Output, job: str, question: str, project: Path | None) -> ExitCode:
    """Ask a person about JOB. An agent may stop and wait for the answer."""
    return _rest(output, job, project, question=question)


@click.command()
@job_argument
@click.option("--reason", required=True, help="Why the refusal is wrong; a person reads it.")
@project_option
@common_options
@click.pass_obj
def dispute(output: Output, job: str, reason: str, project: Path | None) -> ExitCode:
    """Disagree with the refusal to complete JOB. People decide, criterion by criterion; an agent may stop and wait."""
    workspace = find_project(project)
    entry = dispute_refusal(workspace, job, unproved_actor(), reason)
    found = workspace.job(job)
    criteria = entry.data["value"]["criteria"]
    output.say(f"{found.id}  {found.title}", bold=True)
    output.say(f"  disputed: {', '.join(criteria)}: {entry.data['reason']}", fg="yellow")
    output.say("  next, for a person: donewhen review", dim=True)
    data = {"job": found.id, "status": found.status, "criteria": criteria, "reason": entry.data["reason"]}
    return output.finish(ExitCode.PASS, data)


def _rest(output: Output, job: str, project: Path | None, *, reason: str = "", question: str = "") -> ExitCode:
    workspace = find_project(project)
    entry = set_job_aside(workspace, job, unproved_actor(), reason=reason, question=question)
    found = workspace.job(job)
    output.say(f"{found.id}  {found.title}", bold=True)
    output.say(f"  {found.status}: {entry.data['reason']}", fg="yellow")
    step = "answer it" if question else "clear it away"
    output.say(f"  next, for a person: {step}, then donewhen start {found.id}", dim=True)
    return output.finish(ExitCode.PASS, {"job": found.id, "status": found.status, **dict(entry.data)})
