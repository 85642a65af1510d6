"""`donewhen plan-check` and `donewhen ready`: check all plans, and list what can start."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.cli._script_flags import script_flags
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.board.board_states import survey_states
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.lifecycle.invalidation import mark_invalid_jobs
from donewhen.jobs.lifecycle.planning import check_plan, find_ready_jobs, startable_jobs


@click.command()
@script_flags("--strict")
@project_option
@common_options
@click.pass_obj
def check(output: Output, project: Path | None) -> ExitCode:
    """Check all plans together.

    Reports unreadable files, missing or circular dependencies, duplicate ids, edited fields, and jobs that are done
    although a dependency is not done or has changed.
    """
    workspace = find_project(project)
    with output.progress("reading the jobs"):
        seen = survey_jobs(workspace)
        problems = check_plan(workspace, seen, approval_policy(workspace))
    for problem in problems:
        output.say(f"✗ [{problem.code}] {problem.where}", fg="red", bold=True)
        output.say(f"  {problem.message}")
    output.say(f"{len(seen.jobs)} job(s), {len(problems)} problem(s).", bold=True)
    findings = [Finding(problem.code, problem.message, problem.where, _next(problem.code)) for problem in problems]
    return output.finish(ExitCode.GATE_FAILED if problems else ExitCode.PASS, {"jobs": len(seen.jobs)}, findings)


@click.command()
@project_option
@common_options
@click.pass_obj
def ready_(output: Output, project: Path | None) -> ExitCode:
    """List the jobs that can start now, the waves of all open jobs, and the critical path."""
    workspace = find_project(project)
    with output.progress("reading the jobs"):
        seen = mark_invalid_jobs(workspace, survey_jobs(workspace))
    found = find_ready_jobs(seen.jobs)
    startable = startable_jobs(seen)
    states = survey_states(seen)
    titles = {job.id: job.title for job in seen.jobs}
    for name in startable:
        output.say(f"  {name}  {titles[name]}")
    if not startable:
        output.say("Nothing can start now.")
        first = found.waves[0] if found.waves else ()
        for job in seen.jobs:
            if job.id in first:
                output.say(f"  {job.id}  {job.title}  ({states[job.id].word.replace('_', ' ')})")
    for number, wave in enumerate(found.waves, 1):
        output.say(f"wave {number}: {', '.join(wave)}", dim=True)
    if found.critical_path:
        output.say(f"critical path: {' → '.join(found.critical_path)} ({found.hours:g} h)", dim=True)
    data = {
        "ready": list(startable),
        "waves": [list(wave) for wave in found.waves],
        "critical_path": list(found.critical_path),
        "hours": found.hours,
    }
    return output.finish(ExitCode.PASS, data)


def _next(code: str) -> str | None:
    return FINDINGS[FindingCode(code)].next_step if code in FINDINGS else None
