"""Executors: run model calls in this process or on the workers of a Ray cluster.

An executor only opens models, so callers, budgets and the order of questions are the same in both cases.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

from donewhen.foundation.errors import UsageError
from donewhen.models.registry import open_model
from donewhen.models.roles import Model

ExecutorName = Literal["local", "ray"]
EXECUTORS: tuple[ExecutorName, ...] = get_args(ExecutorName)


class Executor(Protocol):
    """Opens models and decides where they run."""

    def open(self, choice: str) -> Model:
        """Open the model that a string names."""
        ...


class InProcessExecutor:
    """Runs models in this process."""

    def open(self, choice: str) -> Model:
        return open_model(choice)


def find_executor(name: ExecutorName, address: str | None = None, workers: int | None = None) -> Executor:
    """Return the executor of this name. ``address`` and ``workers`` are for Ray only."""
    if name == "ray":
        from donewhen.models.ray.ray_model import RayExecutor

        return RayExecutor(address, workers)
    if address is not None or workers is not None:
        raise UsageError("--address and --workers need a Ray cluster.", next_step="Add: --executor ray")
    return InProcessExecutor()
