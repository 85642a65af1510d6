"""Queue, timeouts and retries for calls to a server.

The allowance limits the calls in flight; callers queue here instead of on an overloaded server.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.retrying import backoff_seconds
from donewhen.models.remote.allowance import CallAllowance
from donewhen.models.roles import ModelError

T = TypeVar("T")


class RetryLater(Exception):  # noqa: N818 - what a server asks for
    """A temporary failure. ``slow_down``: the server reported overload."""

    def __init__(self, why: str, *, after: float | None = None, slow_down: bool = False) -> None:
        super().__init__(why)
        self.after = after
        self.slow_down = slow_down


@dataclass(frozen=True)
class Patience:
    """Limits for retries and waits."""

    tries: int = 6
    timeout: float = 120.0
    """Seconds for one call; for a stream, between two chunks."""
    first_pause: float = 0.5
    longest_pause: float = 60.0
    longest_asked_for: float = 600.0
    """The longest pause that a server may ask for."""
    most: int = 1024
    """Maximum number of calls in flight."""


class Pace:
    """Paces the calls to one server, within one event loop."""

    def __init__(
        self, patience: Patience | None = None, *, clock: Clock = SYSTEM_CLOCK, seed: int | None = None
    ) -> None:
        self.patience = patience or Patience()
        self.allowance = CallAllowance(self.patience.most)
        self.in_flight = 0
        self.retries = 0
        self._clock = clock
        self._chance = random.Random(seed)
        self._waiting: deque[asyncio.Future[int]] = deque()
        self._closed_in: asyncio.AbstractEventLoop | None = None

    @property
    def allowed(self) -> float:
        """The current limit on calls in flight."""
        return self.allowance.allowed

    async def call(self, make: Callable[[], Awaitable[T]], *, timed: bool = True) -> T:
        """Wait for a slot, make the call, and retry temporary failures.

        A call that is not ``timed`` has no overall timeout and raises TimeoutError itself.
        """
        last = RetryLater("no call was made")
        for attempt in range(1, self.patience.tries + 1):
            in_flight = await self._enter()
            # Measure from here: waiting for a slot is not latency.
            call = self.allowance.begin(self._clock.monotonic(), in_flight)
            try:
                async with asyncio.timeout(self.patience.timeout if timed else None):
                    answer = await make()
            except RetryLater as again:
                if again.slow_down:
                    self.allowance.refused(call, self.in_flight)
                last = again
            except TimeoutError:
                self.allowance.refused(call, self.in_flight)
                last = RetryLater(f"no answer within {self.patience.timeout:g} seconds")
            else:
                self.allowance.answered(call, self._clock.monotonic())
                return answer
            finally:
                self._leave()
            if attempt < self.patience.tries:
                self.retries += 1
                # Jitter, so that calls that failed together are not retried together.
                jitter = self._chance.random()
                first, longest = self.patience.first_pause, self.patience.longest_pause
                wait = backoff_seconds(attempt, jitter, first=first, longest=longest)
                if last.after is not None:
                    wait = min(last.after, self.patience.longest_asked_for) + first * jitter
                await asyncio.sleep(wait)
        raise ModelError(f"The model did not answer in {self.patience.tries} attempts: {last}.")

    async def _enter(self) -> int:
        """Wait for a slot, and return the number of calls in flight."""
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._let_in()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It got its slot while it was cancelled: release it.
                self._leave()
            raise

    def _leave(self) -> None:
        self.in_flight -= 1
        self._let_in()

    def _let_in(self) -> None:
        """Start at most one waiting call per iteration of the event loop.

        Calls that start together finish together and start together again, which would make the loop alternate
        between busy and idle.
        """
        loop = asyncio.get_running_loop()
        while self._waiting and self.in_flight < int(self.allowed) and self._closed_in is not loop:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(self.in_flight)
                self._closed_in = loop
                loop.call_soon(self._open)

    def _open(self) -> None:
        self._closed_in = None
        self._let_in()
