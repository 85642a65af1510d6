"""What a command may reach where Landlock, a part of the Linux kernel, keeps it apart.

Nothing is moved and nothing is hidden: the command finds the room at another path than the project's. Opening a file,
listing a folder and changing anything is refused outside of the folders that are named here.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import IntFlag

from donewhen.isolation.confinement import Confinement, covered_paths, is_below

_CREATE_RULESET = 444
_QUERY_VERSION = 1
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store"),
    *("/snap", "/sys", "/proc", "/var/lib", "/var/cache"),
)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_RESOLVER = "/etc/resolv.conf"
_SCOPES = 1 | 2
"""Abstract sockets and signals."""
_SCOPED_FROM = 6


class Access(IntFlag):
    """What Landlock distinguishes, with the numbers of the kernel."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


_READ = Access.EXECUTE | Access.READ_FILE | Access.READ_DIR
_OF_FILES = Access.EXECUTE | Access.READ_FILE | Access.WRITE_FILE | Access.TRUNCATE | Access.IOCTL_DEV
_WRITE = ~(Access.MAKE_CHAR | Access.MAKE_BLOCK | Access.IOCTL_DEV)
_DEVICE = _OF_FILES | Access.READ_DIR
# Locks between processes are files there; whoever does not know their names does not learn them.
_MEMORY = _READ & ~Access.READ_DIR | Access.WRITE_FILE | Access.TRUNCATE | Access.MAKE_REG | Access.REMOVE_FILE
_KNOWN_SINCE = {Access.REFER: 2, Access.TRUNCATE: 3, Access.IOCTL_DEV: 5}


@dataclass(frozen=True)
class Ruleset:
    """What the launcher asks of the kernel."""

    handled: int
    scoped: int
    rules: tuple[tuple[str, int, int], ...]
    """Paths, what is allowed in a folder there, and which of that applies to a file."""


def landlock_version() -> int:
    """The version of Landlock in this kernel; raise OSError if it can't be used."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _QUERY_VERSION))
    if version < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return version


def ruleset_of(confinement: Confinement, version: int) -> Ruleset:
    """What a command may reach with this version of Landlock.

    Older ones do less: the first never lets a file move to another folder, before the third all files can be truncated,
    and before the sixth signals and abstract sockets reach other processes.
    """
    handled = Access(0)
    for access in Access:
        if version >= _KNOWN_SINCE.get(access, 1):
            handled |= access
    rules = [(path, int(access & handled), int(_OF_FILES)) for path, access in _allowed(confinement)]
    return Ruleset(int(handled), _SCOPES if version >= _SCOPED_FROM else 0, tuple(rules))


def _allowed(confinement: Confinement) -> Iterator[tuple[str, Access]]:
    covered = covered_paths(confinement)
    for system in _SYSTEM:
        yield from ((part, _READ) for part in _uncovered(system, covered))
    yield os.path.realpath(_RESOLVER), _READ
    for named in map(str, confinement.read_only):
        inside = [path for path in covered if path != named and is_below(path, named)]
        yield from ((part, _READ) for part in (_uncovered(named, inside) if inside else (named,)))
    for folder in (confinement.room, confinement.home, confinement.scratch, *confinement.writable):
        yield str(folder), _WRITE
    for name in _DEVICES:
        yield f"/dev/{name}", _DEVICE
    yield _SHARED_MEMORY, _MEMORY


def _uncovered(folder: str, covered: Iterable[str]) -> Iterator[str]:
    """A folder, or what lies in it besides that of which nothing may be seen: what is allowed for a folder is allowed
    for everything below it."""
    real = os.path.realpath(folder)
    if any(is_below(real, path) for path in covered):
        return
    if not any(is_below(path, real) for path in covered):
        yield real
        return
    with suppress(OSError), os.scandir(real) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            # A link allows nothing, and what it leads to is named by itself or not allowed.
            if not entry.is_symlink():
                yield from _uncovered(entry.path, covered)
