"""Rollouts on the workers of a Ray cluster.

The driver stays what it is without Ray: it makes the questions, counts them, keeps the answers, writes the record and
reflects. Workers do one thing, they answer. So a worker that is lost has nothing that is missed but the questions that
it was at, and those are put to another.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from donewhen import __version__
from donewhen.foundation.errors import ConfigError, DonewhenError, MissingExtraError
from donewhen.foundation.text import one_line
from donewhen.models.chat import ChatModel
from donewhen.models.local import Local
from donewhen.models.pacing import Patience, TryAgain
from donewhen.models.registry import open_model
from donewhen.models.remote_chat import RemoteChat
from donewhen.models.roles import (
    Case,
    Closable,
    Completion,
    Model,
    ModelError,
    Priced,
    ReflectionRequest,
    RolloutRequest,
    Studious,
)

T = TypeVar("T")

_STARTING = 120.0
"""Seconds until a worker must be there. Weights are loaded meanwhile."""
_SLOTS = 4
"""Questions that a worker is sent at once: one that it is at, and what it goes on with."""
_AT_HAND = 4096


class ExecutorError(DonewhenError):
    """The cluster, or all of its workers, can't be used."""

    code = "executor"


class _Told(NamedTuple):
    """What a worker sends back. Exceptions don't travel: their classes may not survive it."""

    kind: Literal["answer", "again", "error", "refused"]
    completion: Completion | None = None
    why: str = ""
    next_step: str | None = None
    after: float | None = None
    slow_down: bool = False

    def read(self) -> Completion:
        """The answer, or what kept the worker from one."""
        if self.completion is not None:
            return self.completion
        if self.kind == "again":
            raise TryAgain(self.why, after=self.after, slow_down=self.slow_down)
        if self.kind == "error":
            raise ModelError(self.why)
        raise ConfigError(self.why, next_step=self.next_step)


class _Ready(NamedTuple):
    node: str
    version: str
    model: str
    problem: _Told | None


class _Once:
    """Instead of a pace: one try, and the driver hears how it went. It is the one who sees all calls of the cluster."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience

    async def call(self, make: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self.patience.timeout):
                return await make()
        except TimeoutError:
            raise TryAgain(f"no answer within {self.patience.timeout:g} seconds", slow_down=True) from None


class _Worker:
    """Lives in a process of its own, perhaps on another machine, with a model of its own."""

    def __init__(self, choice: str) -> None:
        self._problem: _Told | None = None
        self._model: Model | None = None
        try:
            self._model = open_model(choice)
        except DonewhenError as error:
            self._problem = _refused(error)
        if isinstance(self._model, ChatModel) and isinstance(self._model.chat, RemoteChat):
            self._model.chat.pace = _Once(self._model.chat.pace.patience)

    async def ready(self) -> _Ready:
        """Who it is."""
        return _Ready(os.uname().nodename, __version__, self._model.name if self._model else "", self._problem)

    async def roll(self, request: RolloutRequest) -> _Told:
        """One answer, or why there is none."""
        if self._model is None:
            return self._problem or _Told("refused", why="There is no model.")
        try:
            return _Told("answer", await self._model.roll(request))
        except TryAgain as again:
            return _Told("again", why=str(again), after=again.after, slow_down=again.slow_down)
        except ModelError as error:
            return _Told("error", why=str(error))
        except DonewhenError as error:
            return _refused(error)


def _refused(error: DonewhenError) -> _Told:
    where = f" ({error.where})" if error.where else ""
    return _Told("refused", why=f"{error.message}{where}", next_step=error.next_step)


class OnRay:
    """A Ray cluster: one that is there, by its address, or one of our own on this machine."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise MissingExtraError("--executor ray", "ray") from None
        self._ray = ray
        self._address = address
        self._workers = workers

    def open(self, choice: str) -> Model:
        """A model whose rollouts are answered by workers."""
        return RayModel(self._ray, choice, self._address, self._workers)


@dataclass(eq=False)
class _Place:
    """A worker, as the driver sees it."""

    actor: Any
    node: str
    busy: int = 0


