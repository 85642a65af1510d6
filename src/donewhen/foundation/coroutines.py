"""Run a coroutine from code that is not asynchronous."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


def run_awaitable(awaitable: Awaitable[T]) -> T:
    """Run an awaitable in its own event loop, from any thread, even one whose loop is already running.

    Inside a running loop it runs in another thread, with a copy of the context, and blocks the loop meanwhile.
    """
    # Imported here, because a hook that awaits nothing should not pay for it.
    import asyncio

    async def awaited() -> T:
        return await awaitable

    if not is_loop_running():
        return asyncio.run(awaited())
    outcome: list[T] = []
    failure: list[BaseException] = []
    context_copy = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.append(context_copy.run(asyncio.run, awaited()))
        except BaseException as error:  # noqa: BLE001 - raised again below
            failure.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def is_loop_running() -> bool:
    """Whether this thread is inside a running event loop, such as in a notebook."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
