"""Run an agent repeatedly until a job is done, blocked or out of budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.process import CommandResult, run_command
from donewhen.jobs.evidence.probing import Probing
from donewhen.jobs.gates.job_view import view_job
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import Refused
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.promise import Promise, promise_of
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

_MAX_HINDERED = 2
"""Number of attempts in a row that the machine kept from being checked, after which the loop ends."""
LoopEnding = Literal[
    "done", "blocked", "waiting", "out_of_budget", "not_started", "turns_spent", "time_spent", "hindered"
]


class LoopTurn(NamedTuple):
    """A run of the agent, and the gates' result after it."""

    number: int
    agent: CommandResult
    completion: Completion


class LoopResult(NamedTuple):
    """How the loop ended."""

    ending: LoopEnding
    turns: int
    promise: Promise | None = None
    why: str = ""
    cascade: tuple[Promise, ...] = ()
    """The promises of the workstream and project that were completed with the job."""


class LoopLimits(NamedTuple):
    """The loop's own limits, in addition to the agreed budget."""

    turns: int = 20
    seconds: float = 4 * 3600.0
    turn_seconds: float = 3600.0


def run_agent_loop(
    workspace: Workspace,
    name: str,
    argv: Sequence[str],
    by: Actor,
    *,
    limits: LoopLimits = LoopLimits(),  # noqa: B008 - immutable
    on_progress: Callable[[LoopTurn], object] = lambda _: None,
    environ: Mapping[str, str] = CALLER_VARIABLES,
) -> LoopResult:
    """Run ``argv`` until the job is done, blocked, waiting, or out of attempts. Earlier attempts count.

    ``{prompt}``, ``{job}`` and ``{plan}`` in the words are replaced; the prompt is also in DONEWHEN_PROMPT. The agent
    gets the whole environment, because its run is not evidence.
    """
    job = workspace.job(name)
    deadline = time.monotonic() + limits.seconds
    if job.status == "planned":
        start = start_job(workspace, job.id, by)
        if not start.started:
            return LoopResult("not_started", 0, why=f"{start.reasons[0].message} Next: {start.next}")
    refusal = ""
    hindered = 0
    for number in range(1, limits.turns + 1):
        stop = reason_to_stop(workspace, workspace.job_at(job.path))
        if stop is not None:
            return stop._replace(turns=number - 1)
        left = deadline - time.monotonic()
        if left <= 0:
            return LoopResult("time_spent", number - 1)
        prompt = prompt_for(workspace, job, refusal)
        words = [_fill_placeholders(word, job, workspace, prompt) for word in argv]
        env = {**environ, "DONEWHEN_PROMPT": prompt, "DONEWHEN_JOB": job.id, "DONEWHEN_AGENT": "loop"}
        agent = run_command(words, cwd=workspace.root, timeout=min(left, limits.turn_seconds), env=env)
        stop = reason_to_stop(workspace, workspace.job_at(job.path))
        if stop is not None:
            return stop._replace(turns=number)
        result = complete(workspace, job.id, by, probing=Probing())
        on_progress(LoopTurn(number, agent, result))
        if result.promise is not None:
            return LoopResult("done", number, result.promise, cascade=result.cascade)
        refusal = "\n".join(_refusal_lines(result))
        # Such a refusal costs no iteration, so the budget would never end this, and no turn of an agent changes it.
        hindered = hindered + 1 if _is_hindered(result) else 0
        if hindered == _MAX_HINDERED and result.evaluation is not None:
            return LoopResult("hindered", number, why=result.evaluation.truth.reasons[0].message)
    stop = reason_to_stop(workspace, workspace.job_at(job.path))
    return LoopResult("turns_spent", limits.turns) if stop is None else stop._replace(turns=limits.turns)


def reason_to_stop(workspace: Workspace, job: Job) -> LoopResult | None:
    """Return why the agent should not run again; None if it should."""
    view = view_job(workspace, job)
    match view.rest:
        case "done" if view.completion is not None:
            return LoopResult("done", 0, promise_of(job.id, view.completion))
        case "out_of_budget":
            return LoopResult("out_of_budget", 0, why=f"All {job.max_iterations} iterations are used up.")
        case "set_aside" if view.pause is not None:
            asks = view.pause.decision in ("ask", "dispute")
            return LoopResult("waiting" if asks else "blocked", 0, why=view.pause.reason)
        case "cancelled":
            return LoopResult("blocked", 0, why=f"{job.id} was cancelled.")
        case "needs_person":
            return LoopResult("waiting", 0, why=view.evaluation.truth.reasons[0].message)
        case _:
            return None


def prompt_for(workspace: Workspace, job: Job, refusal: str) -> str:
    """Return the prompt for the agent: the job, its criteria, and why the last attempt was refused."""
    criteria = "\n".join(f"- {criterion.id}: {criterion.text}" for criterion in job.criteria)
    last = f"\nThe last attempt was refused:\n{refusal}\n" if refusal else ""
    return (
        f"Work on the job {job.id}: {job.title}. Its plan is {workspace.where(job.path)}.\n"
        f"It is done when:\n{criteria}\n{last}"
        f"Run its checks with: donewhen run {job.id}. If you can't go on: donewhen block {job.id} --reason …, "
        f"or ask: donewhen ask {job.id} --question … If a refusal is wrong: donewhen dispute {job.id} --reason …\n"
    )


def _is_hindered(result: Completion) -> bool:
    """Whether only the machine was in the way."""
    return isinstance(result.entry.content, Refused) and result.entry.content.hindered


def _refusal_lines(result: Completion) -> Iterator[str]:
    if result.evaluation is not None:
        for gate in result.evaluation.gates:
            for reason in gate.reasons:
                yield f"- {reason.message}"
                yield from (f"  {line}" for line in reason.details)


def _fill_placeholders(word: str, job: Job, workspace: Workspace, prompt: str) -> str:
    plan = workspace.where(job.path)
    return word.replace("{job}", job.id).replace("{plan}", plan).replace("{prompt}", prompt)
