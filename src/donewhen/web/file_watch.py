"""Has anything changed? Answered from the sizes and times of files, so cheaply that it can be asked all the time.

What a page says is never decided by this: it only chooses when something is read again.
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
"""A number for each topic, in their order, which grows when something about it changes."""

_DEEPEST = 3
_MOST_FILES = 20_000
_LEFT_OUT = (".lock", ".tmp", ".sqlite", ".sqlite-wal", ".sqlite-shm", ".html")


class _Stat(NamedTuple):
    path: str
    size: int
    time: int
    inode: int


class FileWatch:
    """The versions of everything. One look serves all who ask while it is made."""

    def __init__(self, place: ProjectFolder) -> None:
        self._place = place
        self._seen: dict[Topic, int] = {}
        self._versions = dict.fromkeys(TOPICS, 0)
        self._next: asyncio.Task[None] | None = None
        self._running: asyncio.Task[None] | None = None
        self._name = secrets.token_hex(4)
        # Of its own: pages that take long to make must not keep anybody from being told.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="donewhen-watch")
        self.seconds = 0.0
        """How long the last look took."""

    @property
    def versions(self) -> Versions:
        return tuple(self._versions[one] for one in TOPICS)

    @property
    def mark(self) -> str:
        """The versions in one word, by which a page knows whether it is of today; that of another start is another."""
        return ".".join([self._name, *map(str, self.versions)])

    async def look(self) -> Versions:
        """The versions as they are at some moment after this was called."""
        # A look that is under way may have passed the file already that was changed just now, so the next one counts.
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
        await asyncio.shield(self._next)
        return self.versions

    async def _after(self, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        self._running, self._next = self._next, None
        began = time.monotonic()
        found = await asyncio.get_running_loop().run_in_executor(self._thread, topic_signatures, self._place)
        self.seconds = time.monotonic() - began
        for topic, now in found.items():
            if self._seen.get(topic) != now:
                self._seen[topic] = now
                self._versions[topic] += 1


def changed_topics(before: Versions, now: Versions) -> tuple[Topic, ...]:
    """The topics about which something is new."""
    return tuple(topic for topic, one, other in zip(TOPICS, before, now, strict=True) if one != other)


def topic_signatures(place: ProjectFolder) -> dict[Topic, int]:
    """A number for all files of a topic, which is another as soon as one of them is."""
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
    yield from _stats(one.path for one in workspace.places())
    yield from _below(workspace.folder / "ledger", 0)


def _missions(place: ProjectFolder) -> Iterator[_Stat]:
    for folder in place.missions().values():
        yield from _below(folder, _DEEPEST)


def _below(folder: Path, deep: int) -> Iterator[_Stat]:
    """The files in a folder, and in those inside it, as far as they say something; never more than can be looked at."""
    waiting = [(str(folder), deep)]
    count = 0
    while waiting and count < _MOST_FILES:
        name, left = waiting.pop()
        try:
            with os.scandir(name) as found:
                entries = sorted(found, key=lambda one: one.name)
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


def _stat(path: str, found: os.stat_result) -> _Stat:
    return _Stat(path, found.st_size, found.st_mtime_ns, found.st_ino)
