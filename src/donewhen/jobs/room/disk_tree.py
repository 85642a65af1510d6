"""The files of a project as they are on disk. Nothing of the repository's own `.git` decides what belongs to them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from donewhen.config.state_folder import FOLDER
from donewhen.foundation.git_objects import FILE, LINK, PROGRAM, TreeFile, object_name

_CHUNK = 1 << 20
_CACHES = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".coverage"}
)
_NEVER = frozenset({".git", FOLDER})
_COMPILED = (".pyc", ".pyo")
_MAX_LINKS = 40
_PROGRAMS = ("bin", "Scripts")


class DiskTree(NamedTuple):
    """The files on disk."""

    files: dict[str, TreeFile]
    """The work tree, without ignored files and without those that donewhen writes."""
    environments: tuple[str, ...] = ()
    """Folders with installed packages: virtual environments and `node_modules`."""
    leading_out: tuple[str, ...] = ()
    """Links that lead out of the repository. They are left out, unless they are just as agreed."""
    unreadable: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Ignored files and folders, which were left out."""


IgnoredNames = Callable[[Sequence[str]], Collection[str]]
"""Returns those of some names that are ignored; names of folders end with a slash."""


def read_disk(
    top: Path,
    agreed: Mapping[str, TreeFile],
    folders: Collection[str],
    *,
    ignored: IgnoredNames = lambda _: (),
    is_generated: Callable[[str], bool] = lambda _: False,
    wanted: Callable[[str], bool] = lambda _: False,
    like: str = "",
) -> DiskTree:
    """Read the files below ``top``.

    ``wanted`` names are read although they are ignored; ``like`` is the name of a git object, whose algorithm is used.
    """
    files: dict[str, TreeFile] = {}
    environments: list[str] = []
    leading_out: list[str] = []
    unreadable: list[str] = []
    left_out: list[str] = []
    real_top = os.path.realpath(top)
    level = [""]
    while level:
        following: list[str] = []
        unknown: list[str] = []
        found: list[tuple[str, str]] = []
        for folder in level:
            for name, kind in _entries(real_top, folder):
                last = name.rpartition("/")[2]
                if last in _NEVER or is_generated(name):
                    continue
                known = name in (folders if kind == "folder" else agreed)
                if not known and kind == "folder" and _is_environment(real_top, name, agreed):
                    environments.append(name)
                    continue
                if not known and (last in _CACHES or last.endswith(_COMPILED) or last.startswith(".donewhen-")):
                    continue
                if not known and not _is_text(name):
                    # No other program could be told its name.
                    unreadable.append(os.fsencode(name).decode("utf-8", "backslashreplace"))
                    continue
                if not known:
                    unknown.append(f"{name}/" if kind == "folder" else name)
                found.append((name, kind))
        skipped = frozenset(ignored(unknown)) if unknown else frozenset()
        for name, kind in found:
            if (f"{name}/" if kind == "folder" else name) in skipped:
                if kind == "folder":
                    # An ignored folder may have agreed outputs, and nothing else is read in it.
                    kept = [inner for inner in _all_below(real_top, name) if wanted(inner)]
                    _add_files(real_top, kept, agreed, like, files, leading_out, unreadable)
                    left_out.append(f"{name}/")
                    continue
                if not wanted(name):
                    left_out.append(name)
                    continue
            if kind == "folder":
                following.append(name)
            else:
                _add_files(real_top, [name], agreed, like, files, leading_out, unreadable)
        level = following
    return DiskTree(files, tuple(environments), tuple(leading_out), tuple(unreadable), tuple(left_out))


def read_file(top: str, name: str, like: str) -> TreeFile | None:
    """One file on disk; None if it is no regular file or link."""
    path = f"{top}/{name}"
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return TreeFile(LINK, object_name(os.fsencode(os.readlink(path)), "blob", like))  # noqa: PTH115
    if not stat.S_ISREG(status.st_mode):
        return None
    mode = PROGRAM if status.st_mode & 0o100 else FILE
    return TreeFile(mode, blob_of_file(path, like))


@dataclass(frozen=True)
class ContentNames:
    """Two names of the same bytes, which were read once."""

    blob: str
    """The name that git would give the content."""
    sha256: str


def content_names(path: str, like: str) -> ContentNames:
    """The names of a file's content, read in pieces."""
    plain = hashlib.sha256()
    return ContentNames(_read_blob(path, like, plain.update), plain.hexdigest())


