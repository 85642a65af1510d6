"""Rollouts on the workers of a Ray cluster.

The driver creates and counts the questions, stores the answers, writes the record and reflects, as without Ray. Workers
only answer, so when a worker is lost, its open questions are sent to another one and nothing else is missing.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from donewhen import __version__
from donewhen.foundation.binary import Binary
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
    Decode,
    Model,
    Priced,
    ReflectionRequest,
    RolloutRequest,
    Studious,
    Terse,
    UnreadRule,
    distinct_decode,
    rules_in_doubt,
    scores_in_points,
    unread_rules,
)

STARTING = 120.0
"""Seconds for a worker to start, including reading its weights, if no other worker is running."""
_SLOTS = 4
"""Questions sent to a worker at once: the current one and the next ones."""
_AT_HAND = 4096
_TRIES = 3
"""Attempts to start a worker: its node may be lost meanwhile."""
_LOSSES = 5
"""After this many lost workers, the question itself is the problem."""


class RayExecutor:
    """A Ray cluster: an existing one by its address, or a private one on this machine."""

    def __init__(self, address: str | None = None, workers: int | None = None, *, starting: float = STARTING) -> None:
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self._ray = import_ray(own=self._address is None)
        self._workers = workers
        self._starting = starting

    def open(self, choice: str) -> Model:
        """Open a model whose rollouts run on workers."""
        return RayModel(self._ray, _with_absolute_path(choice), self._address, self._workers, self._starting)


def _with_absolute_path(choice: str) -> str:
    """Return the model string with an absolute path, so that it is valid in any folder."""
    kind, _, path = choice.partition(":")
    if kind == "local" and path and not path.startswith("~"):
        return f"local:{Path(path).absolute()}"
    return choice


@dataclass(eq=False)
class _WorkerSlot:
    """A worker as seen by the driver."""

    actor: Any
    node: str
    busy: int = 0


@dataclass
class _Pool:
    """The workers of one event loop, and the queue of waiting calls."""

    loop: asyncio.AbstractEventLoop
    places: list[_WorkerSlot] = field(default_factory=list)
    starting: set[asyncio.Task[None]] = field(default_factory=set)
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    problem: DonewhenError | None = None

    async def changed(self) -> None:
        """Wait until a worker may be free."""
        turn: asyncio.Future[None] = self.loop.create_future()
        self.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was woken while it was cancelled: wake another one.
                self.wake(1)
            raise

    def wake(self, count: int | None = None) -> None:
        """Wake ``count`` waiting calls, or all."""
        left = len(self.waiting) if count is None else count
        while left and self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                left -= 1


class RayModel:
    """A model on many machines. Reflection stays in this process: it is sequential and has state."""

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
        self._recent: OrderedDict[int, _WorkerSlot] = OrderedDict()
        self.lost = 0
        """Number of lost workers."""
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

    @property
    def in_points(self) -> bool:
        return scores_in_points(self._here)

    def same_as(self, decode: Decode) -> Decode:
        """Return what identifies a decode for the model on the workers."""
        return distinct_decode(self._here, decode)

    def unread_rules(self, rules: Mapping[str, str]) -> tuple[UnreadRule, ...]:
        return unread_rules(self._here, rules)

    def rules_in_doubt(self, request: RolloutRequest, verdict: Binary) -> tuple[str, ...]:
        return rules_in_doubt(self._here, request, verdict)

    def study(self, cases: Sequence[Case]) -> None:
        """Pass the training cases of an epoch to the model if it studies them."""
        if isinstance(self._here, Studious):
            self._here.study(cases)

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._here.decide(request)

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._here.propose(request)

    async def roll(self, request: RolloutRequest) -> Completion:
        """Let a worker answer. An overloaded server slows down the calls of all workers."""
        if self._remote is None:
            return await self._ask_workers(request)
        # Wait for workers first: their start-up time is not the server's latency.
        await self._free_workers()
        completion = await self._remote.pace.call(lambda: self._ask_workers(request))
        # Use this machine's price table.
        return completion._replace(cost=self._remote.cost_of(completion.usage))

    async def aclose(self) -> None:
        """Stop the workers, and the cluster if it is private."""
        pool, self._pool = self._pool, None
        self._recent.clear()
        if pool is not None and pool.loop is asyncio.get_running_loop():
            starting = list(pool.starting)
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)
        for place in pool.places if pool is not None else ():
            self._kill(place.actor)
        leave_cluster(self._ray, self)
        if isinstance(self._here, Closable):
            await self._here.aclose()

    async def _ask_workers(self, request: RolloutRequest) -> Completion:
        for _ in range(_LOSSES):
            place = await self._take_worker(request.prompt.own)
            try:
                return (await self._ask_worker(place, request)).read()
            except self._ray.exceptions.RayTaskError as error:
                reason = one_line(redact_secrets(str(error.cause)), 200).removesuffix(".")
                raise ExecutorError(f"A worker failed: {reason}.", where=place.node) from error
            except self._ray.exceptions.RayError:
                # The worker or its machine is lost: send the question to another one.
                self._replace(place)
            finally:
                place.busy -= 1
                if self._pool is not None:
                    self._pool.wake(1)
        raise ExecutorError(
            f"{_LOSSES} workers in a row were lost on the same question.",
            next_step="Check their memory, and Ray's logs on the nodes.",
        )

    async def _ask_worker(self, place: _WorkerSlot, request: RolloutRequest) -> WorkerAnswer:
        ref = place.actor.roll.remote(request)
        try:
            answer: WorkerAnswer = await ref
        except asyncio.CancelledError:
            with suppress(self._ray.exceptions.RayError, RuntimeError, ValueError):
                self._ray.cancel(ref)
            raise
        if answer.kind == "refused":
            return answer._replace(next_step=answer.next_step or f"The request came from {place.node}.")
        return answer

    async def _free_workers(self) -> list[_WorkerSlot]:
        """Wait for a free worker, and return all that are free."""
        pool = self._current_pool()
        while True:
            if pool.problem is not None:
                raise pool.problem
            # The pace limits calls to a server; a model on a worker answers one question at a time.
            free = [place for place in pool.places if self._remote is not None or place.busy < _SLOTS]
            if free:
                return free
            if not pool.places and not pool.starting:
                raise ExecutorError("No workers left.", next_step="Check that the cluster is running: ray status")
            await pool.changed()

    async def _take_worker(self, own: str) -> _WorkerSlot:
        """Take a free worker: the one that has seen this ticket, else the least busy one."""
        free = await self._free_workers()
        ticket = hash(own)
        known = self._recent.get(ticket)
        place = known if known in free and self._remote is None else min(free, key=lambda worker: worker.busy)
        self._recent[ticket] = place
        self._recent.move_to_end(ticket)
        if len(self._recent) > _AT_HAND:
            self._recent.popitem(last=False)
        place.busy += 1
        return place

    def _replace(self, place: _WorkerSlot) -> None:
        """Remove a lost worker and start another one."""
        pool = self._pool
        if pool is None or place not in pool.places:
            return
        pool.places.remove(place)
        # It may only be unreachable; kill it to free its resources.
        self._kill(place.actor)
        self.lost += 1
        self._start(pool)

    def _start(self, pool: _Pool) -> None:
        task = asyncio.ensure_future(self._add_worker(pool))
        pool.starting.add(task)
        task.add_done_callback(pool.starting.discard)

    async def _add_worker(self, pool: _Pool) -> None:
        """Start a worker and add it to the pool, or record the problem."""
        try:
            pool.places.append(await self._start_worker(pool))
        except _NoWorkerError as error:
            if not pool.places and len(pool.starting) == 1:
                pool.problem = pool.problem or error
        except DonewhenError as error:
            pool.problem = pool.problem or error
        finally:
            # Remove this task before the waiting calls check the pool.
            pool.starting.discard(asyncio.current_task())
            pool.wake()

    async def _start_worker(self, pool: _Pool) -> _WorkerSlot:
        for left in reversed(range(_TRIES)):
            actor = None
            try:
                actor = self._actor()
                return _WorkerSlot(actor, self._check_ready(await self._wait_until_ready(actor, pool)).node)
            except self._ray.exceptions.RayError as error:
                if not left:
                    reason = one_line(redact_secrets(str(error).strip().splitlines()[-1]), 300)
                    raise _NoWorkerError(
                        f"A worker can't be started: {reason}",
                        next_step=f"Every node needs the same packages: donewhen {__version__} and its extras.",
                    ) from error
            except BaseException:
                if actor is not None:
                    self._kill(actor)
                raise
        raise AssertionError("the last try raises")

    async def _wait_until_ready(self, actor: Any, pool: _Pool) -> WorkerReady:
        """Wait for a worker to start. There is no time limit while other workers are running."""
        waiting = asyncio.ensure_future(_await_ref(actor.ready.remote()))
        try:
            while not waiting.done():
                await asyncio.wait([waiting], timeout=self._starting)
                if not waiting.done() and not pool.places:
                    raise _NoWorkerError(
                        f"No worker could be started within {self._starting:g} seconds.",
                        next_step="Check that the cluster has free resources: ray status",
                    )
            ready: WorkerReady = waiting.result()
            return ready
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    def _check_ready(self, ready: WorkerReady) -> WorkerReady:
        """Return ``ready`` if the worker has the same version and model; others would give other answers."""
        if ready.problem is not None:
            raise ExecutorError(
                f"The worker on {ready.node} can't open the model. {ready.problem.why}",
                where=ready.problem.where,
                next_step=ready.problem.next_step,
            )
        if (ready.version, ready.model) != (__version__, self.name):
            raise ExecutorError(
                f"The worker on {ready.node} has donewhen {ready.version} with {ready.model}; "
                f"this machine has {__version__} with {self.name}.",
                next_step="Install the same version and weights on every node.",
            )
        return ready

    def _current_pool(self) -> _Pool:
        """Return the pool of this event loop; create it if necessary."""
        loop = asyncio.get_running_loop()
        if self._pool is None or self._pool.loop is not loop:
            connect_to_cluster(self._ray, self, self._address)
            known = self._pool.places if self._pool is not None else []
            self._pool = _Pool(loop, [_WorkerSlot(worker.actor, worker.node) for worker in known])
            for _ in range(self._count() - len(known)):
                self._start(self._pool)
        return self._pool

    def _kill(self, actor: Any) -> None:
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
        """Return the number of workers: as requested, else by the kind of model."""
        if self._wanted is not None:
            return self._wanted
        nodes = self._nodes()
        if self._remote is not None or isinstance(self._here, LocalModel):
            return max(1, len(nodes))
        return max(1, int(sum(nodes)))

    def _cpus(self) -> float:
        """Return the cores per worker: all of a node for local weights, almost none for a remote server."""
        if self._remote is not None:
            return 0.01
        if isinstance(self._here, LocalModel) and self._wanted is None:
            return min(self._nodes(), default=1.0)
        return 1.0

    def _nodes(self) -> list[float]:
        """Return the cores of each node that has any; a head node often has none."""
        cores = [node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]]
        return [count for count in cores if count >= 1]


class _NoWorkerError(ExecutorError):
    """One worker could not be started; others may run."""


async def _await_ref(ref: Any) -> Any:
    return await ref
