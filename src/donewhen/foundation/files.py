"""Files that are either the old one or the new one, whatever happens in between."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace ``path`` with ``data``: complete and on disk, or untouched.

    A symlink is followed, so that what it points to is replaced and the link stays.
    """
    target = path.resolve()
    directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        replace_in_directory(directory, target.name, data, mode=mode)
    finally:
        os.close(directory)


def replace_in_directory(directory: int, name: str, data: bytes, *, mode: int = 0o644) -> None:
    """The same inside an open directory; an existing file keeps its permissions."""
    with suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode & 0o7777
    temporary = f".{name[:100]}.{os.urandom(8).hex()}.tmp"
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
