"""The options that choose where a model runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

import click

from donewhen.models.executors import EXECUTORS, Executor, find_executor
from donewhen.models.roles import Model

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ChosenExecutor:
    """An executor, and the options that select it again."""

    executor: Executor
    options: str

    def open(self, choice: str) -> Model:
        return self.executor.open(choice)


def lost_workers(model: Model) -> str | None:
    """A note about workers that were lost while the model answered; None if there were none."""
    lost = getattr(model, "lost", 0)
    return f"! Ray workers lost: {lost}. Their questions were sent to other workers." if lost else None


def executor_options(command: Callable[P, T]) -> Callable[..., T]:
    """Add the three executor options; the command receives them as one argument, ``executor``."""

    @click.option(
        "--executor",
        type=click.Choice(EXECUTORS),
        default="local",
        help="Where tickets are judged: in this process, or on Ray.",
    )
    @click.option(
        "--address",
        metavar="ADDRESS",
        help="Address of the Ray cluster (default: RAY_ADDRESS, or a new cluster on this machine).",
    )
    @click.option(
        "--workers", type=click.IntRange(1), metavar="N", help="Number of Ray workers (default: chosen automatically)."
    )
    @wraps(command)
    def with_executor(*args: P.args, **options: P.kwargs) -> T:
        name, address, workers = options.pop("executor"), options.pop("address"), options.pop("workers")
        given = {"--executor": name if name != "local" else None, "--address": address, "--workers": workers}
        again = "".join(f" {key} {shlex.quote(str(value))}" for key, value in given.items() if value is not None)
        options["executor"] = ChosenExecutor(find_executor(name, address, workers), again)  # type: ignore[arg-type]
        return command(*args, **options)

    return with_executor
