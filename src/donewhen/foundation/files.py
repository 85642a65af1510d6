"""Atomic file writes, and reads that refuse symlinks and special files."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace ``path`` with ``data`` atomically, and flush it to disk.

    A symlink is followed: its target is replaced and the link stays.
    """
    # Not path.resolve(): for a symlink loop it raises RuntimeError or nothing, depending on the Python version.
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        replace_in_directory(directory, target.name, data, mode=mode)
    finally:
        os.close(directory)


def fsync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that new names survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_regular(path: Path) -> bytes:
    """Read a regular file. Raise OSError for symlinks, folders, pipes and devices."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            number, text = (errno.EISDIR, "Is a directory") if stat.S_ISDIR(mode) else (errno.EINVAL, "Not a file")
            raise OSError(number, text, str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def replace_in_directory(directory: int, name: str, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file in an open directory atomically; an existing file keeps its permissions."""
    with suppress(FileNotFoundError):
        existing = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        # A symlink's own mode is 0777: the file that replaces it must not become writable for everyone.
        mode = stat.S_IMODE(existing) if stat.S_ISREG(existing) else mode
    temporary = f".donewhen-{os.urandom(8).hex()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)
