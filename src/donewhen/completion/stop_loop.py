"""Run an agent repeatedly until the checks of [stop] pass: a loop for work without a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, NamedTuple

from donewhen.completion.checking import run_check
from donewhen.completion.from_settings import checker_for
from donewhen.config import Settings
from donewhen.filesystem.host import HostFilesystem
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import UsageError
from donewhen.jobs.lifecycle.agent_loop import MAX_UNCHANGED
from donewhen.jobs.lifecycle.loop_turns import AgentRunner, AgentTurn, LoopLimits
from donewhen.protocols import TaskCompletionContext, TaskCompletionResult
from donewhen.runtime.session import Session

_NAME = "stop"


class StopLoopTurn(NamedTuple):
    """A run of the agent, and what the checks said after it."""

    number: int
    turn: AgentTurn
    result: TaskCompletionResult


@dataclass(frozen=True)
class StopLoopResult:
    """How the loop ended."""

    ending: Literal["done", "turns_spent", "time_spent", "nothing_changed"]
    turns: int
    why: str = ""


def run_stop_loop(
    settings: Settings,
    argv: Sequence[str],
    *,
    limits: LoopLimits = LoopLimits(),  # noqa: B008 - immutable
    on_progress: Callable[[StopLoopTurn], object] = lambda _: None,
    on_text: Callable[[str], object] = lambda _: None,
    checking: Callable[[], AbstractContextManager[object]] = nullcontext,
    environ: Mapping[str, str] = CALLER_VARIABLES,
) -> StopLoopResult:
    """Run ``argv`` until the checks of [stop] pass; at least once. What they miss is the next prompt.

    ``{prompt}`` in the words is replaced; the prompt is also in DONEWHEN_PROMPT. After three turns in a row that
    leave the same missing, the loop ends.
    """
    if not settings.stop.has_checks:
        raise UsageError(
            "There is nothing to check, and zero checks is not a pass.",
            where=str(settings.source or settings.root),
            next_step="Give a job, or write a [stop] table into donewhen.toml.",
        )
    runner = AgentRunner(settings.root, _NAME, limits, on_text, environ)
    checker = checker_for(settings.stop, str(settings.source))
    context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(settings.root))
    feedback, same = "", 0
    for number in range(1, limits.turns + 1):
        if runner.left <= 0:
            return StopLoopResult("time_spent", number - 1, feedback)
        prompt = _prompt(feedback)
        turn = runner.run(number, [word.replace("{prompt}", prompt) for word in argv], {"DONEWHEN_PROMPT": prompt})
        with checking():
            result = run_check(checker, context, timeout=settings.stop.check_timeout)
        on_progress(StopLoopTurn(number, turn, result))
        if result.complete:
            return StopLoopResult("done", number)
        missing = result.feedback or "The checks did not pass."
        same = same + 1 if missing == feedback else 1
        feedback = missing
        if same == MAX_UNCHANGED:
            return StopLoopResult("nothing_changed", number, f"{same} turns in a row left the same missing. {missing}")
    return StopLoopResult("turns_spent", limits.turns, feedback)


def _prompt(feedback: str) -> str:
    if not feedback:
        return "Do the work. You are done when the checks of this project pass: donewhen check\n"
    return f"The work is not done. This is missing:\n{feedback}\nThe checks are run with: donewhen check\n"
