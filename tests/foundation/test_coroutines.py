"""A coroutine is run from code that is not asynchronous."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from donewhen.foundation.coroutines import is_loop_running, run_awaitable

WORD = contextvars.ContextVar("WORD", default="unset")


async def answer() -> str:
    await asyncio.sleep(0)
    return WORD.get()


def test_it_runs_where_no_loop_is_running() -> None:
    WORD.set("plain")
    assert not is_loop_running()
    assert run_awaitable(answer()) == "plain"


def test_it_runs_inside_a_running_loop_with_its_context() -> None:
    async def main() -> str:
        WORD.set("inside")
        assert is_loop_running()
        return run_awaitable(answer())

    assert asyncio.run(main()) == "inside"


def test_any_awaitable_can_be_run() -> None:
    class Later:
        def __await__(self):  # type: ignore[no-untyped-def]
            yield from asyncio.sleep(0).__await__()
            return 7

    assert run_awaitable(Later()) == 7


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), asyncio.CancelledError()])
def test_an_error_is_raised_from_both(error: BaseException) -> None:
    async def fail() -> None:
        raise error

    async def main() -> None:
        run_awaitable(fail())

    with pytest.raises(type(error)):
        run_awaitable(fail())
    with pytest.raises(type(error)):
        asyncio.run(main())
