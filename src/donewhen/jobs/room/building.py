"""Lays out the files of a room in a folder, and puts them back after a command has written there."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from donewhen.foundation.git_objects import LINK, PROGRAM, TreeFile, folders_of
from donewhen.jobs.room.blobs import Blobs
from donewhen.jobs.room.disk_tree import read_file
from donewhen.jobs.room.room_plan import Tree

_READ_ONLY = {PROGRAM: 0o555}
_WRITABLE = {PROGRAM: 0o755}
# Anything else beside them is no part of a virtual environment, but could be a module or settings.
_ENVIRONMENT_PARTS = ("bin", "include", "lib", "lib64", "Lib", "Scripts", "share", "etc", "pyvenv.cfg")
MOUNTED_PACKAGES = ".packages"
"""Where the packages lie in the `node_modules` of a room at the project's own path; that folder can be written to."""
# The hidden folders that package managers of JavaScript install packages and their programs in.
_PACKAGE_FOLDERS = (".bin", ".pnpm", ".store")


def lay_out(folder: Path, tree: Tree, blobs: Blobs, *, writable: Callable[[str], bool]) -> None:
    """Write files into a folder that lacks them. Agreed files are read-only: a check that writes to one fails."""
    for inner in sorted(folders_of(tree)):
        os.makedirs(f"{folder}/{inner}", exist_ok=True)  # noqa: PTH103 - thousands of them
    _write(str(folder), list(tree.items()), blobs, writable)


def close_for_writing(folder: Path, names: Iterable[str], tree: Tree, writable: Callable[[str], bool]) -> None:
    """Make files that git has written read-only, as ``lay_out`` does."""
    for name in names:
        if tree[name].mode != LINK and not writable(name):
            os.chmod(f"{folder}/{name}", _READ_ONLY.get(tree[name].mode, 0o444))  # noqa: PTH101


