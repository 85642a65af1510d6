"""Verdicts on tickets that come one by one, from a file or from somebody who waits for each verdict."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress

from donewhen.judging.judge import Judge
from donewhen.judging.ticket import Ticket, TicketError
from donewhen.judging.verdict import Verdict


async def verdicts(
    judge: Judge, tickets: Iterable[Ticket | TicketError], *, piped: bool
) -> AsyncGenerator[Verdict | TicketError, None]:
    """Verdicts in the order of the tickets, each as soon as it is there; what is no ticket keeps its place.

    Where tickets are ``piped``, reading never keeps a verdict waiting: whoever writes them may want one before they
    write the next. And nothing piles up: as many tickets as are judged at once are held, and as many more read ahead.
    """
    at_once = judge.mission.settings.concurrency
    waiting: deque[asyncio.Task[Verdict] | TicketError] = deque()
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
            room = coming if len(waiting) < at_once else None
            await asyncio.wait([one for one in (first, room) if one is not None], return_when=asyncio.FIRST_COMPLETED)
            if room is not None and room.done():
                one = room.result()
                coming = None if one is None else asyncio.ensure_future(anext(reading, None))
                if one is not None:
                    waiting.append(asyncio.ensure_future(judge.judged(one)) if isinstance(one, Ticket) else one)
    finally:
        left = [one for one in (*waiting, coming) if isinstance(one, asyncio.Task)]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await reading.aclose()


async def _read(tickets: Iterable[Ticket | TicketError]) -> AsyncGenerator[Ticket | TicketError, None]:
    for one in tickets:
        yield one


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
                for one in tickets:
                    free.acquire()
                    loop.call_soon_threadsafe(arrived.put_nowait, one)
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
