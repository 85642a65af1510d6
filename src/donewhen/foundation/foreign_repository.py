"""Reads the repository of another user without their settings, which could name programs to run.

git refuses such a repository altogether. Its objects, references and index are data, though: they are read through a
git folder of our own that has no settings, hooks or attributes of theirs.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.files import opened

READING = frozenset(
    {"cat-file", "check-ignore", "diff", "for-each-ref", "grep", "log", "ls-files", "ls-tree", "merge-base"}
    | {"rev-list", "rev-parse", "show", "show-ref", "status", "symbolic-ref"}
)
"""What git may be asked for such a repository: nothing that writes to it or talks to a server."""

_HEAD = re.compile(r"(?:ref: refs/[^\s]+|[0-9a-f]{40}|[0-9a-f]{64})\s*")
_SHA256 = re.compile(r"^\s*objectformat\s*=\s*\"?sha256\b", re.IGNORECASE | re.MULTILINE)
_MAX_BYTES = 1 << 20
_LINKED = ("objects", "refs", "packed-refs", "shallow", "lfs")
_VIEWS: dict[Path, Path] = {}


class GitFolders(NamedTuple):
    """Where a repository lies; two folders for a worktree."""

    own: Path
    common: Path


def view_of(top: Path) -> Path | None:
    """A git folder of our own through which a repository can be read; None if it can't."""
    try:
        folders = _folders(top)
        head = _read(folders.own / "HEAD")
        if _HEAD.fullmatch(head) is None or not (folders.common / "objects").is_dir():
            return None
        view = _VIEWS.get(folders.own)
        if view is None:
            view = _made(folders)
            _VIEWS[folders.own] = view
        (view / "HEAD").write_text(head, encoding="ascii")
        _copy_index(folders.own / "index", view / "index")
    except (OSError, UnicodeError):
        return None
    return view


def _folders(top: Path) -> GitFolders:
    place = top / ".git"
    if place.is_file():
        place = top / _read(place).removeprefix("gitdir:").strip()
    place = Path(os.path.realpath(place))
    common = place
    with suppress(FileNotFoundError):
        common = place / _read(place / "commondir").strip()
    return GitFolders(place, Path(os.path.realpath(common)))


def _made(folders: GitFolders) -> Path:
    is_sha256 = _SHA256.search(_read(folders.common / "config")) is not None
    view = Path(tempfile.mkdtemp(prefix="donewhen-git-"))
    atexit.register(shutil.rmtree, view, ignore_errors=True)
    settings = "[core]\n\trepositoryformatversion = 0\n"
    if is_sha256:
        settings = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
    (view / "config").write_text(settings, encoding="ascii")
    for name in _LINKED:
        if (folders.common / name).exists():
            (view / name).symlink_to(folders.common / name)
    return view


def _copy_index(source: Path, copy: Path) -> None:
    """Copied, because git would write to the file that a link leads to."""
    try:
        status = source.stat()
    except FileNotFoundError:
        copy.unlink(missing_ok=True)
        return
    if not copy.exists() or (copy.stat().st_mtime_ns, copy.stat().st_size) != (status.st_mtime_ns, status.st_size):
        shutil.copyfile(source, copy)
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))


def _read(path: Path) -> str:
    with opened(path) as file:
        return file.read(_MAX_BYTES).decode("utf-8")