def remove_unknown(folder: Path, tree: Tree) -> None:
    """Remove what is not in the tree."""
    _remove_unknown(str(folder), tree)


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files, links or folders with these names."""
    for name in names:
        _remove(f"{folder}/{name}")


def changed_files(folder: Path, tree: Tree, *, own: bool = False) -> list[str]:
    """The files of a tree that don't have their content in a folder any more. With ``own``, also those that are not as
    this program lays them out: with another mode, or with a second name by which they could be written to."""
    return [name for name, file in tree.items() if not _is_same(str(folder), name, file, own=own)]


def marks_of(folder: Path, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """What the system changes whenever somebody writes to a file, renames or replaces it, and nobody can set back: a
    file that was another one for a while and has its content again has another mark."""
    marks: dict[str, tuple[int, int]] = {}
    for name in names:
        with suppress(OSError):
            status = os.lstat(f"{folder}/{name}")
            marks[name] = (status.st_ino, status.st_ctime_ns)
    return marks


def touched_files(folder: Path, marks: Mapping[str, tuple[int, int]]) -> list[str]:
    """The files that have another mark than they had."""
    now = marks_of(folder, marks)
    return [name for name, mark in marks.items() if now.get(name) != mark]


def change_files(folder: Path, contents: Mapping[str, bytes | None]) -> None:
    """Give files of a laid out room another content for a while, or remove them. Links are left alone."""
    for name, content in contents.items():
        path = folder / name
        if path.is_symlink() or any(parent.is_symlink() for parent in path.relative_to(folder).parents):
            continue
        path.unlink(missing_ok=True)
        if content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def remove_room(folder: Path) -> None:
    """Remove a folder with everything in it, also what a command has made unreadable."""

    def retry(function: Callable[[str], object], path: str, _: object) -> None:
        with suppress(OSError):
            os.chmod(Path(path).parent, 0o700)  # noqa: PTH101
            os.chmod(path, 0o700)  # noqa: PTH101
            function(path)

    shutil.rmtree(folder, onerror=retry)


def _write(folder: str, files: list[tuple[str, TreeFile]], blobs: Blobs, writable: Callable[[str], bool]) -> None:
    contents = blobs.contents([(name, file.blob) for name, file in files])
    for (name, file), content in zip(files, contents, strict=True):
        path = f"{folder}/{name}"
        if file.mode == LINK:
            os.symlink(os.fsdecode(content), path)  # noqa: PTH211
            continue
        modes, default = (_WRITABLE, 0o644) if writable(name) else (_READ_ONLY, 0o444)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, modes.get(file.mode, default))
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)


def _is_same(folder: str, name: str, file: TreeFile, *, own: bool) -> bool:
    try:
        now = read_file(folder, name, file.blob)
    except OSError:
        return False
    if now is None or now.blob != file.blob or (now.mode == LINK) != (file.mode == LINK):
        return False
    if not own:
        return True
    # A hard link could be written to from outside.
    return now.mode == file.mode and (now.mode == LINK or os.lstat(f"{folder}/{name}").st_nlink == 1)


def _remove_unknown(folder: str, tree: Tree) -> None:
    folders = folders_of(tree)
    level = [""]
    while level:
        following: list[str] = []
        for inner in level:
            for name, is_folder in _entries(folder, inner):
                if is_folder and name in folders:
                    following.append(name)
                elif is_folder or name not in tree:
                    _remove(f"{folder}/{name}")
        level = following


def _entries(folder: str, inner: str) -> Iterator[tuple[str, bool]]:
    prefix = f"{inner}/" if inner else ""
    with suppress(OSError):
        os.chmod(f"{folder}/{inner}", 0o755)  # noqa: PTH101, S103 - a command may have closed it
    with os.scandir(f"{folder}/{inner}") as entries:
        found = [(f"{prefix}{entry.name}", entry.is_dir(follow_symlinks=False)) for entry in entries]
    yield from found


def _remove(path: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            remove_room(Path(path))
        else:
            os.unlink(path)  # noqa: PTH108


def link_environments(
    folder: Path, top: Path, names: Iterable[str], taken: Mapping[str, object], *, mounted: bool = False
) -> None:
    """Link installed packages into a room. Links in `node_modules` that lead to the project's own packages lead to
    those of the room. With ``mounted``, the room will be at ``top``, with ``environment_mounts`` in it."""
    own = top if mounted else folder
    for name in names:
        target, path = top / name, folder / name
        if name in taken or not path.parent.is_dir() or os.path.lexists(path):
            continue
        path.mkdir()
        if path.name == "node_modules":
            _link_packages(target, path, target / MOUNTED_PACKAGES if mounted else target, top, own)
        elif not mounted:
            for part in environment_parts(target):
                (path / part.name).symlink_to(part)


def environment_mounts(top: Path, names: Iterable[str]) -> dict[Path, Path]:
    """The installed packages, and where they have to be in a room that is at ``top``."""
    mounts: dict[Path, Path] = {}
    for environment in (top / name for name in names):
        if environment.name == "node_modules":
            mounts[environment] = environment / MOUNTED_PACKAGES
        else:
            mounts |= {part: part for part in environment_parts(environment)}
    return mounts


def environment_parts(environment: Path) -> tuple[Path, ...]:
    """What of a folder with installed packages programs may find. A cache could say anything."""
    if environment.name == "node_modules":
        with os.scandir(environment) as entries:
            return tuple(environment / name for name in sorted(entry.name for entry in entries) if _is_installed(name))
    return tuple(environment / part for part in _ENVIRONMENT_PARTS if os.path.lexists(environment / part))


def _is_installed(name: str) -> bool:
    return not name.startswith(".") or name in _PACKAGE_FOLDERS


def _link_packages(source: Path, path: Path, target: Path, top: Path, own: Path) -> None:
    """Make links in ``path`` to what lies in ``source``, which programs will find at ``target``."""
    for found in environment_parts(source) if source.name == "node_modules" else sorted(source.iterdir()):
        place = path / found.name
        if found.is_symlink():
            real = Path(os.path.realpath(found))
            if not real.is_relative_to(os.path.realpath(top)):
                # A relative link would lead elsewhere from here.
                place.symlink_to(real)
                continue
            is_own = real.is_relative_to(top) and "node_modules" not in real.relative_to(top).parts
            place.symlink_to(own / real.relative_to(top) if is_own else target / found.name)
        elif found.name.startswith("@"):
            place.mkdir()
            _link_packages(found, place, target / found.name, top, own)
        else:
            place.symlink_to(target / found.name)
