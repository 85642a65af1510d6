"""Run an agent repeatedly until a job is done, blocked or out of budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, NamedTuple

from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.process import CommandResult
from donewhen.jobs.evidence.conditions import evidence_inputs
from donewhen.jobs.evidence.probing import Probing
from donewhen.jobs.gates.job_view import view_job
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import Refused
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.loop_turns import AgentRunner, AgentTurn, LoopLimits
from donewhen.jobs.lifecycle.promise import Promise, promise_of
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

MAX_UNCHANGED = 3
"""Number of turns in a row that changed nothing, after which a loop ends."""
_MAX_HINDERED = 2
"""Number of attempts in a row that the machine kept from being checked, after which the loop ends."""
LoopEnding = Literal[
    "done",
    "blocked",
    "waiting",
    "out_of_budget",
    "not_started",
    "turns_spent",
    "time_spent",
    "hindered",
    "nothing_changed",
]


class LoopTurn(NamedTuple):
    """A run of the agent, and the gates' result after it."""

    number: int
    turn: AgentTurn
    completion: Completion

    @property
    def agent(self) -> CommandResult:
        return self.turn.agent


class LoopResult(NamedTuple):
    """How the loop ended."""

    ending: LoopEnding
    turns: int
    promise: Promise | None = None
    why: str = ""
    cascade: tuple[Promise, ...] = ()
    """The promises of the workstream and project that were completed with the job."""


def run_agent_loop(
    workspace: Workspace,
    name: str,
    argv: Sequence[str],
    by: Actor,
    *,
    limits: LoopLimits = LoopLimits(),  # noqa: B008 - immutable
    on_progress: Callable[[LoopTurn], object] = lambda _: None,
    on_text: Callable[[str], object] = lambda _: None,
    checking: Callable[[], AbstractContextManager[object]] = nullcontext,
    environ: Mapping[str, str] = CALLER_VARIABLES,
) -> LoopResult:
    """Run ``argv`` until the job is done, blocked, waiting, or out of attempts. Earlier attempts count.

    ``{prompt}``, ``{job}`` and ``{plan}`` in the words are replaced; the prompt is also in DONEWHEN_PROMPT. The agent
    gets the whole environment, because its run is not evidence. ``on_text`` gets each line that it puts out, at once;
    all of it is kept in a file for each turn. ``checking`` is entered while the gates are evaluated.

    Turns that end in seconds are followed by longer and longer pauses. After three turns in a row that have changed
    nothing, the loop ends.
    """
    job = workspace.job(name)
    runner = AgentRunner(workspace.root, job.id, limits, on_text, environ)
    if job.status == "planned":
        start = start_job(workspace, job.id, by)
        if not start.started:
            return LoopResult("not_started", 0, why=f"{start.reasons[0].message} Next: {start.next}")
    refusal = ""
    hindered = unchanged = 0
    seen = (refusal, _work(workspace, job))
    for number in range(1, limits.turns + 1):
        stop = reason_to_stop(workspace, workspace.job_at(job.path))
        if stop is not None:
            return stop._replace(turns=number - 1)
        if runner.left <= 0:
            return LoopResult("time_spent", number - 1)
        prompt = prompt_for(workspace, job, refusal)
        words = [_fill_placeholders(word, job, workspace, prompt) for word in argv]
        turn = runner.run(number, words, {"DONEWHEN_PROMPT": prompt, "DONEWHEN_JOB": job.id})
        stop = reason_to_stop(workspace, workspace.job_at(job.path))
        if stop is not None:
            return stop._replace(turns=number)
        with checking():
            result = complete(workspace, job.id, by, probing=Probing())
        on_progress(LoopTurn(number, turn, result))
        if result.promise is not None:
            return LoopResult("done", number, result.promise, cascade=result.cascade)
        refusal = "\n".join(_refusal_lines(result))
        # Such a refusal costs no iteration, so the budget would never end this, and no turn of an agent changes it.
        hindered = hindered + 1 if _is_hindered(result) else 0
        if hindered == _MAX_HINDERED and result.evaluation is not None:
            return LoopResult("hindered", number, why=result.evaluation.truth.reasons[0].message)
        now = ("\n".join(_missing(result)), _work(workspace, job))
        # The first refusal is news, even if the agent has done nothing.
        same = now[1] is not None and now[1] == seen[1] and (number == 1 or now == seen)
        unchanged = unchanged + 1 if same else 0
        seen = now
        if unchanged == MAX_UNCHANGED and reason_to_stop(workspace, workspace.job_at(job.path)) is None:
            return LoopResult("nothing_changed", number, why=f"{MAX_UNCHANGED} turns in a row changed nothing.")
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


def _missing(result: Completion) -> Iterator[str]:
    """What a refusal is about, without the score, which every refusal lowers."""
    if result.evaluation is not None:
        for gate in result.evaluation.gates:
            yield from (f"{reason.code} {reason.message}" for reason in gate.reasons if gate.gate != "reward")


def _work(workspace: Workspace, job: Job) -> str | None:
    """A hash of the files that checks depend on; None if it is not known."""
    try:
        return evidence_inputs(workspace, job).hash
    except (DonewhenError, OSError):
        return None


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
