"""The options that say where a model answers, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click

from donewhen.models.executors import EXECUTORS, executor_of

P = ParamSpec("P")
T = TypeVar("T")


def executor_options(command: Callable[P, T]) -> Callable[..., T]:
    """Three options, which the command gets as one: ``executor``."""

    @click.option(
        "--executor", type=click.Choice(EXECUTORS), default="local", help="Where tickets are judged: here, or on Ray."
    )
    @click.option("--address", metavar="ADDRESS", help="The Ray cluster; without one, it is made on this machine.")
    @click.option("--workers", type=click.IntRange(1), metavar="N", help="So many Ray workers, instead of what suits.")
    @wraps(command)
    def with_executor(*args: P.args, **options: P.kwargs) -> T:
        chosen = options.pop("executor"), options.pop("address"), options.pop("workers")
        options["executor"] = executor_of(*chosen)  # type: ignore[arg-type]
        return command(*args, **options)

    return with_executor