def blob_of_file(path: str, like: str) -> str:
    """The name that git would give a file's content, read in pieces."""
    return _read_blob(path, like, None)


def _read_blob(path: str, like: str, also: Callable[[bytes], None] | None) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        size = os.fstat(descriptor).st_size
        hasher = hashlib.sha256() if len(like) == 64 else hashlib.sha1(usedforsecurity=False)
        hasher.update(b"blob %d\0" % size)
        while chunk := file.read(_CHUNK):
            hasher.update(chunk)
            if also is not None:
                also(chunk)
        return hasher.hexdigest()


def leads_out(top: str, name: str) -> bool:
    """Whether a link on disk leads out of the repository, or would in a copy of it."""

    def target_of(path: str) -> str | None:
        try:
            return os.readlink(f"{top}/{path}")  # noqa: PTH115
        except OSError:
            return None

    return link_leads_out(target_of, name)


def link_leads_out(target_of: Callable[[str], str | None], name: str) -> bool:
    """Whether a link leads out of the repository, or would in a copy of it: its target is absolute, or the way to it
    leaves the repository and comes back. ``target_of`` returns where a link leads, and None for anything else."""
    here: list[str] = []
    waiting = name.split("/")[::-1]
    links = 0
    while waiting:
        part = waiting.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not here:
                return True
            here.pop()
            continue
        here.append(part)
        target = target_of("/".join(here))
        if target is None:
            continue
        links += 1
        if os.path.isabs(target) or links > _MAX_LINKS:  # noqa: PTH117
            # A circle leads nowhere, here and in a copy.
            return links <= _MAX_LINKS
        here.pop()
        waiting += target.split("/")[::-1]
    return False


def _add_files(
    top: str,
    names: Iterable[str],
    agreed: Mapping[str, TreeFile],
    like: str,
    files: dict[str, TreeFile],
    leading_out: list[str],
    unreadable: list[str],
) -> None:
    for name in names:
        try:
            file = read_file(top, name, like)
            if file is None:
                # A pipe or a device is no work, and opening it could wait for ever.
                unreadable.append(name)
            elif file.mode == LINK and leads_out(top, name):
                leading_out.append(name)
                if agreed.get(name) == file:
                    files[name] = file
            else:
                files[name] = file
        except FileNotFoundError:
            continue
        except OSError:
            unreadable.append(name)


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _entries(top: str, folder: str) -> Iterator[tuple[str, str]]:
    """The entries of a folder by name, each with its kind: ``folder`` or ``file``."""
    prefix = f"{folder}/" if folder else ""
    try:
        with os.scandir(f"{top}/{folder}") as entries:
            for entry in entries:
                yield f"{prefix}{entry.name}", "folder" if entry.is_dir(follow_symlinks=False) else "file"
    except OSError:
        return


def _all_below(top: str, folder: str) -> Iterator[str]:
    level = [folder]
    while level:
        following: list[str] = []
        for inner in level:
            for name, kind in _entries(top, inner):
                if kind == "folder":
                    following.append(name)
                else:
                    yield name
        level = following


def _is_environment(top: str, name: str, agreed: Collection[str]) -> bool:
    """Whether a folder has installed packages. Those of Node.js lie beside an agreed manifest: any nearer ones would
    take their place."""
    folder, slash, last = name.rpartition("/")
    if last == "node_modules":
        manifest = f"{folder}{slash}package.json"
        return manifest in agreed if agreed else os.path.lexists(f"{top}/{manifest}")
    path = f"{top}/{name}"
    return os.path.isfile(f"{path}/pyvenv.cfg") and any(os.path.isdir(f"{path}/{part}") for part in _PROGRAMS)  # noqa: PTH112, PTH113


def read_names(top: Path, limit: int = 100_000) -> list[str]:
    """The names of the files below a folder, without hidden folders, caches and installed packages."""
    names: list[str] = []
    level = [""]
    while level and len(names) < limit:
        following: list[str] = []
        for folder in level:
            for name, kind in _entries(str(top), folder):
                last = name.rpartition("/")[2]
                if kind != "folder":
                    names.append(name)
                elif (
                    not last.startswith(".")
                    and last not in _CACHES
                    and last != "node_modules"
                    and not _is_environment(str(top), name, ())
                ):
                    following.append(name)
        level = following
    return names
