"""`donewhen complete`: complete a job if all gates pass."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from donewhen.cli._app import common_options
from donewhen.cli._gates import (
    evaluation_data,
    exit_code,
    gate_findings,
    show_gates,
    show_promise,
    show_words_of_people,
    state_data,
)
from donewhen.cli._jobs import find_project, job_argument, project_option
from donewhen.cli._output import Output
from donewhen.cli._script_flags import script_flags
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.board.words_for_agents import words_about_job
from donewhen.jobs.evidence.probing import Probing
from donewhen.jobs.gates.shown_strength import recorded_lines
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.promise import moment_of


@click.command()
@job_argument
@script_flags("--cascade", "--no-sync", "--no-dashboard", "--no-open")
@project_option
@common_options
@click.pass_obj
def command(output: Output, job: str, project: Path | None) -> ExitCode:
    """Complete JOB: run stale checks, evaluate every gate, record the result, and print the promise if all pass.

    The promise and its receipt are printed only if the job is done. Otherwise every closed gate is shown with its next
    command, the attempt is counted, and a job without attempts left becomes blocked. For a job that is done and still
    valid, the promise is printed again; if its outputs are gone or changed, it says that it is no longer true.
    """
    workspace = find_project(project)
    with output.progress("collecting evidence") as show:
        result = complete(
            workspace,
            job,
            unproved_actor(),
            on_progress=lambda requirement: show(requirement.evidence),
            probing=Probing(show),
        )
    output.say(f"{result.job.id}  {result.job.title}", bold=True)
    if result.no_longer_true:
        again = " It was checked again." if result.done else ""
        output.say(f"  It was done, but that is no longer true: {result.no_longer_true}.{again}", fg="yellow")
    if result.evaluation is not None:
        show_gates(output, result.evaluation)
    for invalidated in result.invalidated:
        output.say(
            f"  {invalidated.id} is no longer done: {' → '.join(invalidated.chain)}: {invalidated.why}", fg="yellow"
        )
    moment = moment_of(workspace, result.job, result.entry) if result.repeated else ""
    if moment:
        output.say(f"  It was true {moment}; files that its checks depend on have changed since.", dim=True)
    for line in recorded_lines(result.strength):
        output.say(f"  {line}", dim=True)
    for promise in (result.promise, *result.cascade):
        if promise is not None:
            show_promise(output, promise)
    for sentence in result.unmet:
        output.say(f"  The project is not done: {sentence}.", fg="yellow")
    if result.unmet:
        output.say(f"  next: donewhen complete {result.job.id}, when it is met", bold=True)
    words = () if result.done else words_about_job(workspace, result.job.id)
    show_words_of_people(output, words)
    if not result.done:
        output.say(f"  {result.job.status}, iteration {result.job.iteration} of {result.job.max_iterations}")
        output.say(f"  next: {result.state.next}", bold=True)
    findings = [] if result.evaluation is None else gate_findings(result.evaluation)
    status = exit_code(result.evaluation, result.done)
    return output.finish(
        status, {**_data(result, moment), "from_people": list(words)}, findings, promising=result.promise is not None
    )


def _data(result: Completion, moment: str) -> dict[str, object]:
    return {
        "job": result.job.id,
        "done": result.done,
        "status": result.job.status,
        **state_data(result.state),
        "iteration": result.job.iteration,
        "promise": None if result.promise is None else result.promise.text.splitlines()[0],
        "receipt": None if result.promise is None else result.promise.receipt,
        "strength": {name: msgspec.to_builtins(strength) for name, strength in result.strength.items()},
        "repeated": result.repeated,
        "true_at": moment or None,
        "no_longer_true": result.no_longer_true or None,
        "project_unmet": list(result.unmet),
        "cascade": [promise.id for promise in result.cascade],
        "invalidated": [
            {"id": invalidated.id, "chain": list(invalidated.chain), "why": invalidated.why}
            for invalidated in result.invalidated
        ],
        "evaluation": None if result.evaluation is None else evaluation_data(result.evaluation, result.state),
    }
