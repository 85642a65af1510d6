"""How many calls at once, how long to wait for one, and when to try again.

As many calls are in flight as are asked for, until a server says that it is too much: then half as many, and from
there on one more for each round of answers. Every caller waits its turn; nothing is queued up behind a server that
can't keep up.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.models.roles import ModelError

T = TypeVar("T")


class TryAgain(Exception):  # noqa: N818 - what a server asks for
    """A call failed in a way that may pass. ``slow_down`` where the server says that it is too much."""

    def __init__(self, why: str, *, after: float | None = None, slow_down: bool = False) -> None:
        super().__init__(why)
        self.after = after
        self.slow_down = slow_down


class Patience(NamedTuple):
    """How much is put up with."""

    tries: int = 6
    timeout: float = 120.0
    """Seconds for one call."""
    first_pause: float = 0.5
    longest_pause: float = 60.0
    most: int = 1024
    """Calls in flight, at most; how many there are is up to who asks."""


class Pace:
    """One for each server. Made for one event loop."""

    def __init__(
        self, patience: Patience | None = None, *, clock: Clock = SYSTEM_CLOCK, seed: int | None = None
    ) -> None:
        self.patience = patience or Patience()
        self.allowed = float(self.patience.most)
        self.in_flight = 0
        self.retries = 0
        self._clock = clock
        self._chance = random.Random(seed)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._slowed_at = float("-inf")

    async def call(self, make: Callable[[], Awaitable[T]]) -> T:
        """Make a call when it is its turn, and again where that may help."""
        pause = self.patience.first_pause
        last = TryAgain("it was not asked")
        for attempt in range(1, self.patience.tries + 1):
            await self._enter()
            # From here, because whoever waited has not told the server anything yet.
            began = self._clock.monotonic()
            try:
                async with asyncio.timeout(self.patience.timeout):
                    answer = await make()
            except TryAgain as again:
                self._failed(began, again.slow_down)
                last = again
            except TimeoutError:
                self._failed(began, slow_down=True)
                last = TryAgain(f"no answer within {self.patience.timeout:g} seconds")
            else:
                self._succeeded()
                return answer
            finally:
                self._leave()
            if attempt < self.patience.tries:
                self.retries += 1
                # Jitter, so that those who failed together don't come back together.
                wait = last.after if last.after is not None else pause * (0.5 + self._chance.random())
                await asyncio.sleep(min(wait, self.patience.longest_pause))
                pause = min(pause * 2, self.patience.longest_pause)
        raise ModelError(f"The model did not answer in {self.patience.tries} tries: {last}.")

    async def _enter(self) -> None:
        if self.in_flight < int(self.allowed) and not self._waiting:
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was given its turn at the same moment: somebody else can have it.
                self._leave()
            raise

    def _leave(self) -> None:
        self.in_flight -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self.in_flight < int(self.allowed):
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    def _succeeded(self) -> None:
        if self.in_flight >= int(self.allowed) - 1:
            self.allowed = min(self.patience.most, self.allowed + 1 / self.allowed)

    def _failed(self, began: float, slow_down: bool) -> None:
        """Halve once for all the calls that were in flight together: they all tell of the same moment."""
        if slow_down and began > self._slowed_at:
            # Half of what there really was: more was allowed than anybody wanted.
            self.allowed = max(1.0, min(self.allowed, self.in_flight) / 2)
            self._slowed_at = self._clock.monotonic()
