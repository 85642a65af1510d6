"""Those who waited for their turn are heard like the others when the server has too much to do."""

from __future__ import annotations

import asyncio

from donewhen.models.remote.pacing import Pace, Patience, RetryLater
from donewhen.models.roles import ModelError
from donewhen.testing.clock import ManualClock


def test_calls_that_waited_tell_of_their_own_moment() -> None:
    clock = ManualClock()

    async def main() -> float:
        pace = Pace(Patience(most=16, tries=1), clock=clock)

        async def too_much() -> str:
            clock.advance(1.0)
            raise RetryLater("too much", slow_down=True)

        calls = [pace.call(too_much) for _ in range(40)]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(answer) for answer in found} == {ModelError}
        return pace.allowed

    assert asyncio.run(main()) == 1.0
