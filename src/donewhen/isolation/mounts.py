"""What a command finds at which path when it runs in namespaces of its own. Pure, but for looking at what exists."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from donewhen.isolation.confinement import PRIVATE_FOLDERS, Confinement, ConfinementError, covered_paths, is_below

_SOCKETS = Path("/proc/net/unix")
_RESOLVER = "/etc/resolv.conf"
_NOTHING = "/dev/null"


class Mount(NamedTuple):
    """What is at a path: a part of the machine, to read or also to write; a link; or an empty folder, which nobody can
    write to if it is "closed"."""

    kind: Literal["ro-bind", "bind", "symlink", "tmpfs", "closed"]
    path: str
    source: str = ""


def mounts_of(confinement: Confinement) -> list[Mount]:
    """What a command finds in the place of what is there, in the order in which it is to be mounted."""
    place = os.path.realpath(confinement.place)
    if place == "/":
        raise ConfinementError("A project in the root folder can't be kept apart from the machine.", next_step=None)
    mounts = {mount.path: mount for mount in (*_covers(confinement), *_private(confinement))}
    mounts[place] = Mount("bind", place, str(confinement.room))
    for source, path in confinement.read_only.items():
        # What was removed in the meantime can't be read anyway.
        if os.path.exists(source):  # noqa: PTH110
            where = _real_parent(path)
            mounts[where] = Mount("ro-bind", where, str(source))
    for folder in confinement.writable:
        mounts[str(folder)] = Mount("bind", str(folder), str(folder))
    for mount in (*_links(confinement, place), *_resolver(confinement)):
        mounts.setdefault(mount.path, mount)
    # What lies in another mount comes after it.
    return sorted(mounts.values(), key=lambda mount: mount.path.split("/"))


def _covers(confinement: Confinement) -> Iterator[Mount]:
    """Nothing, where something must not be seen."""
    for path in confinement.hidden:
        real = os.path.realpath(path)
        with suppress(OSError):
            is_folder = stat.S_ISDIR(os.stat(real).st_mode)  # noqa: PTH116
            yield Mount("closed", real) if is_folder else Mount("ro-bind", real, _NOTHING)
    covered = covered_paths(confinement)
    for socket in _sockets():
        if not any(is_below(socket, folder) for folder in covered):
            yield Mount("ro-bind", socket, _NOTHING)


def _private(confinement: Confinement) -> Iterator[Mount]:
    """New folders in the place of those that everybody writes to. Large temporary files are on a disk."""
    on_disk = {"/tmp": "tmp", "/var/tmp": "var-tmp"}  # noqa: S108
    for folder in PRIVATE_FOLDERS:
        # A link leads to one of the others.
        if os.path.islink(folder) or not os.path.isdir(folder):  # noqa: PTH112, PTH114
            continue
        if folder in on_disk:
            source = confinement.scratch / on_disk[folder]
            source.mkdir(exist_ok=True)
            source.chmod(0o1777)
            yield Mount("bind", folder, str(source))
        else:
            yield Mount("tmpfs", folder)
    home = confinement.home if confinement.home_place is None else Path(os.path.realpath(confinement.home_place))
    yield Mount("bind", str(home), str(confinement.home))


def _links(confinement: Confinement, place: str) -> Iterator[Mount]:
    """The path of the project, if it leads through a link that lies where nothing is seen."""
    path = os.path.normpath(confinement.place)
    if path != place and any(is_below(_real_parent(path), folder) for folder in covered_paths(confinement)):
        yield Mount("symlink", _real_parent(path), place)


def _resolver(confinement: Confinement) -> Iterator[Mount]:
    """The file that says how names are resolved, which is usually generated in a folder that is new here."""
    real = os.path.realpath(_RESOLVER)
    if confinement.network == "host" and real != _RESOLVER and os.path.isfile(real):  # noqa: PTH113
        yield Mount("ro-bind", real, real)


def _real_parent(path: str | Path) -> str:
    """A path without links on the way to it; links in a path that is mounted would lead elsewhere."""
    path = os.path.normpath(path)
    return os.path.normpath(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)))  # noqa: PTH118, PTH119, PTH120


def _sockets() -> Iterable[str]:
    """The sockets of programs on this machine: who may open them can talk to these programs, read-only or not."""
    try:
        lines = _SOCKETS.read_bytes().splitlines()
    except OSError:
        return ()
    fields = (line.split(None, 7) for line in lines[1:])
    paths = {os.path.realpath(os.fsdecode(row[7])) for row in fields if len(row) == 8 and row[7].startswith(b"/")}
    return sorted(filter(_is_socket, paths))


def _is_socket(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    return False
