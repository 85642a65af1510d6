"""Shared by `block` and `ask`: block a job and print the entry."""

from __future__ import annotations

from pathlib import Path

from donewhen.cli._jobs import find_project
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.entry_content import Decided
from donewhen.jobs.lifecycle.setting_aside import set_job_aside


def set_aside(output: Output, job: str, project: Path | None, *, reason: str = "", question: str = "") -> ExitCode:
    """Block a job with a reason or a question, and print the entry."""
    workspace = find_project(project)
    entry = set_job_aside(workspace, job, unproved_actor(), reason=reason, question=question)
    blocked = workspace.job(job)
    output.say(f"{blocked.id}  {blocked.title}", bold=True)
    output.say(f"  {blocked.status}: {entry.read_as(Decided).reason}", fg="yellow")
    output.say("  next, for a person: donewhen review", dim=True)
    return output.finish(ExitCode.PASS, {"job": blocked.id, "status": blocked.status, **dict(entry.data)})
