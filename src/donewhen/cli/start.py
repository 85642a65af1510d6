"""`donewhen start`: start a job."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._gates import show_words_of_people
from donewhen.cli._jobs import find_project, job_argument, project_option
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.git import repository_root
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.words_for_agents import words_about_job
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.start import start_job


@click.command()
@job_argument
@project_option
@common_options
@click.pass_obj
def command(output: Output, job: str, project: Path | None) -> ExitCode:
    """Start JOB, or start it again, which counts as an iteration, except after a person's answer. A job that is done is
    open again then.

    A job can't start without an agreement, before its dependencies are done, or after its budget is used up and before
    a person has decided. The content hashes of its dependencies' outputs and of its own outputs are recorded, and its
    test commands are run once.

    Relevant lessons of earlier jobs are quoted in the plan. Answer each one; the answers count in the score:

    \b
    donewhen lessons used LL-20260214-001 --job 001 --how "Read the last line first, as it says."
    donewhen lessons not-relevant LL-20260214-002 --job 001 --reason "There is no parser in this one."
    """
    workspace = find_project(project)
    was_done = workspace.job(job).status == "done"
    with output.progress("starting") as show:
        result = start_job(
            workspace, job, unproved_actor(), on_progress=lambda requirement: show(f"tests now: {requirement.evidence}")
        )
    output.say(f"{result.job.id}  {result.job.title}", bold=True)
    findings = [Finding(reason.code, reason.message, reason.where, result.next) for reason in result.reasons]
    for finding in findings:
        output.say(f"  ✗ [{finding.code}] {finding.message}", fg="red")
    if result.started:
        output.say(
            f"  {result.job.status}, iteration {result.job.iteration} of {result.job.max_iterations}", fg="green"
        )
        if was_done:
            output.say("  ! It was done. It is open again, and its promise is no longer valid.", fg="yellow")
            output.say(f"    If there is nothing more to do: donewhen complete {result.job.id}", dim=True)
        if result.taken_over:
            other = (
                "another clone" if result.taken_over == "clone" else "the session of another agent, which still runs"
            )
            output.say(f"  ! It was in progress in {other}. You have taken it over, and that is recorded.", fg="yellow")
        for found in result.lessons:
            output.say(f"  lesson {found.lesson.id}: {one_line(found.lesson.recommendation, 120)}")
            output.say(f"    {'; '.join(found.reasons)}", dim=True)
        if result.lessons:
            output.say("  The lessons are quoted in the plan. Answer each one, with --how or --reason:", dim=True)
            example = result.lessons[0].lesson.id
            for verb in ("used", "not-relevant"):
                output.say(f"    donewhen lessons {verb} {example} --job {result.job.id} …", dim=True)
        for overlap in result.overlapping:
            output.say(f"  ! {overlap.job} is in progress here, too, and both may change {overlap.path}.", fg="yellow")
        if result.overlapping and repository_root(workspace.root) is not None:
            output.say(f"    To keep them apart: git worktree add ../{result.job.id}", dim=True)
    elif result.next:
        output.say(f"  next: {result.next}", dim=True)
    words = words_about_job(workspace, result.job.id)
    show_words_of_people(output, words)
    data = {
        "from_people": list(words),
        "job": result.job.id,
        "started": result.started,
        "reopened": result.started and was_done,
        "status": result.job.status,
        "taken_over": result.taken_over,
        "next": result.next,
        "overlapping": [asdict(overlap) for overlap in result.overlapping],
        "lessons": [{"id": lesson.lesson.id, "reasons": list(lesson.reasons)} for lesson in result.lessons],
    }
    return output.finish(ExitCode.PASS if result.started else ExitCode.GATE_FAILED, data, findings)