@dataclass
class _Pool:
    """The workers of one event loop."""

    loop: asyncio.AbstractEventLoop
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    places: list[_Place] = field(default_factory=list)
    starting: set[asyncio.Task[None]] = field(default_factory=set)
    problem: DonewhenError | None = None
    lost: int = 0


class RayModel:
    """A model on many machines. Reflection stays here: it is one question at a time, and it has studied what it saw."""

    def __init__(self, ray: Any, choice: str, address: str | None, workers: int | None) -> None:
        self._ray = ray
        self._choice = choice
        self._address = address
        self._wanted = workers
        self._here = open_model(choice)
        self._ours = False
        self._pool: _Pool | None = None
        self._recent: OrderedDict[str, _Place] = OrderedDict()
        self.lost = 0
        """Workers that were lost."""
        chat = self._here.chat if isinstance(self._here, ChatModel) else None
        self._pace = chat.pace if isinstance(chat, RemoteChat) else None
        self._connect()

    @property
    def name(self) -> str:
        return self._here.name

    @property
    def free(self) -> bool:
        return self._here.free

    @property
    def priced(self) -> bool:
        return self._here.priced if isinstance(self._here, Priced) else True

    def study(self, cases: Sequence[Case]) -> None:
        """See all training cases of an epoch, where the model wants to."""
        if isinstance(self._here, Studious):
            self._here.study(cases)

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._here.decide(request)

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._here.propose(request)

    async def roll(self, request: RolloutRequest) -> Completion:
        """Have a worker answer. What is too much for a server is heard from all workers, and slows all of them down."""
        if self._pace is not None:
            return await self._pace.call(lambda: self._answered(request))
        return await self._answered(request)

    async def aclose(self) -> None:
        """Let the workers go, and the cluster, if it is our own."""
        pool, self._pool = self._pool, None
        self._recent.clear()
        if pool is not None:
            starting = list(pool.starting)
            for task in starting:
                task.cancel()
            if pool.loop is asyncio.get_running_loop():
                await asyncio.gather(*starting, return_exceptions=True)
            for place in pool.places:
                self._ray.kill(place.actor)
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()
        self._ours = False
        if isinstance(self._here, Closable):
            await self._here.aclose()

    async def _answered(self, request: RolloutRequest) -> Completion:
        while True:
            place = await self._taken(request.prompt.own)
            asked = place.actor.roll.remote(request)
            try:
                told: _Told = await asked
            except asyncio.CancelledError:
                self._ray.cancel(asked)
                raise
            except self._ray.exceptions.RayTaskError as error:
                raise ExecutorError(f"A worker failed: {one_line(str(error.cause), 200)}.", where=place.node) from error
            except self._ray.exceptions.RayError:
                # The worker, or its machine, is gone. Whatever it was asked is asked again, of another.
                self._replace(place)
            else:
                return told.read()
            finally:
                await self._left(place)

    async def _taken(self, own: str) -> _Place:
        """A worker that has room: the one that knows this ticket, or the one with the least to do."""
        pool = self._joined()
        async with pool.changed:
            while True:
                if pool.problem is not None:
                    raise pool.problem
                room = [one for one in pool.places if self._pace is not None or one.busy < _SLOTS]
                if room:
                    break
                if not pool.places and not pool.starting:
                    raise ExecutorError("There is no worker left.", next_step="Is the cluster still there? ray status")
                await pool.changed.wait()
        known = self._recent.get(own)
        place = known if known in room else min(room, key=lambda one: one.busy)
        self._recent[own] = place
        self._recent.move_to_end(own)
        if len(self._recent) > _AT_HAND:
            self._recent.popitem(last=False)
        place.busy += 1
        return place

    async def _left(self, place: _Place) -> None:
        place.busy -= 1
        if self._pool is not None:
            async with self._pool.changed:
                self._pool.changed.notify(1)

    def _replace(self, place: _Place) -> None:
        """A worker that is gone leaves, and another is started as soon as there is room for it in the cluster."""
        pool = self._pool
        if pool is None or place not in pool.places:
            return
        pool.places.remove(place)
        self.lost += 1
        self._start(pool)

    def _start(self, pool: _Pool) -> None:
        task = asyncio.ensure_future(self._started(pool))
        pool.starting.add(task)
        task.add_done_callback(pool.starting.discard)

    async def _started(self, pool: _Pool) -> None:
        """Add a worker to the pool, or say why there is none."""
        actor = self._actor()
        waiting = asyncio.ensure_future(_result(actor.ready.remote()))
        try:
            # Where there is no room for it, it may wait as long as others are at work.
            while not waiting.done():
                await asyncio.wait([waiting], timeout=_STARTING)
                if not waiting.done() and not pool.places:
                    raise ExecutorError(
                        f"No worker could be started within {_STARTING:g} seconds.",
                        next_step="Has the cluster room for one? ray status",
                    )
            await self._told(pool, place=_Place(actor, self._fit(waiting.result()).node))
        except DonewhenError as error:
            self._ray.kill(actor)
            await self._told(pool, problem=error)
        except self._ray.exceptions.RayError as error:
            told = one_line(str(error).strip().splitlines()[-1], 300)
            problem = ExecutorError(
                f"A worker can't be started: {told}",
                next_step=f"Every node needs Python packages like these here: donewhen {__version__}, and its extras.",
            )
            await self._told(pool, problem=None if pool.places else problem)
        except asyncio.CancelledError:
            with suppress(Exception):
                self._ray.kill(actor)
            raise
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def _told(self, pool: _Pool, *, place: _Place | None = None, problem: DonewhenError | None = None) -> None:
        async with pool.changed:
            if place is not None:
                pool.places.append(place)
            pool.problem = pool.problem or problem
            pool.changed.notify_all()

    def _fit(self, ready: _Ready) -> _Ready:
        """A worker that is the same here as there; others would give other answers."""
        if ready.problem is not None:
            ready.problem.read()
        if (ready.version, ready.model) != (__version__, self.name):
            raise ExecutorError(
                f"The worker on {ready.node} has donewhen {ready.version} with {ready.model}; "
                f"here it is {__version__} with {self.name}.",
                next_step="Install the same on every node, with the same weights.",
            )
        return ready

    def _joined(self) -> _Pool:
        """The workers, as seen from this event loop."""
        loop = asyncio.get_running_loop()
        if self._pool is None or self._pool.loop is not loop:
            self._connect()
            known = self._pool
            self._pool = _Pool(loop)
            if known is None:
                for _ in range(self._count()):
                    self._start(self._pool)
            else:
                self._pool.places = [_Place(one.actor, one.node) for one in known.places]
        return self._pool

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        address = self._address or os.environ.get("RAY_ADDRESS")
        if address is None:
            # A cluster of our own is nobody else's: it stays on loopback, and tells nobody of itself.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        try:
            self._ray.init(address=address or "local", **options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise ExecutorError(
                f"Ray can't be reached: {one_line(str(error), 200)}",
                where=address,
                next_step="Is the cluster there? ray status" if address else "Try: ray start --head",
            ) from error
        self._ours = True

    def _actor(self) -> Any:
        options: dict[str, Any] = {
            "num_cpus": self._cpus(),
            "scheduling_strategy": "SPREAD",
            "max_concurrency": 1000,
            "max_restarts": 0,
            "max_task_retries": 0,
        }
        return self._ray.remote(_Worker).options(**options).remote(self._choice)

    def _count(self) -> int:
        """Workers: as many as were asked for, or what suits the model."""
        if self._wanted is not None:
            return self._wanted
        nodes = self._nodes()
        if self._pace is not None or isinstance(self._here, Local):
            return max(1, len(nodes))
        return max(1, int(sum(nodes)))

    def _cpus(self) -> float:
        """Cores of one worker: weights use all of a machine, a worker that waits for a server next to none."""
        if self._pace is not None:
            return 0.01
        if isinstance(self._here, Local) and self._wanted is None:
            return max(1.0, min(self._nodes(), default=1.0))
        return 1.0

    def _nodes(self) -> list[float]:
        """The cores of each node that is there."""
        return [one["Resources"].get("CPU", 0.0) for one in self._ray.nodes() if one["Alive"]]


async def _result(ref: Any) -> Any:
    return await ref
