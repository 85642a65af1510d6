"""Connected browsers: each is notified of changes independently of the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from donewhen.web.file_watch import FileWatch, Topic, Versions, changed_topics

MOST_VIEWERS: Final = 1000
_HEARTBEAT = 15.0
_INTERVAL = 0.5
_SHARE = 0.05
"""Scanning files may take at most this share of the time."""


class Viewer:
    """One browser. Pending notifications are a set of topics, so they can't pile up."""

    def __init__(self, hello: str) -> None:
        self._hello = hello
        self._pending: set[Topic] = set()
        self._wake = asyncio.Event()
        self._ended = False

    def notify(self, topics: tuple[Topic, ...]) -> None:
        self._pending.update(topics)
        self._wake.set()

    def end(self) -> None:
        self._ended = True
        self._wake.set()

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield the messages to send: the current versions, then each change, and heartbeats in between."""
        yield f"retry: 2000\nevent: hello\ndata: {self._hello}\n\n".encode()
        while not self._ended:
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
    """All viewers, and the task that watches for changes for all of them."""

    def __init__(self, watch: FileWatch) -> None:
        self._watch = watch
        self._viewers: set[Viewer] = set()
        self._joined = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._viewers)

    def join(self) -> Viewer | None:
        """Add a viewer; None if there are too many, or the server is stopping."""
        if self._closed or len(self._viewers) >= MOST_VIEWERS:
            return None
        viewer = Viewer(self._watch.mark)
        self._viewers.add(viewer)
        self._joined.set()
        if self._task is None:
            self._task = asyncio.create_task(self._watch_for_changes())
        return viewer

    def leave(self, viewer: Viewer) -> None:
        self._viewers.discard(viewer)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        for viewer in self._viewers:
            viewer.end()

    async def _watch_for_changes(self) -> None:
        known: Versions = self._watch.versions
        while True:
            if not self._viewers:
                # Without viewers, don't scan.
                self._joined.clear()
                await self._joined.wait()
            now = await self._watch.refresh()
            topics = changed_topics(known, now)
            known = now
            if topics:
                for viewer in tuple(self._viewers):
                    viewer.notify(topics)
            await asyncio.sleep(max(_INTERVAL, self._watch.seconds / _SHARE))
