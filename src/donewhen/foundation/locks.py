"""One process at a time. The operating system lets go of a lock when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from donewhen.foundation.errors import DonewhenError

_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1


class LockedError(DonewhenError):
    """Somebody else holds the lock, for longer than one cares to wait."""

    code = "locked"


@contextmanager
def locked(path: Path, *, wait: float = 60.0) -> Iterator[None]:
    """Hold the lock file ``path`` for the duration; its content is the holder's process id, for people."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, path, wait)
        with suppress(OSError):
            # Only for the message to others: a full disk must not keep anybody from the lock.
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        with _let_go_after(descriptor):
            yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_folder(folder: Path, *, wait: float = 60.0) -> Iterator[None]:
    """The same for a folder that itself carries the lock, so that no lock file is left in it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _acquire(descriptor, folder, wait)
        with _let_go_after(descriptor):
            yield
    finally:
        os.close(descriptor)


@contextmanager
def _let_go_after(descriptor: int) -> Iterator[None]:
    """Closing alone would leave the lock with children that were forked in between; they themselves must not unlock."""
    holder = os.getpid()
    try:
        yield
    finally:
        if os.getpid() == holder:
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _acquire(descriptor: int, path: Path, wait: float) -> None:
    give_up = time.monotonic() + wait
    pause = _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise _still_locked(descriptor, path, wait) from None
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)
        else:
            return


def _still_locked(descriptor: int, path: Path, wait: float) -> LockedError:
    holder = ""
    with suppress(IsADirectoryError):
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    who = f"process {holder}" if holder.isdigit() else "another process"
    return LockedError(
        f"{who} has held the lock for more than {wait:g} seconds.",
        where=str(path),
        next_step="Wait for it to end, or end it; the lock goes with it.",
    )
