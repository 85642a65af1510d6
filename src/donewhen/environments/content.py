"""Hashes of what lies in folders. Contents are read every time: times, sizes and inodes can be made to fit."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

_CHUNK = 1 << 20
_LENGTH = 32
"""Hexadecimal digits of a hash: 128 bits."""
_CACHE = "__pycache__"
# Also the files that are renamed to such a name when they are complete.
_COMPILED = re.compile(r"\.py[co](?:\.\d+)?\Z")


def readable_name(name: str) -> str:
    """A name that can be stored as text."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def hash_of(parts: Iterable[str]) -> str:
    """One hash for several texts."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(f"{part}\n".encode("utf-8", "surrogateescape"))
    return hasher.hexdigest()[:_LENGTH]


def hash_files(files: Iterable[tuple[str, str]]) -> str:
    """One hash for files with their hashes."""
    return hash_of(f"{name}\0{content}" for name, content in sorted(files))


Stamp = tuple[int, int, int]
"""Inode, time of the last change, size. It shows that something was changed while a program ran, even if it was changed
back; it never shows that something is as it was accepted."""


def stamp_of(status: os.stat_result) -> Stamp:
    """What changes if a file or folder is changed."""
    return status.st_ino, status.st_ctime_ns, status.st_size


def are_unchanged(stamps: Mapping[str, Stamp]) -> bool:
    """Whether nothing was changed since these were taken."""
    for path, stamp in stamps.items():
        try:
            if stamp_of(os.stat(path)) != stamp:  # noqa: PTH116
                return False
        except OSError:
            return False
    return True


@dataclass
class Reader:
    """Hashes files, and counts them."""

    root: str
    """The project's folder. What links lead to there is no part of an environment: checks find the room's."""
    files: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    """What could not be read, and why."""
    stamps: dict[str, Stamp] = field(default_factory=dict)
    """Every file and folder that was read, with what changes with it."""
    _targets: dict[str, str] = field(default_factory=dict)
    """Files that links lead to, with their hashes: several links lead to the same interpreter."""

    def hash_file(self, path: str, kept: list[bytes] | None = None) -> str:
        """The hash of a file's content, which is also added to ``kept``."""
        try:
            # Opening a pipe must not wait, and a device is no content.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            return self._unreadable(path, error)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return self._unreadable(path, OSError(errno.EINVAL, "it is no regular file"))
            self.files += 1
            self.stamps[path] = stamp_of(status)
            # A buffer that is much too large would cost more than reading.
            content = os.read(descriptor, min(status.st_size + 1, _CHUNK))
            hasher = hashlib.sha256(content)
            size = len(content)
            if kept is not None:
                kept.append(content)
            while size < status.st_size and content:
                content = os.read(descriptor, _CHUNK)
                hasher.update(content)
                size += len(content)
                if kept is not None:
                    kept.append(content)
            return hasher.hexdigest()[:_LENGTH]
        except OSError as error:
            return self._unreadable(path, error)
        finally:
            os.close(descriptor)

    def hash_link(self, path: str) -> str:
        """What a link says, with the content of the file that it leads to."""
        try:
            target = os.readlink(path)  # noqa: PTH115
        except OSError as error:
            return self._unreadable(path, error)
        real = os.path.realpath(path)
        if os.path.isfile(real) and not _is_below(real, self.root):  # noqa: PTH113
            if real not in self._targets:
                self._targets[real] = self.hash_file(real)
            return f"link {readable_name(target)} {self._targets[real]}"
        return f"link {readable_name(target)}"

    def hash_tree(
        self,
        folder: str,
        *,
        skip: Callable[[str], bool] = lambda _: False,
        keep: Callable[[str], bool] = lambda _: False,
    ) -> Tree:
        """The files below a folder. Names of folders end with a slash when ``skip`` is asked about them; the contents
        of the files for which ``keep`` is true are returned, too."""
        tree = Tree()
        top = os.path.realpath(folder)
        seen = {top}
        level = [(top, "")]
        while level:
            place, inner = level.pop()
            is_cache = inner.endswith(f"{_CACHE}/")
            try:
                entries = os.scandir(place)
            except OSError as error:
                tree.files[inner or "."] = self._unreadable(place, error)
                continue
            if not is_cache:
                self.stamps[place] = stamp_of(os.stat(place))  # noqa: PTH116
            with entries:
                for entry in entries:
                    name = f"{inner}{entry.name}"
                    if entry.is_symlink():
                        if not skip(name):
                            tree.files[name] = self.hash_link(entry.path)
                            self._follow(entry.path, name, top, seen, level)
                    elif entry.is_dir(follow_symlinks=False):
                        if not skip(f"{name}/"):
                            level.append((entry.path, f"{name}/"))
                    elif not (is_cache and _COMPILED.search(name)) and not skip(name):
                        kept: list[bytes] | None = [] if keep(name) else None
                        tree.files[name] = self.hash_file(entry.path, kept)
                        if kept is not None:
                            tree.contents[name] = b"".join(kept)
        return tree

    def _follow(self, path: str, name: str, top: str, seen: set[str], level: list[tuple[str, str]]) -> None:
        """Read what a link to a folder elsewhere makes loadable, once."""
        real = os.path.realpath(path)
        if real in seen or _is_below(real, top) or _is_below(real, self.root) or _is_below(top, real):
            return
        if os.path.isdir(real):  # noqa: PTH112
            seen.add(real)
            level.append((real, f"{name}/"))

    def _unreadable(self, path: str, error: OSError) -> str:
        why = error.strerror or "it can't be read"
        self.unreadable[readable_name(path)] = why
        return f"unreadable {why}"


@dataclass
class Tree:
    """The files below a folder."""

    files: dict[str, str] = field(default_factory=dict)
    """Names with the hashes of their contents."""
    contents: dict[str, bytes] = field(default_factory=dict)


def read_small(path: str) -> bytes:
    """The beginning of a file that need not exist."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return os.read(descriptor, _CHUNK)
        finally:
            os.close(descriptor)
    return b""


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
