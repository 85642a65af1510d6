"""Shared by the verbs that call a model: the option and the messages about the mission's budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from donewhen.cli._output import Finding, Output
from donewhen.models.metered import BudgetError, MeteredModel

F = TypeVar("F", bound=Callable[..., Any])


def max_calls_option(command: F) -> F:
    """Add --max-calls, which overrides the mission's ``budget.calls``."""
    return click.option(
        "--max-calls",
        type=click.IntRange(1),
        metavar="N",
        help="Maximum number of model calls; cached answers are free.",
    )(command)


def note_uncached(output: Output) -> Callable[[str], None]:
    """Return a function that warns that answers can't be cached."""
    return lambda where: output.note(f"! {where} is read-only, so answers are not cached and will be paid for again.")


def budget_finding(error: BudgetError, asking: MeteredModel, progress: str) -> Finding:
    """The finding for a budget that is used up."""
    kept = "" if asking.free else " Answers so far are cached and not paid for again."
    allowed = f"budget.{error.limit} in mission.toml" + (" or --max-calls" if error.limit == "calls" else "")
    return Finding(error.code, f"{error.message} {progress}", next=f"Raise {allowed} and run again.{kept}")
