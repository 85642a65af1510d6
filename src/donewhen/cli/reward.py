"""The score, the truth, and the next action of a job."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._gates import evaluation_data, exit_code, gate_findings, score_data, show_gates, show_score
from donewhen.cli._jobs import job_argument, project_option, workspace_at
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.approval import somebody
from donewhen.jobs.gates.result import GateCode
from donewhen.jobs.lifecycle import Evaluated, look_at


@click.command()
@job_argument
@click.option("--explain", is_flag=True, help="Every component: points got, points possible, and why.")
@project_option
@common_options
@click.pass_obj
def reward(output: Output, job: str, explain: bool, project: Path | None) -> ExitCode:
    """Compute the score of JOB from what is objectively there, and write it into the plan.

    The score never decides alone: the other gates stand beside it. Exit status 1 while it is below the target.
    """
    found = _looked_at(output, job, project, collecting=False)
    score, target = found.evaluation.score, found.job.reward_target
    output.say(f"{found.job.id}  {score.total} of 100, {target} asked for", bold=True)
    if explain:
        show_score(output, score)
    output.say(f"  next: {found.evaluation.next_action}", dim=True)
    findings = gate_findings(found.evaluation)
    reached = score.total >= target
    data = {"job": found.job.id, "target": target, **evaluation_data(found.evaluation), "score": score_data(score)}
    low = [one for one in findings if one.code == GateCode.SCORE_TOO_LOW]
    return output.finish(exit_code(found.evaluation, reached), data, low)


@click.command()
@job_argument
@project_option
@common_options
@click.pass_obj
def truth(output: Output, job: str, project: Path | None) -> ExitCode:
    """Run what is stale and decide whether JOB is truthfully done, criterion by criterion."""
    found = _looked_at(output, job, project, collecting=True)
    gate = found.evaluation.truth
    output.say(f"{found.job.id}  truth: {'pass' if gate.passed else 'fail'}", bold=True)
    for reason in gate.reasons:
        output.say(f"  ✗ [{reason.code}] {reason.message}", fg="red")
    findings = [Finding(one.code, one.message, one.where, gate.next) for one in gate.reasons]
    data = {
        "job": found.job.id,
        "status": "pass" if gate.passed else "fail",
        "mode": found.job.truth_mode,
        "failures": [reason._asdict() for reason in gate.reasons],
    }
    return output.finish(exit_code(found.evaluation, gate.passed), data, findings)


@click.command()
@click.argument("job", required=False)
@project_option
@common_options
@click.pass_obj
def next_(output: Output, job: str | None, project: Path | None) -> ExitCode:
    """Say the one next thing to do: for JOB, for the job in progress, or which job to start."""
    from donewhen.jobs.planning import ready
    from donewhen.jobs.survey import survey

    workspace = workspace_at(project)
    if job is None:
        seen = survey(workspace)
        working = [one.id for one in seen.jobs if one.status == "in_progress"]
        waiting = ready(seen.jobs).now
        job = working[0] if working else None
        if job is None:
            step = f"donewhen start {waiting[0]}" if waiting else "donewhen status"
            output.say(step)
            return output.finish(ExitCode.PASS, {"job": None, "next": step, "ready": list(waiting)})
    found = _looked_at(output, job, project, collecting=False)
    step = found.evaluation.next or f"donewhen complete {found.job.id}"
    output.say(f"{found.job.id}  {found.job.title}", bold=True)
    show_gates(output, found.evaluation)
    output.say(f"next: {step}", bold=True)
    return output.finish(ExitCode.PASS, {"job": found.job.id, "next": step, **evaluation_data(found.evaluation)})


def _looked_at(output: Output, job: str, project: Path | None, *, collecting: bool) -> Evaluated:
    workspace = workspace_at(project)
    with output.progress("looking"):
        return look_at(workspace, job, somebody(), collecting=collecting)
