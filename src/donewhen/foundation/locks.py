"""File locks between processes. The operating system releases a lock when its holder dies."""

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
    """Another process holds the lock, and the wait timed out."""

    code = "locked"


@contextmanager
def locked(path: Path, *, wait: float = 60.0) -> Iterator[None]:
    """Hold the lock file ``path``; it contains the holder's process id, for messages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, path, wait)
        with suppress(OSError):
            # Only for messages: a full disk must not prevent locking.
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        with _unlock_after(descriptor):
            yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_folder(folder: Path, *, wait: float = 60.0) -> Iterator[None]:
    """Hold a lock on a folder itself, so that it contains no lock file."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _acquire(descriptor, folder, wait)
        with _unlock_after(descriptor):
            yield
    finally:
        os.close(descriptor)


@contextmanager
def _unlock_after(descriptor: int) -> Iterator[None]:
    """Unlock at the end. Closing alone would leave the lock to forked children, and children must not unlock."""
    holder = os.getpid()
    try:
        yield
    finally:
        if os.getpid() == holder:
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _acquire(descriptor: int, path: Path, wait: float) -> None:
    deadline = time.monotonic() + wait
    pause = _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise _locked_error(descriptor, path, wait) from None
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)
        else:
            return


def _locked_error(descriptor: int, path: Path, wait: float) -> LockedError:
    holder = ""
    with suppress(IsADirectoryError):
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    owner = f"process {holder}" if holder.isdigit() else "another process"
    return LockedError(
        f"{owner} has held the lock for more than {wait:g} seconds.",
        where=str(path),
        next_step="Wait for it to end, or end it. That releases the lock.",
    )
