"""Detect changes from the sizes and times of files, cheaply enough to poll.

This only decides when something is read again, never what a page says.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from donewhen.config.loader import CONFIG_FILE
from donewhen.web.project_folder import ProjectFolder

Topic = Literal["jobs", "missions", "runs"]
TOPICS: tuple[Topic, ...] = get_args(Topic)
Versions = tuple[int, ...]
"""One number per topic, in the order of TOPICS, which grows with each change."""

_DEEPEST = 3
_MOST_FILES = 20_000
_LEFT_OUT = (".lock", ".tmp", ".sqlite", ".sqlite-wal", ".sqlite-shm", ".html")


class _Stat(NamedTuple):
    path: str
    size: int
    time: int
    inode: int


class FileWatch:
    """The versions of all topics. Concurrent callers share one scan."""

    def __init__(self, place: ProjectFolder) -> None:
        self._place = place
        self._seen: dict[Topic, int] = {}
        self._versions = dict.fromkeys(TOPICS, 0)
        self._next: asyncio.Task[None] | None = None
        self._running: asyncio.Task[None] | None = None
        self._name = secrets.token_hex(4)
        # Its own thread: slow pages must not delay change notifications.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="donewhen-watch")
        self.seconds = 0.0
        """Duration of the last scan."""

    @property
    def versions(self) -> Versions:
        return tuple(self._versions[topic] for topic in TOPICS)

    @property
    def mark(self) -> str:
        """The versions as one string, different for each server start, so that a page knows whether it is current."""
        return ".".join([self._name, *map(str, self.versions)])

    async def refresh(self) -> Versions:
        """Scan the files, and return the versions at some moment after this call."""
        # A running scan may already have passed a file that was changed just now, so wait for the next one.
        if self._next is None:
            self._next = asyncio.create_task(self._read_after(self._running))
        await asyncio.shield(self._next)
        return self.versions

    async def _read_after(self, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        self._running, self._next = self._next, None
        began = time.monotonic()
        signatures = await asyncio.get_running_loop().run_in_executor(self._thread, topic_signatures, self._place)
        self.seconds = time.monotonic() - began
        for topic, now in signatures.items():
            if self._seen.get(topic) != now:
                self._seen[topic] = now
                self._versions[topic] += 1


def changed_topics(before: Versions, now: Versions) -> tuple[Topic, ...]:
    """Return the topics that have changed."""
    return tuple(topic for topic, old, new in zip(TOPICS, before, now, strict=True) if old != new)


def topic_signatures(place: ProjectFolder) -> dict[Topic, int]:
    """Return a hash of all files per topic, which changes when one of them does."""
    missions = list(_missions(place))
    runs = [mission for mission in missions if mission.path.endswith("events.jsonl")]
    return {
        "jobs": hash(tuple(_jobs(place))),
        "missions": hash(tuple(mission for mission in missions if not mission.path.endswith("events.jsonl"))),
        "runs": hash(tuple(runs)),
    }


def _jobs(place: ProjectFolder) -> Iterator[_Stat]:
    workspace = place.workspace
    if workspace is None:
        return
    state = workspace.folder / "state"
    yield from _stats(
        [
            workspace.project_file,
            workspace.root / CONFIG_FILE,
            workspace.root / "pyproject.toml",
            state / "unverified.jsonl",
        ]
    )
    yield from _stats(plan_place.path for plan_place in workspace.places())
    yield from _below(workspace.folder / "ledger", 0)


def _missions(place: ProjectFolder) -> Iterator[_Stat]:
    for folder in place.missions().values():
        yield from _below(folder, _DEEPEST)


def _below(folder: Path, deep: int) -> Iterator[_Stat]:
    """Yield the relevant files below a folder, up to a maximum depth and number."""
    waiting = [(str(folder), deep)]
    count = 0
    while waiting and count < _MOST_FILES:
        name, left = waiting.pop()
        try:
            with os.scandir(name) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            count += 1
            if entry.is_dir(follow_symlinks=False):
                if left:
                    waiting.append((entry.path, left - 1))
            elif not entry.name.endswith(_LEFT_OUT):
                with suppress(OSError):
                    yield _stat(entry.path, entry.stat(follow_symlinks=False))


def _stats(paths: Iterable[Path]) -> Iterator[_Stat]:
    for path in paths:
        with suppress(OSError):
            yield _stat(str(path), path.stat(follow_symlinks=False))


def _stat(path: str, status: os.stat_result) -> _Stat:
    return _Stat(path, status.st_size, status.st_mtime_ns, status.st_ino)
