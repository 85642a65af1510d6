"""Judge tickets as they arrive, from a file or from a pipe whose writer waits for each verdict."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress

from donewhen.judging.judge import HELD, Judge
from donewhen.judging.ticket import Ticket, TicketError
from donewhen.judging.verdict import Verdict


async def stream_verdicts(
    judge: Judge, tickets: Iterable[Ticket | TicketError], *, piped: bool
) -> AsyncGenerator[Verdict | TicketError, None]:
    """Yield verdicts in the order of the tickets, each as soon as possible; ticket errors keep their place.

    With ``piped``, reading never delays a verdict: the writer may wait for it before it writes the next ticket. Memory
    is bounded: at most ``HELD`` times the concurrency is held, so that a slow ticket does not block the others, and as
    many tickets as are judged at once are read ahead.
    """
    at_once = judge.mission.settings.concurrency
    waiting: deque[asyncio.Task[Verdict] | TicketError] = deque()
    running = 0
    freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_done(_: asyncio.Task[Verdict]) -> None:
        nonlocal running
        running -= 1
        if not freed.done():
            freed.set_result(None)

    reading = _read_ahead(tickets, at_once) if piped else _read(tickets)
    next_ticket: asyncio.Task[Ticket | TicketError | None] | None = asyncio.ensure_future(anext(reading, None))
    try:
        while next_ticket is not None or waiting:
            first = waiting[0] if waiting else None
            if isinstance(first, TicketError):
                waiting.popleft()
                yield first
                continue
            if first is not None and first.done():
                waiting.popleft()
                yield first.result()
                continue
            if freed.done():
                freed = asyncio.get_running_loop().create_future()
            readable = next_ticket if running < at_once and len(waiting) < HELD * at_once else None
            awaited = [future for future in (first, readable or freed) if future is not None]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if readable is not None and readable.done():
                ticket = readable.result()
                next_ticket = None if ticket is None else asyncio.ensure_future(anext(reading, None))
                if isinstance(ticket, Ticket):
                    task = asyncio.ensure_future(judge.judged(ticket))
                    running += 1
                    task.add_done_callback(on_done)
                    waiting.append(task)
                elif ticket is not None:
                    waiting.append(ticket)
    finally:
        pending = [item for item in (*waiting, next_ticket) if isinstance(item, asyncio.Task)]
        for pending_task in pending:
            pending_task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        await reading.aclose()


async def _read(tickets: Iterable[Ticket | TicketError]) -> AsyncGenerator[Ticket | TicketError, None]:
    for ticket in tickets:
        yield ticket


async def _read_ahead(tickets: Iterable[Ticket | TicketError], room: int) -> AsyncGenerator[Ticket | TicketError, None]:
    """Yield from an iterator that may block, read in a separate thread."""
    loop = asyncio.get_running_loop()
    free = threading.Semaphore(room)
    arrived: asyncio.Queue[Ticket | TicketError | _Ended] = asyncio.Queue()

    def read() -> None:
        error: Exception | None = None
        # If the loop is closed by now, nothing waits for the result.
        with suppress(RuntimeError):
            try:
                for ticket in tickets:
                    free.acquire()
                    loop.call_soon_threadsafe(arrived.put_nowait, ticket)
            except Exception as raised:  # noqa: BLE001 - raised again in the consumer
                error = raised
            loop.call_soon_threadsafe(arrived.put_nowait, _Ended(error))

    # A daemon thread, because a blocking read from a pipe can't be cancelled.
    threading.Thread(target=read, name="donewhen-tickets", daemon=True).start()
    while not isinstance(item := await arrived.get(), _Ended):
        free.release()
        yield item
    if item.error is not None:
        raise item.error


class _Ended:
    """Marks the end of the input, with the error if reading failed."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
