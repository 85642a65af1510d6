"""Folders below one that nobody else can write to, each used by one process at a time.

A process that was killed leaves its folder behind. It is not used again, because commands of that process may still
write there, and a later one removes it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_whole
from donewhen.jobs.room.building import remove_room

_LOCK = ".lock"
_TEMPORARY = "tmp-"
_IN_USE = "in use"
_KEPT_SECONDS = 14 * 24 * 3600
_MAX_REMOVED = 20
"""In one process, so that nobody waits long for it."""
# Once in each process is enough.
_SWEPT: set[Path] = set()


class RoomError(DonewhenError):
    """The room can't be made."""

    code = "room"


def own_folder() -> Path:
    """The folder of all rooms of this user, which nobody else can write to."""
    base = Path(os.path.realpath(tempfile.gettempdir())) / f"donewhen-rooms-{os.getuid()}"
    try:
        with suppress(FileExistsError):
            base.mkdir(mode=0o700)
        status = base.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise RoomError("The folder for rooms belongs to somebody else.", where=str(base), next_step="Set TMPDIR.")
        if stat.S_IMODE(status.st_mode) & 0o077:
            base.chmod(0o700)
    except OSError as error:
        raise not_written(base, error) from error
    return base


def not_written(folder: Path, error: OSError) -> RoomError:
    """The error for a folder that can't be written to."""
    step = f"Make space or set the permissions there, or set TMPDIR to a folder on another disk than {folder.parent}."
    return RoomError(f"The room can't be laid out: {error.strerror}.", where=str(folder), next_step=step)


@contextmanager
def kept_folder(name: str, project: Path) -> Iterator[Path]:
    """A folder that is used again, with what is in it. If another process uses it at the moment, a new one."""
    base = own_folder()
    _sweep_once(base)
    with writing_there(base):
        lock = _claim(base, name)
    if lock is None:
        with temporary_folder(name) as folder:
            yield folder
        return
    try:
        with writing_there(base):
            folder = _folder_of(base, name, lock, str(project))
        yield folder
    finally:
        # Also after an error: whatever this process has started has ended.
        with suppress(OSError):
            _write_lock(lock, _Lock(str(project), _read_lock(lock).folder))
        os.close(lock)


@contextmanager
def temporary_folder(name: str) -> Iterator[Path]:
    """A new folder, which is removed afterwards."""
    base = own_folder()
    _sweep_once(base)
    unique = f"{_TEMPORARY}{name}-{os.urandom(6).hex()}"
    with writing_there(base):
        lock = _claim(base, unique)
        if lock is None:  # pragma: no cover - nobody else knows the name
            raise RoomError("The folder of the room is used by another process.", where=str(base / unique))
    folder = base / unique
    try:
        with writing_there(folder):
            folder.mkdir(mode=0o700)
        yield folder
    finally:
        remove_room(folder)
        _lock_path(base, unique).unlink(missing_ok=True)
        os.close(lock)


@contextmanager
def writing_there(folder: Path) -> Iterator[None]:
    """Raise RoomError for what the operating system refuses."""
    try:
        yield
    except OSError as error:
        raise not_written(folder, error) from error


def _folder_of(base: Path, name: str, lock: int, project: str) -> Path:
    """The folder that was used last, now marked as used; another one if its process was killed."""
    known = _read_lock(lock)
    if known.in_use or not known.folder.startswith(f"{name}-"):
        for left in base.glob(f"{name}-*"):
            remove_room(left)
        known = _Lock(project, f"{name}-{os.urandom(4).hex()}")
    folder = base / known.folder
    _write_lock(lock, _Lock(project, known.folder, in_use=True))
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.is_symlink() or not folder.is_dir():
        raise RoomError("The folder of the room is not a folder.", where=str(folder), next_step=f"rm -rf {folder}")
    return folder


def _claim(base: Path, name: str) -> int | None:
    """Lock a folder for this process; None if another one has it."""
    path = _lock_path(base, name)
    while True:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            # The last process that left has removed the empty folder.
            own_folder()
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        # Another process may have removed it between the two calls.
        with suppress(FileNotFoundError):
            if os.stat(path, follow_symlinks=False).st_ino == os.fstat(lock).st_ino:  # noqa: PTH116
                break
        os.close(lock)
    return lock


class _Lock(NamedTuple):
    """What a lock says about its folder."""

    project: str = ""
    folder: str = ""
    in_use: bool = False


def _read_lock(lock: int) -> _Lock:
    project, folder, use, *_ = (*os.pread(lock, 1 << 16, 0).decode("utf-8", "surrogateescape").split("\n"), "", "")
    return _Lock(project, folder, use == _IN_USE)


def _write_lock(lock: int, about: _Lock) -> None:
    use = _IN_USE if about.in_use else ""
    content = f"{about.project}\n{about.folder}\n{use}\n".encode("utf-8", "surrogateescape")
    os.pwrite(lock, content, 0)
    os.ftruncate(lock, len(content))


def _sweep_once(base: Path) -> None:
    if base in _SWEPT:
        return
    _SWEPT.add(base)
    with suppress(OSError):
        sweep(base)


def sweep(base: Path) -> None:
    """Remove the folders that nobody will use again: of processes that were killed, of projects that are gone, and
    those that were not used for two weeks."""
    left = ((path, path.name.removesuffix(_LOCK)) for path in sorted(base.glob(f"*{_LOCK}")))
    for path, name in islice((found for found in left if _is_left_over(*found)), _MAX_REMOVED):
        lock = _claim(base, name)
        if lock is None:
            continue
        try:
            for folder in (base / name, *base.glob(f"{name}-*")):
                remove_room(folder)
            path.unlink(missing_ok=True)
        finally:
            os.close(lock)


def _is_left_over(path: Path, name: str) -> bool:
    if name.startswith(_TEMPORARY):
        return True
    try:
        project = read_whole(path).decode("utf-8", "surrogateescape").partition("\n")[0]
        return not os.path.isdir(project) or time.time() - path.stat().st_mtime > _KEPT_SECONDS  # noqa: PTH112
    except OSError:
        return False


def _lock_path(base: Path, name: str) -> Path:
    return base / f"{name}{_LOCK}"
