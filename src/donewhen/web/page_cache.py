"""One rendering for all who ask for the same: at the same time, or while nothing has changed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

_MOST = 128


class _Made(NamedTuple):
    version: Hashable
    task: asyncio.Task[Any]


class PageCache:
    """What was made of which version. Bounded: what nobody has asked for longest is forgotten."""

    def __init__(self, most: int = _MOST) -> None:
        self._made: OrderedDict[Hashable, _Made] = OrderedDict()
        self._most = most
        self.count = 0
        """How often something was made."""

    async def made(self, key: Hashable, version: Hashable, make: Callable[[], T], *, keep: bool = True) -> T:
        """What ``make`` returns, in a thread of its own. Without ``keep`` it is shared only while it is being made."""
        known = self._made.get(key)
        if known is None or known.version != version or (known.task.done() and not keep) or _failed(known.task):
            known = _Made(version, asyncio.create_task(asyncio.to_thread(make)))
            self.count += 1
            self._made[key] = known
        self._made.move_to_end(key)
        while len(self._made) > self._most:
            self._made.popitem(last=False)
        # Shielded: who asked first may leave, and the others still want it.
        result: T = await asyncio.shield(known.task)
        return result


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
