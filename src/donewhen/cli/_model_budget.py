"""How verbs that learn nothing ask a model: within the mission's budget, and never twice for what is paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import click
import msgspec

from donewhen.cli._output import Finding, Output
from donewhen.judging.mission import Mission
from donewhen.judging.mission_budget import open_answer_store, spending_limits
from donewhen.models.answer_store import NOT_ALLOWED, AnswerStore, AnswerStoreReadOnlyError
from donewhen.models.metered import BudgetError, Meter, MeteredModel
from donewhen.models.roles import Model

F = TypeVar("F", bound=Callable[..., Any])


def max_calls_option(command: F) -> F:
    """--max-calls, in the place of the mission's ``budget.calls``."""
    return click.option(
        "--max-calls", type=click.IntRange(1), metavar="N", help="At most so many calls; known answers are none."
    )(command)


def with_max_calls(mission: Mission, calls: int | None) -> Mission:
    """The mission with another ``budget.calls``, if there is one."""
    if calls is None:
        return mission
    budget = msgspec.structs.replace(mission.settings.budget, calls=calls)
    return mission._replace(settings=msgspec.structs.replace(mission.settings, budget=budget))


@contextmanager
def open_metered_model(mission: Mission, model: Model, output: Output) -> Iterator[MeteredModel]:
    """A model behind the mission's budget and, where asking costs something, behind the answers that are known."""
    began = mission.clock.monotonic()
    meter = Meter(spending_limits(mission, model), elapsed=lambda: mission.clock.monotonic() - began)
    with ExitStack() as stack:
        answers = None if model.free else _answers(mission, output)
        if answers is not None:
            stack.enter_context(answers)
        yield MeteredModel(model, meter, answers)


def budget_finding(error: BudgetError, asking: MeteredModel, told: str) -> Finding:
    """That the budget is used up, and what to do."""
    kept = "" if asking.free else " What was answered is kept, and not paid for again."
    allowed = f"budget.{error.limit} in mission.toml" + (" or --max-calls" if error.limit == "calls" else "")
    return Finding(error.code, f"{error.message} {told}", next=f"Raise {allowed}, and begin again.{kept}")


def _answers(mission: Mission, output: Output) -> AnswerStore | None:
    """The answers that are known; None where nothing may be written, which is said."""
    try:
        return open_answer_store(mission)
    except AnswerStoreReadOnlyError as error:
        where = error.where
    except OSError as error:
        if error.errno not in NOT_ALLOWED:
            raise
        where = str(error.filename)
    output.note(f"! Nothing may be written to {where}, so answers are not kept: asked again, they are paid for again.")
    return None
