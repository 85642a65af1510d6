"""`donewhen loop`: run an agent until a job is done, or until the checks of [stop] pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._gates import show_gates, show_promise
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.config import load
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.agent_loop import LoopTurn, run_agent_loop
from donewhen.jobs.lifecycle.loop_turns import AgentTurn, LoopLimits

_LIMITS = LoopLimits()


class _LoopCommand(click.Command):
    """Takes a command after ``--`` also without a job before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            before, _, _ = self.make_parser(ctx).parse_args(args=args[:place])
            if not isinstance(before.get("job"), str):
                args = [*args[:place], "--", "", *args[place + 1 :]]
        return super().parse_args(ctx, args)


@click.command(cls=_LoopCommand)
@click.argument("job", required=False)
@click.argument("argv", nargs=-1, metavar="-- AGENT-CMD...")
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
    job: str | None,
    argv: tuple[str, ...],
    max_turns: int,
    max_seconds: float,
    turn_seconds: float,
    project: Path | None,
) -> ExitCode:
    """Run an agent command until JOB is done, blocked, or out of budget; without JOB, until the checks of [stop] pass.

    The gates are evaluated after each run, and the next run gets their reasons. {prompt}, {job} and {plan}
    in the command are replaced. What the agent says is shown, and kept in a file for each turn. Ctrl-C also ends the
    agent; run the command again to continue.

    \b
    donewhen loop WI-20260214-001 -- claude -p {prompt}
    donewhen loop -- codex exec {prompt}
    """
    if not argv:
        raise UsageError(
            "There is no command to run.", next_step="Give it after --: donewhen loop JOB -- claude -p {prompt}"
        )
    limits = LoopLimits(max_turns, max_seconds, turn_seconds)
    if not job:
        return _loop_for_stop(output, argv, limits, project)
    return _loop_for_job(output, job, argv, limits, project)


def _loop_for_job(
    output: Output, job: str, argv: tuple[str, ...], limits: LoopLimits, project: Path | None
) -> ExitCode:
    workspace = find_project(project)
    transcripts: list[dict[str, Any]] = []

    def on_progress(turn: LoopTurn) -> None:
        transcripts.append(_show_turn(output, turn.number, turn.turn, workspace.root))
        if turn.completion.evaluation is not None:
            show_gates(output, turn.completion.evaluation)

    ended = run_agent_loop(
        workspace,
        job,
        argv,
        unproved_actor(),
        limits=limits,
        on_progress=on_progress,
        on_text=_shown(output),
        checking=_checking(output, f"checking {job}"),
    )
    found = workspace.job(job)
    data = {
        "job": found.id,
        "ending": ended.ending,
        "turns": ended.turns,
        "why": ended.why,
        "receipt": None if ended.promise is None else ended.promise.receipt,
        "cascade": [promise.id for promise in ended.cascade],
        "transcripts": transcripts,
    }
    if ended.promise is not None:
        for promise in (ended.promise, *ended.cascade):
            show_promise(output, promise)
        return output.finish(ExitCode.PASS, data)
    message = f"{found.id} is not done: {ended.ending.replace('_', ' ')}{f': {ended.why}' if ended.why else ''}"
    output.say(message, fg="yellow")
    finding = Finding("loop_ended", message, workspace.where(found.path), f"donewhen next {found.id}")
    return output.finish(ExitCode.GATE_FAILED, data, [finding])


def _loop_for_stop(output: Output, argv: tuple[str, ...], limits: LoopLimits, project: Path | None) -> ExitCode:
    from donewhen.completion.stop_loop import StopLoopTurn, run_stop_loop

    settings = load(project or Path.cwd())
    transcripts: list[dict[str, Any]] = []

    def on_progress(turn: StopLoopTurn) -> None:
        transcripts.append(_show_turn(output, turn.number, turn.turn, settings.root))
        for line in (turn.result.feedback or "").splitlines():
            output.say(f"  {line}")

    ended = run_stop_loop(
        settings,
        argv,
        limits=limits,
        on_progress=on_progress,
        on_text=_shown(output),
        checking=_checking(output, "checking [stop]"),
    )
    data = {
        "job": None,
        "ending": ended.ending,
        "turns": ended.turns,
        "why": ended.why,
        "transcripts": transcripts,
    }
    if ended.ending == "done":
        output.say("The checks of [stop] pass.", fg="green")
        return output.finish(ExitCode.PASS, data)
    message = f"The checks of [stop] don't pass: {ended.ending.replace('_', ' ')}: {ended.why}"
    output.say(message.partition("\n")[0], fg="yellow")
    return output.finish(
        ExitCode.GATE_FAILED, data, [Finding("loop_ended", message, str(settings.root), "donewhen check")]
    )


def _shown(output: Output) -> Callable[[str], object]:
    """Shows what the agent says, marked as its own."""
    return lambda line: output.say(f"  │ {line}", dim=True)


def _checking(output: Output, text: str) -> Callable[[], Any]:
    """A spinner only while checks run: the agent's lines would be mixed with it."""

    @contextmanager
    def checking() -> Iterator[None]:
        with output.progress(text):
            yield

    return checking


def _show_turn(output: Output, number: int, turn: AgentTurn, root: Path) -> dict[str, Any]:
    agent, usage = turn.agent, turn.usage
    tokens = "" if usage is None else f", {usage.text}"
    output.say(f"turn {number}: the agent exited with {agent.exit_code} after {agent.seconds:.0f} s{tokens}", bold=True)
    name = turn.transcript.relative_to(root).as_posix()
    output.say(f"  all of it: {name}", dim=True)
    return {
        "turn": number,
        "file": name,
        "exit_code": agent.exit_code,
        "seconds": round(agent.seconds, 1),
        "tokens": None if usage is None else usage._asdict(),
    }
