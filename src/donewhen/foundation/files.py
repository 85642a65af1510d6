"""Atomic file writes, and reads that are limited in size and refuse symlinks and special files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO

from donewhen.foundation.size_limits import OTHER, SizeLimit, too_large_text

_PREFIX = ".donewhen-"
_SUFFIX = ".tmp"
_RANDOM_BYTES = 8

_SWEPT: set[tuple[int, int, str]] = set()


class TooLargeError(OSError):
    """A file or stream is larger than its limit. ``strerror`` says how large, the limit, and what to do."""

    def __init__(self, path: Path | str, size: int | None, limit: SizeLimit) -> None:
        super().__init__(errno.EFBIG, f"it has {too_large_text(size, limit)}", str(path))
        self.limit = limit


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
        _sweep_once(directory, target.parent)
        replace_in_directory(directory, target.name, data, mode=mode)
    finally:
        os.close(directory)


def sweep_temporary_files(folder: Path) -> None:
    """Remove the temporary files in a folder that writers left behind when they were killed."""
    with suppress(OSError):
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _sweep(directory)
        finally:
            os.close(directory)


def _sweep_once(directory: int, folder: Path) -> None:
    """Sweep a folder before the first write to it; a program that writes often doesn't list it each time."""
    status = os.fstat(directory)
    key = (status.st_dev, status.st_ino, str(folder))
    if key not in _SWEPT:
        _SWEPT.add(key)
        # Stray files only take up space; they must not prevent a write.
        with suppress(OSError):
            _sweep(directory)


def _sweep(directory: int) -> None:
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(_PREFIX) and _is_temporary(entry)]
    for name in names:
        with suppress(OSError):
            _remove_if_abandoned(directory, name)


def _is_temporary(entry: os.DirEntry[str]) -> bool:
    middle = entry.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
    ours = len(middle) == 2 * _RANDOM_BYTES and set(middle) <= set("0123456789abcdef")
    return ours and entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False)


def _remove_if_abandoned(directory: int, name: str) -> None:
    """Remove a temporary file unless its writer is alive, which then holds a lock on it."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    # Imported late: a hook that only reads its settings must start fast.
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=directory)
    finally:
        os.close(descriptor)


def fsync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that new names survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_regular(path: Path, limit: SizeLimit = OTHER) -> bytes:
    """Read a regular file of limited size. Raise OSError for symlinks, folders, pipes, devices and larger files."""
    with opened(path, os.O_NOFOLLOW) as file:
        return read_stream(file, limit, path)


def read_limited(path: Path, limit: SizeLimit) -> bytes:
    """Like :func:`read_regular`, but a symlink is followed."""
    with opened(path) as file:
        return read_stream(file, limit, path)


def read_start(path: Path, count: int) -> bytes:
    """The first bytes of a regular file; a symlink is followed."""
    with opened(path) as file:
        return file.read(count)


def read_given(path: Path, limit: SizeLimit) -> bytes:
    """Read what a person named on the command line, which may be a pipe or a terminal: ``<(command)``."""
    with path.open("rb") as file:
        return read_stream(file, limit, path)


def open_regular(path: Path | str, flags: int, mode: int = 0o644) -> int:
    """The descriptor of a regular file. Raise OSError at once for anything else: opening a pipe waits for its other
    end, and opening a device may do anything."""
    with suppress(FileNotFoundError):
        follow = not flags & os.O_NOFOLLOW
        _require_regular(os.stat(path, follow_symlinks=follow), path)  # noqa: PTH116 - called for thousands of files
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    try:
        # Again, because it may have been replaced in between.
        _require_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result, path: Path | str) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG:
        return
    if kind == stat.S_IFLNK:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    number, text = (errno.EISDIR, "Is a directory") if kind == stat.S_IFDIR else (errno.EINVAL, "Not a file")
    raise OSError(number, text, str(path))


def read_whole(path: Path) -> bytes:
    """The content of a regular file of any size; a symlink is followed."""
    with opened(path) as file:
        return file.read()


@contextmanager
def opened(path: Path, flags: int = 0) -> Iterator[BufferedReader]:
    """A regular file, open for reading; a symlink is followed, unless the flags say otherwise."""
    descriptor = open_regular(path, os.O_RDONLY | flags)
    try:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def read_text_limited(path: Path, limit: SizeLimit) -> str:
    """Read a UTF-8 text of limited size, with every line end as a newline, as ``Path.read_text`` does."""
    return read_limited(path, limit).decode().replace("\r\n", "\n").replace("\r", "\n")


def read_stream(stream: IO[bytes], limit: SizeLimit, name: Path | str) -> bytes:
    """Read the rest of a stream; ``name`` is for the error. Raise TooLargeError if it is larger than the limit."""
    size = _size_of(stream)
    if size is not None and size > limit.bytes:
        raise TooLargeError(name, size, limit)
    # One byte more than the limit, because a pipe has no size and a file may grow.
    content = stream.read(limit.bytes + 1) if size is None else stream.read(size + 1)
    if size is not None and len(content) > size:
        content += stream.read(max(0, limit.bytes + 1 - len(content)))
    if len(content) > limit.bytes:
        raise TooLargeError(name, None, limit)
    return content


def read_lines(stream: IO[bytes], limit: SizeLimit, name: Path | str) -> Iterator[bytes]:
    """Yield the lines of a stream, each of limited size. Raise TooLargeError at the first line that is longer."""
    number = 0
    while line := stream.readline(limit.bytes + 1):
        number += 1
        if len(line) > limit.bytes:
            raise TooLargeError(f"{name}:{number}", None, limit)
        yield line


def _size_of(stream: IO[bytes]) -> int | None:
    """The size of a regular file from its current position on; None for anything else."""
    try:
        status = os.fstat(stream.fileno())
        return max(0, status.st_size - stream.tell()) if stat.S_ISREG(status.st_mode) else None
    except (OSError, ValueError):
        return None


def replace_in_directory(directory: int, name: str, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file in an open directory atomically; an existing file keeps its permissions."""
    with _replacement(directory, name, mode) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, *, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """A file that replaces ``path`` atomically at the end, unless there is an error."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with _replacement(directory, path.name, mode) as file:
            yield file
    finally:
        os.close(directory)


@contextmanager
def _replacement(directory: int, name: str, mode: int) -> Iterator[IO[bytes]]:
    with suppress(FileNotFoundError):
        existing = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        # A symlink's own mode is 0777: the file that replaces it must not become writable for everyone.
        mode = stat.S_IMODE(existing) if stat.S_ISREG(existing) else mode
    descriptor, temporary = _create_temporary(directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            # Before it is closed, which would unlock it.
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)


def _create_temporary(directory: int) -> tuple[int, str]:
    """Create a temporary file and lock it, so that nobody takes it for one that was left behind."""
    import fcntl

    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        name = f"{_PREFIX}{os.urandom(_RANDOM_BYTES).hex()}{_SUFFIX}"
        descriptor = os.open(name, flags, 0o600, dir_fd=directory)
        # A file system without locks is not swept either.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, name
        # Somebody swept it between its creation and its lock.
        os.close(descriptor)
