"""A worker of a Ray cluster: opens a model and answers questions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple, TypeVar

from donewhen import __version__
from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.models.chat import ChatModel
from donewhen.models.registry import open_model
from donewhen.models.remote.pacing import Patience, RetryLater
from donewhen.models.remote.remote_chat import RemoteChat
from donewhen.models.roles import Completion, Model, ModelError, RolloutRequest

T = TypeVar("T")


class WorkerAnswer(NamedTuple):
    """A worker's answer or error. Not an exception, because not all exceptions can be pickled."""

    kind: Literal["answer", "again", "error", "refused"]
    completion: Completion | None = None
    why: str = ""
    where: str | None = None
    next_step: str | None = None
    after: float | None = None
    slow_down: bool = False

    def read(self) -> Completion:
        """Return the answer, or raise the error."""
        if self.completion is not None:
            return self.completion
        if self.kind == "again":
            raise RetryLater(self.why, after=self.after, slow_down=self.slow_down)
        if self.kind == "error":
            raise ModelError(self.why)
        raise ConfigError(self.why, where=self.where, next_step=self.next_step)


class WorkerReady(NamedTuple):
    """A worker's description of itself after it has started."""

    node: str
    version: str
    model: str
    problem: WorkerAnswer | None


class _SingleAttempt:
    """Replaces the pace: a single attempt. The driver retries, because it sees the calls of all workers."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.in_flight = 0

    async def call(self, make: Callable[[], Awaitable[T]], *, timed: bool = True) -> T:
        self.in_flight += 1
        try:
            async with asyncio.timeout(self.patience.timeout if timed else None):
                return await make()
        except TimeoutError:
            raise RetryLater(f"no answer within {self.patience.timeout:g} seconds", slow_down=True) from None
        finally:
            self.in_flight -= 1


class RayWorker:
    """Runs in its own process, possibly on another machine, with its own model."""

    def __init__(self, choice: str) -> None:
        self._problem: WorkerAnswer | None = None
        self._model: Model | None = None
        try:
            self._model = open_model(choice)
        except DonewhenError as error:
            self._problem = _refused(error)
        if isinstance(self._model, ChatModel) and isinstance(self._model.chat, RemoteChat):
            self._model.chat.pace = _SingleAttempt(self._model.chat.pace.patience)

    async def ready(self) -> WorkerReady:
        """Return node, version and model."""
        from ray.util import get_node_ip_address

        node = str(get_node_ip_address())
        return WorkerReady(node, __version__, self._model.name if self._model else "", self._problem)

    async def roll(self, request: RolloutRequest) -> WorkerAnswer:
        """Return one answer, or the error."""
        if self._model is None:
            return self._problem or WorkerAnswer("refused", why="The model could not be opened.")
        try:
            return WorkerAnswer("answer", await self._model.roll(request))
        except RetryLater as again:
            return WorkerAnswer("again", why=str(again), after=again.after, slow_down=again.slow_down)
        except ModelError as error:
            return WorkerAnswer("error", why=str(error))
        except DonewhenError as error:
            return _refused(error)


def _refused(error: DonewhenError) -> WorkerAnswer:
    return WorkerAnswer("refused", why=error.message, where=error.where, next_step=error.next_step)
