"""Cache rendered pages: one rendering for all equal requests while nothing has changed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

_MOST = 128


class _CachedPage(NamedTuple):
    version: Hashable
    task: asyncio.Task[Any]


class PageCache:
    """Rendered pages by key and version. Bounded: the least recently used page is dropped."""

    def __init__(self, most: int = _MOST) -> None:
        self._pages: OrderedDict[Hashable, _CachedPage] = OrderedDict()
        self._most = most
        self.count = 0
        """How often a page was rendered."""

    async def get_or_make(self, key: Hashable, version: Hashable, make: Callable[[], T], *, keep: bool = True) -> T:
        """Return the result of ``make``, run in a thread. Without ``keep`` it is shared only while it is being made."""
        known = self._pages.get(key)
        if known is None or known.version != version or (known.task.done() and not keep) or _failed(known.task):
            known = _CachedPage(version, asyncio.create_task(asyncio.to_thread(make)))
            self.count += 1
            self._pages[key] = known
        self._pages.move_to_end(key)
        while len(self._pages) > self._most:
            self._pages.popitem(last=False)
        # Shielded: the first requester may disconnect while others still wait.
        result: T = await asyncio.shield(known.task)
        return result


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
