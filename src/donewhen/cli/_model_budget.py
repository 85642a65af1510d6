"""Call a model within the mission's budget, with answers cached so that none is paid for twice."""

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
    """Add --max-calls, which overrides the mission's ``budget.calls``."""
    return click.option(
        "--max-calls",
        type=click.IntRange(1),
        metavar="N",
        help="Maximum number of model calls; cached answers are free.",
    )(command)


def with_max_calls(mission: Mission, calls: int | None) -> Mission:
    """The mission with ``budget.calls`` overridden, if given."""
    if calls is None:
        return mission
    budget = msgspec.structs.replace(mission.settings.budget, calls=calls)
    return mission._replace(settings=msgspec.structs.replace(mission.settings, budget=budget))


@contextmanager
def open_metered_model(mission: Mission, model: Model, output: Output) -> Iterator[MeteredModel]:
    """Open a model behind the mission's budget and, if calls cost something, behind the answer cache."""
    began = mission.clock.monotonic()
    meter = Meter(spending_limits(mission, model), elapsed=lambda: mission.clock.monotonic() - began)
    with ExitStack() as stack:
        answers = None if model.free else _answers(mission, output)
        if answers is not None:
            stack.enter_context(answers)
        yield MeteredModel(model, meter, answers)


def budget_finding(error: BudgetError, asking: MeteredModel, progress: str) -> Finding:
    """The finding for a budget that is used up."""
    kept = "" if asking.free else " Answers so far are cached and not paid for again."
    allowed = f"budget.{error.limit} in mission.toml" + (" or --max-calls" if error.limit == "calls" else "")
    return Finding(error.code, f"{error.message} {progress}", next=f"Raise {allowed} and run again.{kept}")


def _answers(mission: Mission, output: Output) -> AnswerStore | None:
    """Open the answer cache; None, with a note, if the folder is read-only."""
    try:
        return open_answer_store(mission)
    except AnswerStoreReadOnlyError as error:
        where = error.where
    except OSError as error:
        if error.errno not in NOT_ALLOWED:
            raise
        where = str(error.filename)
    output.note(f"! {where} is read-only, so answers are not cached and will be paid for again.")
    return None
