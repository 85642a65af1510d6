"""Those who are watching: each is told that something changed, and none waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from donewhen.web.file_watch import FileWatch, Topic, Versions, changed_topics

MOST_VIEWERS: Final = 1000
_HEARTBEAT = 15.0
_INTERVAL = 0.5
_SHARE = 0.05
"""Looking may take this share of the time, however many files there are."""


class Viewer:
    """One browser. What it has not been told yet is a set of topics: it can't pile up."""

    def __init__(self, hello: str) -> None:
        self._hello = hello
        self._pending: set[Topic] = set()
        self._wake = asyncio.Event()
        self._over = False

    def tell(self, topics: tuple[Topic, ...]) -> None:
        self._pending.update(topics)
        self._wake.set()

    def end(self) -> None:
        self._over = True
        self._wake.set()

    async def messages(self) -> AsyncIterator[bytes]:
        """What to send: which versions hold now, then each change, and a sign of life where there is none."""
        yield f"retry: 2000\nevent: hello\ndata: {self._hello}\n\n".encode()
        while not self._over:
            try:
                async with asyncio.timeout(_HEARTBEAT):
                    await self._wake.wait()
            except TimeoutError:
                yield b": still here\n\n"
                continue
            self._wake.clear()
            topics, self._pending = sorted(self._pending), set()
            if topics:
                yield f"event: changed\ndata: {' '.join(topics)}\n\n".encode()


class Viewers:
    """All of them, and the one task that looks for changes on behalf of all."""

    def __init__(self, watch: FileWatch) -> None:
        self._watch = watch
        self._viewers: set[Viewer] = set()
        self._somebody = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._viewers)

    def join(self) -> Viewer | None:
        """One more; None where there are too many, or the end has come."""
        if self._closed or len(self._viewers) >= MOST_VIEWERS:
            return None
        viewer = Viewer(self._watch.mark)
        self._viewers.add(viewer)
        self._somebody.set()
        if self._task is None:
            self._task = asyncio.create_task(self._tell())
        return viewer

    def leave(self, viewer: Viewer) -> None:
        self._viewers.discard(viewer)

    def close(self) -> None:
        """Everybody is sent home."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        for viewer in self._viewers:
            viewer.end()

    async def _tell(self) -> None:
        known: Versions = self._watch.versions
        while True:
            if not self._viewers:
                # While nobody watches, nothing is looked at.
                self._somebody.clear()
                await self._somebody.wait()
            now = await self._watch.look()
            topics = changed_topics(known, now)
            known = now
            if topics:
                for viewer in tuple(self._viewers):
                    viewer.tell(topics)
            await asyncio.sleep(max(_INTERVAL, self._watch.seconds / _SHARE))
