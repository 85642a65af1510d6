"""Rollouts on the workers of a Ray cluster.

The driver stays what it is without Ray: it makes the questions, counts them, keeps the answers, writes the record and
reflects. Workers do one thing, they answer. So a worker that is lost has nothing that is missed but the questions that
it was at, and those are put to another.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from donewhen import __version__
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import redact_secrets
from donewhen.models.chat import ChatModel
from donewhen.models.local.local_model import LocalModel
from donewhen.models.ray.ray_cluster import ExecutorError, connect_to_cluster, import_ray, leave_cluster
from donewhen.models.ray.ray_worker import RayWorker, WorkerAnswer, WorkerReady
from donewhen.models.registry import open_model
from donewhen.models.remote.remote_chat import RemoteChat
from donewhen.models.roles import (
    Case,
    Closable,
    Completion,
    Model,
    Priced,
    ReflectionRequest,
    RolloutRequest,
    Studious,
    Terse,
)

STARTING = 120.0
"""Seconds until a worker must be there, where no other is at work. Weights are looked at meanwhile."""
_SLOTS = 4
"""Questions that a worker is sent at once: one that it is at, and what it goes on with."""
_AT_HAND = 4096
_TRIES = 3
"""A node may be lost while a worker is started on it, and the next one as well."""
_LOSSES = 5
"""So many workers may be lost over one question; then it is the question."""


class RayExecutor:
    """A Ray cluster: one that is there, by its address, or one of our own on this machine."""

    def __init__(self, address: str | None = None, workers: int | None = None, *, starting: float = STARTING) -> None:
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self._ray = import_ray(own=self._address is None)
        self._workers = workers
        self._starting = starting

    def open(self, choice: str) -> Model:
        """A model whose rollouts are answered by workers."""
        return RayModel(self._ray, _from_anywhere(choice), self._address, self._workers, self._starting)


def _from_anywhere(choice: str) -> str:
    """The same model by a name that means the same in another folder."""
    kind, _, path = choice.partition(":")
    if kind == "local" and path and not path.startswith("~"):
        return f"local:{Path(path).absolute()}"
    return choice


@dataclass(eq=False)
class _Place:
    """A worker, as the driver sees it."""

    actor: Any
    node: str
    busy: int = 0


@dataclass
class _Pool:
    """The workers of one event loop, and who waits for one."""

    loop: asyncio.AbstractEventLoop
    places: list[_Place] = field(default_factory=list)
    starting: set[asyncio.Task[None]] = field(default_factory=set)
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    problem: DonewhenError | None = None

    async def changed(self) -> None:
        """Wait until there may be room."""
        turn: asyncio.Future[None] = self.loop.create_future()
        self.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was called at the same moment: somebody else can go.
                self.call(1)
            raise

    def call(self, count: int | None = None) -> None:
        """Let so many look again, or all."""
        left = len(self.waiting) if count is None else count
        while left and self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                left -= 1


class RayModel:
    """A model on many machines. Reflection stays here: it is one question at a time, and it has studied what it saw."""

    def __init__(
        self, ray: Any, choice: str, address: str | None, workers: int | None, starting: float = STARTING
    ) -> None:
        self._ray = ray
        self._choice = choice
        self._address = address
        self._wanted = workers
        self._starting = starting
        self._here = open_model(choice)
        self._pool: _Pool | None = None
        self._recent: OrderedDict[int, _Place] = OrderedDict()
        self.lost = 0
        """Workers that were lost."""
        chat = self._here.chat if isinstance(self._here, ChatModel) else None
        self._remote = chat if isinstance(chat, RemoteChat) else None
        connect_to_cluster(self._ray, self, self._address)

    @property
    def name(self) -> str:
        return self._here.name

    @property
    def free(self) -> bool:
        return self._here.free

    @property
    def priced(self) -> bool:
        return self._here.priced if isinstance(self._here, Priced) else True

    @property
    def reads_reasons(self) -> bool:
        return self._here.reads_reasons if isinstance(self._here, Terse) else True

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
        if self._remote is None:
            return await self._answered(request)
        # Before it is anybody's turn: how long workers take to start says nothing about the server.
        await self._room()
        completion = await self._remote.pace.call(lambda: self._answered(request))
        # By the prices that hold here.
        return completion._replace(cost=self._remote.cost_of(completion.usage))

    async def aclose(self) -> None:
        """Let the workers go, and the cluster, if it is our own."""
        pool, self._pool = self._pool, None
        self._recent.clear()
        if pool is not None and pool.loop is asyncio.get_running_loop():
            starting = list(pool.starting)
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)
        for place in pool.places if pool is not None else ():
            self._let_go(place.actor)
        leave_cluster(self._ray, self)
        if isinstance(self._here, Closable):
            await self._here.aclose()

    async def _answered(self, request: RolloutRequest) -> Completion:
        for _ in range(_LOSSES):
            place = await self._taken(request.prompt.own)
            try:
                return (await self._told_by(place, request)).read()
            except self._ray.exceptions.RayTaskError as error:
                told = one_line(redact_secrets(str(error.cause)), 200)
                raise ExecutorError(f"A worker failed: {told}.", where=place.node) from error
            except self._ray.exceptions.RayError:
                # The worker, or its machine, is gone. Whatever it was asked is asked again, of another.
                self._replace(place)
            finally:
                place.busy -= 1
                if self._pool is not None:
                    self._pool.call(1)
        raise ExecutorError(
            f"{_LOSSES} workers were lost, one after the other, over the same question.",
            next_step="Have they enough memory? The logs of Ray on the nodes say why they ended.",
        )

    async def _told_by(self, place: _Place, request: RolloutRequest) -> WorkerAnswer:
        asked = place.actor.roll.remote(request)
        try:
            told: WorkerAnswer = await asked
        except asyncio.CancelledError:
            with suppress(self._ray.exceptions.RayError, RuntimeError, ValueError):
                self._ray.cancel(asked)
            raise
        if told.kind == "refused":
            return told._replace(next_step=told.next_step or f"It was asked from {place.node}.")
        return told

    async def _room(self) -> list[_Place]:
        """The workers that can be asked now, as soon as there is one."""
        pool = self._joined()
        while True:
            if pool.problem is not None:
                raise pool.problem
            # The pace decides how much a server gets; a model on a worker has one question at a time.
            room = [place for place in pool.places if self._remote is not None or place.busy < _SLOTS]
            if room:
                return room
            if not pool.places and not pool.starting:
                raise ExecutorError("There is no worker left.", next_step="Is the cluster still there? ray status")
            await pool.changed()

    async def _taken(self, own: str) -> _Place:
        """A worker that has room: the one that knows this ticket, or the one with the least to do."""
        room = await self._room()
        ticket = hash(own)
        known = self._recent.get(ticket)
        place = known if known in room and self._remote is None else min(room, key=lambda one: one.busy)
        self._recent[ticket] = place
        self._recent.move_to_end(ticket)
        if len(self._recent) > _AT_HAND:
            self._recent.popitem(last=False)
        place.busy += 1
        return place

    def _replace(self, place: _Place) -> None:
        """A worker that is gone leaves, and another is started as soon as there is room for it in the cluster."""
        pool = self._pool
        if pool is None or place not in pool.places:
            return
        pool.places.remove(place)
        # It may only be out of reach; then it must not keep the room that its successor needs.
        self._let_go(place.actor)
        self.lost += 1
        self._start(pool)

    def _start(self, pool: _Pool) -> None:
        task = asyncio.ensure_future(self._started(pool))
        pool.starting.add(task)
        task.add_done_callback(pool.starting.discard)

    async def _started(self, pool: _Pool) -> None:
        """Add a worker to the pool, or say why there is none."""
        try:
            pool.places.append(await self._new_place(pool))
        except _NoWorkerError as error:
            if not pool.places and len(pool.starting) == 1:
                pool.problem = pool.problem or error
        except DonewhenError as error:
            pool.problem = pool.problem or error
        finally:
            # Before anybody looks: who has ended is not starting any more.
            pool.starting.discard(asyncio.current_task())
            pool.call()

    async def _new_place(self, pool: _Pool) -> _Place:
        for left in reversed(range(_TRIES)):
            actor = None
            try:
                actor = self._actor()
                return _Place(actor, self._fit(await self._there(actor, pool)).node)
            except self._ray.exceptions.RayError as error:
                if not left:
                    told = one_line(redact_secrets(str(error).strip().splitlines()[-1]), 300)
                    raise _NoWorkerError(
                        f"A worker can't be started: {told}",
                        next_step=f"Every node needs the packages that are here: donewhen {__version__}, its extras.",
                    ) from error
            except BaseException:
                if actor is not None:
                    self._let_go(actor)
                raise
        raise AssertionError("the last try raises")

    async def _there(self, actor: Any, pool: _Pool) -> WorkerReady:
        """Wait for a worker. Where there is no room for it, it may take as long as others are at work."""
        waiting = asyncio.ensure_future(_result(actor.ready.remote()))
        try:
            while not waiting.done():
                await asyncio.wait([waiting], timeout=self._starting)
                if not waiting.done() and not pool.places:
                    raise _NoWorkerError(
                        f"No worker could be started within {self._starting:g} seconds.",
                        next_step="Has the cluster room for one? ray status",
                    )
            ready: WorkerReady = waiting.result()
            return ready
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    def _fit(self, ready: WorkerReady) -> WorkerReady:
        """A worker that is the same here as there; others would give other answers."""
        if ready.problem is not None:
            raise ExecutorError(
                f"The worker on {ready.node} has no model. {ready.problem.why}",
                where=ready.problem.where,
                next_step=ready.problem.next_step,
            )
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
            connect_to_cluster(self._ray, self, self._address)
            known = self._pool.places if self._pool is not None else []
            self._pool = _Pool(loop, [_Place(one.actor, one.node) for one in known])
            for _ in range(self._count() - len(known)):
                self._start(self._pool)
        return self._pool

    def _let_go(self, actor: Any) -> None:
        with suppress(self._ray.exceptions.RayError, RuntimeError, ValueError):
            self._ray.kill(actor)

    def _actor(self) -> Any:
        options: dict[str, Any] = {
            "num_cpus": self._cpus(),
            "scheduling_strategy": "SPREAD",
            "max_concurrency": 1000,
            "max_restarts": 0,
            "max_task_retries": 0,
        }
        return self._ray.remote(RayWorker).options(**options).remote(self._choice)

    def _count(self) -> int:
        """Workers: as many as were asked for, or what suits the model."""
        if self._wanted is not None:
            return self._wanted
        nodes = self._nodes()
        if self._remote is not None or isinstance(self._here, LocalModel):
            return max(1, len(nodes))
        return max(1, int(sum(nodes)))

    def _cpus(self) -> float:
        """Cores of one worker: weights use all of a machine, a worker that waits for a server next to none."""
        if self._remote is not None:
            return 0.01
        if isinstance(self._here, LocalModel) and self._wanted is None:
            return min(self._nodes(), default=1.0)
        return 1.0

    def _nodes(self) -> list[float]:
        """The cores of each node that has some; a head is often there for others only."""
        found = [node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]]
        return [one for one in found if one >= 1]


class _NoWorkerError(ExecutorError):
    """One worker is not there; others may be."""


async def _result(ref: Any) -> Any:
    return await ref
