"""`donewhen reward`, `truth-eval` and `next`: the score, the criteria and the next command of a job."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from donewhen.cli._app import common_options
from donewhen.cli._gates import (
    evaluation_data,
    exit_code,
    gate_findings,
    score_data,
    show_gates,
    show_score,
    show_state,
    show_words_of_people,
    state_data,
)
from donewhen.cli._jobs import find_project, job_argument, project_option
from donewhen.cli._output import Finding, Output
from donewhen.cli._script_flags import script_flags
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.jobs.gates.job_view import JobView, plan_note
from donewhen.jobs.gates.score import score_words
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.protocols import ReasonCode


class _Told(NamedTuple):
    """The result for one job."""

    status: ExitCode
    data: dict[str, Any]
    findings: list[Finding]


@click.command()
@partial(job_argument, optional=True)
@script_flags("--no-sync", "--no-dashboard", values=("--out-json", "--out-md"))
@click.option("--explain", is_flag=True, help="Show every component: points, maximum, reason.")
@project_option
@common_options
@click.pass_obj
def reward(output: Output, job: str | None, explain: bool, project: Path | None) -> ExitCode:
    """Compute the score of JOB (default: every job that is not cancelled) and write it to the plan.

    The score alone never completes a job: the other gates must pass, too. Exit status 1 if it is below the target.
    """

    def on_progress(found: JobView) -> _Told:
        score, target = found.evaluation.score, found.job.reward_target
        output.say(f"{found.job.id}  {score_words(score.total, target)}", bold=True)
        if explain:
            show_score(output, score)
        output.say(f"  {plan_note(found.evaluation, found.state)}", dim=True)
        evaluated = evaluation_data(found.evaluation, found.state)
        data = {"job": found.job.id, "target": target, **evaluated, "score": score_data(score)}
        low = [finding for finding in gate_findings(found.evaluation) if finding.code == GateCode.SCORE_TOO_LOW]
        return _Told(exit_code(found.evaluation, score.total >= target), data, low)

    return _each(output, job, project, on_progress, collecting=False)


@click.command()
@partial(job_argument, optional=True)
@script_flags("--no-sync", "--no-dashboard")
@project_option
@common_options
@click.pass_obj
def truth(output: Output, job: str | None, project: Path | None) -> ExitCode:
    """Run stale checks and evaluate each criterion of JOB (default: of every job that is not cancelled)."""

    def on_progress(found: JobView) -> _Told:
        gate = found.evaluation.truth
        output.say(f"{found.job.id}  truth: {'pass' if gate.passed else 'fail'}", bold=True)
        for reason in gate.reasons:
            output.say(f"  ✗ [{reason.code}] {reason.message}", fg="red")
        data = {
            "job": found.job.id,
            **state_data(found.state),
            "status": "pass" if gate.passed else "fail",
            "mode": found.job.truth_mode,
            "failures": [reason._asdict() for reason in gate.reasons],
        }
        findings = [Finding(reason.code, reason.message, reason.where, gate.next) for reason in gate.reasons]
        return _Told(exit_code(found.evaluation, gate.passed), data, findings)

    return _each(output, job, project, on_progress, collecting=True)


@click.command()
@click.argument("job", required=False)
@project_option
@common_options
@click.pass_obj
def next_(output: Output, job: str | None, project: Path | None) -> ExitCode:
    """Print the next command: for JOB, for the job in progress, or to start a job."""
    from donewhen.jobs.board.survey import survey_jobs
    from donewhen.jobs.lifecycle.invalidation import mark_invalid_jobs
    from donewhen.jobs.lifecycle.planning import startable_jobs

    workspace = find_project(project)
    if job is None:
        seen = mark_invalid_jobs(workspace, survey_jobs(workspace))
        working = [job.id for job in seen.jobs if job.recorded == "in_progress"]
        waiting = startable_jobs(seen)
        job = working[0] if working else None
        if job is None:
            step = f"donewhen start {waiting[0]}" if waiting else "donewhen status"
            if not waiting:
                output.say("No job is in progress, and none can start now.")
            output.say(step)
            return output.finish(ExitCode.PASS, {"job": None, "next": step, "ready": list(waiting)})
    found = _looked_at(output, job, project, collecting=False)
    output.say(f"{found.job.id}  {found.job.title}", bold=True)
    show_gates(output, found.evaluation, done=found.done)
    show_words_of_people(output, found.words_of_people)
    show_state(output, found.state)
    data = {**evaluation_data(found.evaluation, found.state), "from_people": list(found.words_of_people)}
    return output.finish(ExitCode.PASS, {"job": found.job.id, **data})


def _each(
    output: Output,
    job: str | None,
    project: Path | None,
    on_progress: Callable[[JobView], _Told],
    *,
    collecting: bool,
) -> ExitCode:
    """Report on one job or on all. With all, unreadable jobs are added to the findings and skipped."""
    if job is not None:
        report = on_progress(_looked_at(output, job, project, collecting=collecting))
        return output.finish(*report)
    workspace = find_project(project)
    lines: list[_Told] = []
    findings: list[Finding] = []
    for place in workspace.places():
        try:
            if workspace.job_at(place.path).status != "cancelled":
                lines.append(on_progress(_looked_at(output, place.id, project, collecting=collecting)))
        except DonewhenError as error:
            findings.append(Finding.of(error))
            output.say(f"✗ {error.where}: {error.message}", fg="red")
    if not lines and not findings:
        output.say("There are no jobs. Zero checks is not a pass.", fg="red")
        findings.append(Finding(ReasonCode.NO_JOB, "There are no jobs.", str(workspace.root), "donewhen add TITLE"))
    statuses = [report.status for report in lines] + ([ExitCode.GATE_FAILED] if findings else [])
    data = {"jobs": [report.data for report in lines]}
    return output.finish(
        max(statuses, default=ExitCode.PASS), data, [*findings, *(f for report in lines for f in report.findings)]
    )


def _looked_at(output: Output, job: str, project: Path | None, *, collecting: bool) -> JobView:
    workspace = find_project(project)
    with output.progress("evaluating") as show:
        return evaluate_and_record(
            workspace,
            job,
            unproved_actor(),
            collecting=collecting,
            on_progress=lambda requirement: show(requirement.evidence),
        )
