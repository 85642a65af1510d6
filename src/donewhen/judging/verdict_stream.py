"""Verdicts on tickets that come one by one, from a file or from somebody who waits for each verdict."""

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
    """Verdicts in the order of the tickets, each as soon as it is there; what is no ticket keeps its place.

    Where tickets are ``piped``, reading never keeps a verdict waiting: whoever writes them may want one before they
    write the next. And nothing piles up: a few times as many tickets are held as are judged at once, so that one that
    takes long does not keep the others from being judged, and as many more are read ahead.
    """
    at_once = judge.mission.settings.concurrency
    waiting: deque[asyncio.Task[Verdict] | TicketError] = deque()
    under_way = 0
    freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ended(_: asyncio.Task[Verdict]) -> None:
        nonlocal under_way
        under_way -= 1
        if not freed.done():
            freed.set_result(None)

    reading = _read_ahead(tickets, at_once) if piped else _read(tickets)
    coming: asyncio.Task[Ticket | TicketError | None] | None = asyncio.ensure_future(anext(reading, None))
    try:
        while coming is not None or waiting:
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
            room = coming if under_way < at_once and len(waiting) < HELD * at_once else None
            changes = [one for one in (first, room or freed) if one is not None]
            await asyncio.wait(changes, return_when=asyncio.FIRST_COMPLETED)
            if room is not None and room.done():
                one = room.result()
                coming = None if one is None else asyncio.ensure_future(anext(reading, None))
                if isinstance(one, Ticket):
                    task = asyncio.ensure_future(judge.judged(one))
                    under_way += 1
                    task.add_done_callback(ended)
                    waiting.append(task)
                elif one is not None:
                    waiting.append(one)
    finally:
        left = [one for one in (*waiting, coming) if isinstance(one, asyncio.Task)]
        for one_left in left:
            one_left.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await reading.aclose()


async def _read(tickets: Iterable[Ticket | TicketError]) -> AsyncGenerator[Ticket | TicketError, None]:
    for ticket in tickets:
        yield ticket


async def _read_ahead(tickets: Iterable[Ticket | TicketError], room: int) -> AsyncGenerator[Ticket | TicketError, None]:
    """What an iterator gives, which may block, from a thread of its own."""
    loop = asyncio.get_running_loop()
    free = threading.Semaphore(room)
    arrived: asyncio.Queue[Ticket | TicketError | _Ended] = asyncio.Queue()

    def read() -> None:
        error: Exception | None = None
        # The loop may be closed by now; then nobody is waiting any more.
        with suppress(RuntimeError):
            try:
                for ticket in tickets:
                    free.acquire()
                    loop.call_soon_threadsafe(arrived.put_nowait, ticket)
            except Exception as raised:  # noqa: BLE001 - raised again where somebody can answer it
                error = raised
            loop.call_soon_threadsafe(arrived.put_nowait, _Ended(error))

    # A daemon, because a read from a pipe can't be called off.
    threading.Thread(target=read, name="donewhen-tickets", daemon=True).start()
    while not isinstance(one := await arrived.get(), _Ended):
        free.release()
        yield one
    if one.error is not None:
        raise one.error


class _Ended:
    """There is nothing more to read, perhaps because reading failed."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
