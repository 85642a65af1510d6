"""File locks between processes. The operating system releases a lock when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from donewhen.foundation.current_command import current_command
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.notices import notify
from donewhen.foundation.plain_text import one_line

_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1
_NOTICE_AFTER = 2.0
_MAX_TEXT_BYTES = 400
_MAX_PID_DIGITS = 10
_MAX_COMMAND_CHARS = 100


class LockedError(DonewhenError):
    """Another process holds the lock, and the wait timed out."""

    code = "locked"


@contextmanager
def locked(path: Path, *, wait: float = 60.0) -> Iterator[None]:
    """Hold the lock file ``path``; it contains the holder's process id and command, for messages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without following symlinks: the file is emptied, and a branch can contain a symlink.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, path, wait)
        with _unlock_after(descriptor):
            holder = os.getpid()
            _write_holder(descriptor)
            try:
                yield
            finally:
                _clear_holder(descriptor, holder)
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


def _write_holder(descriptor: int) -> None:
    command = current_command()
    text = f"{os.getpid()}\n{command}\n" if command else str(os.getpid())
    # Only for messages: a full disk must not prevent locking.
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _clear_holder(descriptor: int, holder: int) -> None:
    """Remove the text before unlocking, so that the next waiter doesn't read the name of an earlier holder."""
    # A forked child that leaves the block doesn't hold the lock; its parent's text stays.
    if os.getpid() == holder:
        with suppress(OSError):
            os.ftruncate(descriptor, 0)


def _acquire(descriptor: int, path: Path, wait: float) -> None:
    start = time.monotonic()
    pause = _FIRST_PAUSE
    noticed = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = time.monotonic() - start
            if waited >= wait:
                raise _locked_error(descriptor, path, wait) from None
            if waited >= _NOTICE_AFTER and not noticed:
                noticed = True
                notify(f"Waiting for the lock {path}, which is held by {_holder(descriptor)}.")
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)
        else:
            return


def _locked_error(descriptor: int, path: Path, wait: float) -> LockedError:
    return LockedError(
        f"The lock is held by {_holder(descriptor)} and was not released within {wait:g} seconds.",
        where=str(path),
        next_step="Wait for that process to end, or end it. That releases the lock.",
    )


def _holder(descriptor: int) -> str:
    """The holder by the text in the lock file: "process 4711 (donewhen complete WI-12)".

    The text is only information, and anybody can write it. A process that doesn't exist is not named: it may have been
    killed, or belong to another container.
    """
    text = ""
    with suppress(OSError):
        text = os.pread(descriptor, _MAX_TEXT_BYTES, 0).decode("utf-8", "replace")
    pid, _, command = text.partition("\n")
    if not (pid.isascii() and pid.isdigit() and len(pid) <= _MAX_PID_DIGITS and _is_running(int(pid))):
        return "another process"
    described = one_line(command.partition("\n")[0], _MAX_COMMAND_CHARS)
    return f"process {int(pid)} ({described})" if described else f"process {int(pid)}"


def _is_running(pid: int) -> bool:
    try:
        # Signal 0 tests whether the process exists. Process 0 would be this process group.
        if pid > 0:
            os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return pid > 0
