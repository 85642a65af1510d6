"""Notices folders of a room that are moved or removed while a command runs, also if they are put back in time.

The files in such a folder keep their marks, and the folder's own change like those of one in which a file is made.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MOVED, _DELETED, _OVERFLOW = 0x800, 0x400, 0x4000
_ONLY_FOLDERS, _NO_LINKS = 0x01000000, 0x02000000
_EVENT = struct.Struct("iIII")


@contextmanager
def watching_folders(room: Path, names: Iterable[str]) -> Iterator[set[str]]:
    """Meanwhile, watch these folders of a room; afterwards, the set has those that were moved or removed.

    Where the system can't tell (it is not Linux, or too many folders are watched already), the set stays empty.
    """
    moved: set[str] = set()
    watch = _Watch()
    try:
        for name in names:
            watch.add(room, name)
        yield moved
        moved |= watch.moved()
    finally:
        watch.close()


class _Watch:
    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._libc = ctypes.CDLL(None, use_errno=True)
        start = getattr(self._libc, "inotify_init1", None)
        self._descriptor = -1 if start is None else int(start(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, room: Path, name: str) -> None:
        if self._descriptor >= 0:
            mask = ctypes.c_uint32(_MOVED | _DELETED | _ONLY_FOLDERS | _NO_LINKS)
            number = int(self._libc.inotify_add_watch(self._descriptor, os.fsencode(room / name), mask))
            if number >= 0:
                self._names[number] = name

    def moved(self) -> set[str]:
        found: set[str] = set()
        # Nothing is left to read, or nothing is watched.
        with suppress(OSError):
            while content := os.read(self._descriptor, 1 << 16):
                position = 0
                while position < len(content):
                    number, mask, _, length = _EVENT.unpack_from(content, position)
                    position += _EVENT.size + length
                    if mask & _OVERFLOW:
                        found |= {*self._names.values()}
                    elif mask & (_MOVED | _DELETED) and number in self._names:
                        found.add(self._names[number])
        return found

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
