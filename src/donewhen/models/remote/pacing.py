"""Whose turn it is to call a server, how long to wait for an answer, and when to try again.

How many calls there are at once is up to the allowance. Every caller waits its turn here; nothing is queued up behind a
server that can't keep up.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.models.remote.allowance import CallAllowance
from donewhen.models.roles import ModelError

T = TypeVar("T")


class RetryLater(Exception):  # noqa: N818 - what a server asks for
    """A call failed in a way that may pass. ``slow_down`` where the server says that it is too much."""

    def __init__(self, why: str, *, after: float | None = None, slow_down: bool = False) -> None:
        super().__init__(why)
        self.after = after
        self.slow_down = slow_down


class Patience(NamedTuple):
    """How much is put up with."""

    tries: int = 6
    timeout: float = 120.0
    """Seconds for one call; for one that comes in pieces, from one piece to the next."""
    first_pause: float = 0.5
    longest_pause: float = 60.0
    longest_asked_for: float = 600.0
    """A server may ask for a longer pause than we would make."""
    most: int = 1024
    """Calls in flight, at most; how many there are is up to who asks."""


class Pace:
    """One for each server. Made for one event loop."""

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
        """How many calls may be in flight now."""
        return self.allowance.allowed

    async def call(self, make: Callable[[], Awaitable[T]], *, timed: bool = True) -> T:
        """Make a call when it is its turn, and again where that may help.

        One that is not ``timed`` has as long as it takes, and raises TimeoutError itself where nothing comes any more.
        """
        pause = self.patience.first_pause
        last = RetryLater("it was not asked")
        for attempt in range(1, self.patience.tries + 1):
            in_flight = await self._enter()
            # From here, because whoever waited has not told the server anything yet.
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
                # Jitter, so that those who failed together don't come back together.
                luck = self._chance.random()
                wait = min(pause * (0.5 + luck), self.patience.longest_pause)
                if last.after is not None:
                    wait = min(last.after, self.patience.longest_asked_for) + self.patience.first_pause * luck
                await asyncio.sleep(wait)
                pause = min(pause * 2, self.patience.longest_pause)
        raise ModelError(f"The model did not answer in {self.patience.tries} tries: {last}.")

    async def _enter(self) -> int:
        """Wait for a turn; how many calls are in flight from then on."""
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._let_in()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was given its turn at the same moment: somebody else can have it.
                self._leave()
            raise

    def _leave(self) -> None:
        self.in_flight -= 1
        self._let_in()

    def _let_in(self) -> None:
        """One in each turn of the event loop.

        Calls that are made together are answered together, and then made together again: the loop would be busy with
        all of them at once, and idle in between.
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
