"""The options that say where a model answers, and what comes of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import click

from donewhen.models.executors import EXECUTORS, Executor, find_executor
from donewhen.models.roles import Model

P = ParamSpec("P")
T = TypeVar("T")


class ChosenExecutor(NamedTuple):
    """An executor, and how one asks for it again."""

    executor: Executor
    options: str

    def open(self, choice: str) -> Model:
        return self.executor.open(choice)


def lost_workers(model: Model) -> str | None:
    """What people should know of the workers of a model, once it has answered."""
    lost = getattr(model, "lost", 0)
    return f"! Ray workers that were lost: {lost}. What they were at was asked again." if lost else None


def executor_options(command: Callable[P, T]) -> Callable[..., T]:
    """Three options, which the command gets as one: ``executor``."""

    @click.option(
        "--executor", type=click.Choice(EXECUTORS), default="local", help="Where tickets are judged: here, or on Ray."
    )
    @click.option(
        "--address",
        metavar="ADDRESS",
        help="The Ray cluster (or RAY_ADDRESS); without, one is made on this machine.",
    )
    @click.option("--workers", type=click.IntRange(1), metavar="N", help="So many Ray workers, instead of what suits.")
    @wraps(command)
    def with_executor(*args: P.args, **options: P.kwargs) -> T:
        name, address, workers = options.pop("executor"), options.pop("address"), options.pop("workers")
        given = {"--executor": name if name != "local" else None, "--address": address, "--workers": workers}
        again = "".join(f" {key} {shlex.quote(str(one))}" for key, one in given.items() if one is not None)
        options["executor"] = ChosenExecutor(find_executor(name, address, workers), again)  # type: ignore[arg-type]
        return command(*args, **options)

    return with_executor
