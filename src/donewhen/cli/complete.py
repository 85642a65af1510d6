"""`donewhen complete`: complete a job if all gates pass."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._gates import evaluation_data, exit_code, gate_findings, show_gates, show_promise, state_data
from donewhen.cli._jobs import find_project, job_argument, project_option
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.completion import Completion, complete


@click.command()
@job_argument
@project_option
@common_options
@click.pass_obj
def command(output: Output, job: str, project: Path | None) -> ExitCode:
    """Complete JOB: run stale checks, evaluate every gate, record the result, and print the promise if all pass.

    The promise and its receipt are printed only if the job is done. Otherwise every closed gate is shown with its next
    command, the attempt is counted, and a job without attempts left becomes blocked. For a job that is done and still
    valid, the promise is printed again.
    """
    workspace = find_project(project)
    with output.progress("collecting evidence"):
        result = complete(workspace, job, unproved_actor())
    output.say(f"{result.job.id}  {result.job.title}", bold=True)
    if result.evaluation is not None:
        show_gates(output, result.evaluation)
    for invalidated in result.invalidated:
        output.say(
            f"  {invalidated.id} is no longer done: {' → '.join(invalidated.chain)}: {invalidated.why}", fg="yellow"
        )
    for promise in (result.promise, *result.cascade):
        if promise is not None:
            show_promise(output, promise)
    if not result.done:
        output.say(f"  {result.job.status}, iteration {result.job.iteration} of {result.job.max_iterations}")
        output.say(f"  next: {result.state.next}", bold=True)
    findings = [] if result.evaluation is None else gate_findings(result.evaluation)
    status = exit_code(result.evaluation, result.done)
    return output.finish(status, _data(result), findings, promising=result.promise is not None)


def _data(result: Completion) -> dict[str, object]:
    return {
        "job": result.job.id,
        "done": result.done,
        "status": result.job.status,
        **state_data(result.state),
        "iteration": result.job.iteration,
        "promise": None if result.promise is None else result.promise.text.splitlines()[0],
        "receipt": None if result.promise is None else result.promise.receipt,
        "repeated": result.repeated,
        "cascade": [promise.id for promise in result.cascade],
        "invalidated": [
            {"id": invalidated.id, "chain": list(invalidated.chain), "why": invalidated.why}
            for invalidated in result.invalidated
        ],
        "evaluation": None if result.evaluation is None else evaluation_data(result.evaluation, result.state),
    }
