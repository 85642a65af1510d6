"""`donewhen status`: list all jobs with their status."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._gates import state_data
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.board_states import survey_states
from donewhen.jobs.board.job_state import JobState
from donewhen.jobs.board.survey import JobRecord, survey_jobs
from donewhen.jobs.board.waiting import WAITING, waiting_for_person
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.lifecycle.invalidation import mark_invalid_jobs

_SHOWN = 40
_RED = frozenset({"record_broken", "tampered", "voided", "no_longer_done"})
_YELLOW = frozenset({"not_agreed", "out_of_budget", "blocked", "asked", "disputed", "needs_person"})
_COLORS = {"done": "green", "completable": "green", "in_progress": "cyan", "cancelled": "bright_black"}


@click.command()
@click.option("--all", "everything", is_flag=True, help=f"List every job, not only the first {_SHOWN}.")
@project_option
@common_options
@click.pass_obj
def command(output: Output, everything: bool, project: Path | None) -> ExitCode:
    """Say what waits for you, then list the jobs with their state and the next step.

    Unreadable files are reported and skipped.

    No gates are evaluated, so changes since the last evaluation of a job are not seen, except that a done job is no
    longer done. Exit status 1 if there are problems.
    """
    workspace = find_project(project)
    with output.progress("reading the jobs"):
        found = mark_invalid_jobs(workspace, survey_jobs(workspace))
        states = survey_states(found)
    output.say(f"{found.project.id}  {found.project.title}  ({found.project_agreement})", bold=True)
    waiting = waiting_for_person(found, states)
    if waiting:
        output.say("Waits for you:", fg="yellow", bold=True)
        widest = max(len(group.text) for group in waiting)
        for group in waiting:
            output.say(f"  {group.text.ljust(widest)}  {group.next}", fg="yellow")
    shown = found.jobs if everything else found.jobs[:_SHOWN]
    for job in shown:
        _show(output, job, states[job.id])
    if len(found.jobs) > len(shown):
        output.say(f"({len(found.jobs) - len(shown)} more; --all lists them)", dim=True)
    for problem in found.problems:
        output.say(f"✗ {problem.where}: {problem.message}", fg="red")
    counts = Counter(job.status for job in found.jobs)
    shown_counts = Counter(_counted(job, states[job.id]) for job in found.jobs)
    output.say(
        ", ".join(f"{count} {name}" for name, count in sorted(shown_counts.items())) or "There are no jobs yet.",
        bold=True,
    )
    findings = [Finding(problem.code, problem.message, problem.where) for problem in found.problems] + [
        Finding(
            FindingCode.TAMPERED,
            f"{job.id}: {miss.field} says {miss.found!r}, but the ledger says {miss.expected!r}.",
            workspace.where(job.path),
            "donewhen audit",
        )
        for job in found.jobs
        for miss in job.tampered
    ]
    data = {
        "project": found.project.id,
        "agreement": found.project_agreement,
        "counts": dict(counts),
        "waiting": [{"what": group.what, "jobs": list(group.jobs), "next": group.next} for group in waiting],
        "jobs": [
            {
                "id": job.id,
                "title": job.title,
                "status": job.status,
                **state_data(states[job.id]),
                "stakes": job.stakes,
                "agreement": job.agreement,
                "depends_on": list(job.depends_on),
                "iteration": job.iteration,
                "max_iterations": job.max_iterations,
                "events": job.events,
                "tampered": [miss.field for miss in job.tampered],
                "path": workspace.where(job.path),
            }
            for job in found.jobs
        ],
    }
    return output.finish(ExitCode.GATE_FAILED if findings else ExitCode.PASS, data, findings)


def _counted(job: JobRecord, state: JobState) -> str:
    """The status under which a job is counted: one that is no longer done is not among those that are."""
    return state.word if state.word == "no_longer_done" else job.status


def _show(output: Output, job: JobRecord, state: JobState) -> None:
    tampered = f"  tampered: {', '.join(mismatch.field for mismatch in job.tampered)}" if job.tampered else ""
    color = "red" if state.word in _RED else "yellow" if state.word in _YELLOW else _COLORS.get(state.word)
    step = "" if state.word in ("done", "cancelled") else f"  (next: {state.next})"
    head = f"  {job.id}  {state.word.ljust(14)}  "
    width = 0 if output.json or not sys.stdout.isatty() else shutil.get_terminal_size().columns
    if not width or len(head) + len(job.title) + len(tampered) + len(step) <= width:
        output.say(f"{head}{job.title}{tampered}{step}", fg=color)
        return
    # One line for each job, so that many fit on a screen; the next step follows where it is not said above.
    output.say(f"{head}{one_line(job.title, max(20, width - len(head) - len(tampered)))}{tampered}", fg=color)
    if step and state.word not in WAITING:
        output.say(f"      next: {state.next}", dim=True)
