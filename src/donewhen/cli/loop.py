"""`donewhen loop`: run an agent until a job is done."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._gates import show_gates, show_promise
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.agent_loop import LoopLimits, LoopTurn, run_agent_loop

_LIMITS = LoopLimits()


@click.command()
@click.argument("job")
@click.argument("argv", nargs=-1, required=True, metavar="-- AGENT-CMD...")
@click.option(
    "--max-turns",
    type=click.IntRange(min=1),
    default=_LIMITS.turns,
    show_default=True,
    help="Maximum number of agent runs.",
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=_LIMITS.seconds,
    show_default=True,
    metavar="S",
    help="Time limit for the whole loop, in seconds.",
)
@click.option(
    "--turn-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=_LIMITS.turn_seconds,
    show_default=True,
    metavar="S",
    help="Time limit for one agent run, in seconds.",
)
@project_option
@common_options
@click.pass_obj
def command(
    output: Output,
    job: str,
    argv: tuple[str, ...],
    max_turns: int,
    max_seconds: float,
    turn_seconds: float,
    project: Path | None,
) -> ExitCode:
    """Run an agent command until JOB is done, blocked, or out of budget.

    The gates are evaluated after each run, and the next run gets their reasons. {prompt}, {job} and {plan}
    in the command are replaced. Ctrl-C also ends the agent; run the command again to continue.

    \b
    donewhen loop WI-20260214-001 -- claude -p {prompt}
    """
    workspace = find_project(project)

    def on_progress(turn: LoopTurn) -> None:
        output.say(
            f"turn {turn.number}: the agent exited with {turn.agent.exit_code} after {turn.agent.seconds:.0f} s",
            bold=True,
        )
        if turn.completion.evaluation is not None:
            show_gates(output, turn.completion.evaluation)

    limits = LoopLimits(max_turns, max_seconds, turn_seconds)
    with output.progress(f"working on {job}"):
        ended = run_agent_loop(workspace, job, argv, unproved_actor(), limits=limits, on_progress=on_progress)
    found = workspace.job(job)
    data = {
        "job": found.id,
        "ending": ended.ending,
        "turns": ended.turns,
        "why": ended.why,
        "receipt": None if ended.promise is None else ended.promise.receipt,
        "cascade": [promise.id for promise in ended.cascade],
    }
    if ended.promise is not None:
        for promise in (ended.promise, *ended.cascade):
            show_promise(output, promise)
        return output.finish(ExitCode.PASS, data)
    message = f"{found.id} is not done: {ended.ending.replace('_', ' ')}{f': {ended.why}' if ended.why else ''}"
    output.say(message, fg="yellow")
    finding = Finding("loop_ended", message, workspace.where(found.path), f"donewhen next {found.id}")
    return output.finish(ExitCode.GATE_FAILED, data, [finding])
