"""Choose the event loop for what a check awaits in a thread that has none."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from donewhen.foundation.cancellation import CancelledError, cancelled
from donewhen.foundation.coroutines import is_loop_running, run_awaitable

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_POLL = 0.05

_callers_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("donewhen_callers_loop", default=None)


@contextmanager
def on_loop(loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
    """Context manager: await on ``loop`` what is awaited in threads that are started inside."""
    token = _callers_loop.set(loop)
    try:
        yield
    finally:
        _callers_loop.reset(token)


@contextmanager
def off_blocked_loop() -> Iterator[None]:
    """Context manager: if this thread blocks a running loop, don't use that in threads that are started inside."""
    if _callers_loop.get() is None or not is_loop_running():
        yield
        return
    with on_loop(None):
        yield


def await_blocking(awaitable: Awaitable[T]) -> T:
    """Wait for an awaitable: on the caller's loop if that is free, else on a loop of its own.

    So a client, a lock or a queue keeps working that belongs to the caller's loop. If the check is abandoned meanwhile,
    the awaitable is cancelled.
    """
    loop = _callers_loop.get()
    if loop is None or not loop.is_running() or is_loop_running():
        # Inside a running loop, this thread blocks it, and it may be the caller's.
        with on_loop(None):
            return run_awaitable(awaitable)
    # Imported here, because a hook that awaits nothing should not pay for it.
    import asyncio

    async def awaited() -> _Outcome[T]:
        # An error is returned and not raised, because some errors, such as SystemExit, would end the loop.
        try:
            return _Outcome(value=await awaitable)
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            return _Outcome(error=error)

    future = asyncio.run_coroutine_threadsafe(awaited(), loop)
    while True:
        try:
            outcome = future.result(_POLL)
        except TimeoutError:
            if cancelled() or not loop.is_running():
                future.cancel()
                raise CancelledError("The check was abandoned.") from None
        else:
            if outcome.error is not None:
                raise outcome.error
            return cast("T", outcome.value)


@dataclass(frozen=True)
class _Outcome(Generic[T]):
    value: T | None = None
    error: BaseException | None = None
