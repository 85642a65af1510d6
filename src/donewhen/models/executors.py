"""Where questions are answered: in this process, or by the workers of a Ray cluster.

What is asked, in which order, within which budget, and what becomes of the answers is the same in both cases, because
an executor opens a model and nothing else: whoever asks the model does not know where it answers.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

from donewhen.foundation.errors import UsageError
from donewhen.models.registry import open_model
from donewhen.models.roles import Model

ExecutorName = Literal["local", "ray"]
EXECUTORS: tuple[ExecutorName, ...] = get_args(ExecutorName)


class Executor(Protocol):
    """Opens models, and decides where they answer."""

    def open(self, choice: str) -> Model:
        """The model that a string names."""
        ...


class InProcessExecutor:
    """In this process."""

    def open(self, choice: str) -> Model:
        return open_model(choice)


def find_executor(name: ExecutorName, address: str | None = None, workers: int | None = None) -> Executor:
    """The executor of this name. An address and a number of workers are for Ray alone."""
    if name == "ray":
        from donewhen.models.ray.ray_model import RayExecutor

        return RayExecutor(address, workers)
    if address is not None or workers is not None:
        raise UsageError("--address and --workers are for a Ray cluster.", next_step="Add: --executor ray")
    return InProcessExecutor()
