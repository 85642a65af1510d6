"""Runs git in a restricted environment, in which no configuration or variable can redirect it."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.executables import safe_path
from donewhen.foundation.files import opened
from donewhen.foundation.foreign_repository import READING, view_of
from donewhen.foundation.process import small_environment

_TIMEOUT = 120.0
_GIT_FILES = ("HEAD", "config", "index", "packed-refs", "shallow", "commondir", "info/exclude", "info/attributes")
# A repository's own configuration can name programs to run, and can declare it bare.
_SAFE = (
    *("-c", "core.bare=false", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "log.showSignature=false", "-c", "trailer.separators=:", "-c", "core.commitGraph=false"),
)


# The index and the tracked files of the repositories that this process has asked about.
_TRACKED: dict[Path, tuple[bytes, tuple[str, ...]]] = {}
_MAX_KEPT = 8


class GitError(DonewhenError):
    """git can't read an object that should exist."""

    code = "git"


def git(folder: Path, *arguments: str, given: bytes | None = None) -> bytes | None:
    """Run git with ``given`` as its input and return its output; None if git is missing or fails."""
    start = git_start(folder, *arguments)
    if start is None:
        return None
    try:
        result = subprocess.run(
            start.argv, cwd=folder, env=start.environment, input=given, capture_output=True, timeout=_TIMEOUT
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout if result.returncode == 0 else None


def filter_commands(folder: Path, names: Collection[str]) -> dict[str, str]:
    """The commands of these filters as git would run them now for this user, for example of `lfs.smudge`.

    Unlike everywhere else, the settings of the user and the system count: that is where filters are installed.
    """
    if not names:
        return {}
    start = git_start(folder, "config", "--null", "--get-regexp", r"^filter\..*\.(clean|smudge|process)$")
    if start is None:
        return {}
    environment = {
        name: value
        for name, value in start.environment.items()
        if name not in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "XDG_CONFIG_HOME")
    }
    environment |= {name: os.environ[name] for name in ("XDG_CONFIG_HOME",) if name in os.environ}
    try:
        result = subprocess.run(start.argv, cwd=folder, env=environment, capture_output=True, timeout=_TIMEOUT)
    except (OSError, subprocess.SubprocessError):
        return {}
    found: dict[str, str] = {}
    for entry in result.stdout.decode("utf-8", "replace").split("\0"):
        key, _, command = entry.partition("\n")
        key = key.removeprefix("filter.")
        if key.rpartition(".")[0] in names and command:
            found[key] = command
    return found


@dataclass(frozen=True)
class GitStart:
    """How git is started."""

    argv: tuple[str, ...]
    environment: dict[str, str]


def git_start(folder: Path, *arguments: str) -> GitStart | None:
    """How to start git for a folder. For the repository of another user, None unless it is only read."""
    top = repository_root(folder)
    place = None if top is None else top / ".git"
    if top is not None and not _is_owned_by_user(top):
        place = view_of(top) if _verb(arguments) in READING else None
        if place is None:
            return None
    if top is not None and not _can_be_read(top / ".git"):
        return None
    environment = small_environment() | {
        "PATH": safe_path(folder, environments=False),
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        # User and system configuration, replaced objects and grafts could hide what was committed.
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        # So could attributes and ignore files of the user, which git reads even without their configuration.
        "XDG_CONFIG_HOME": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
    }
    # Set explicitly, so that the repository's own configuration can't override it.
    location = (f"--git-dir={place}", f"--work-tree={top}", *_SAFE) if place is not None else ()
    return GitStart(("git", *location, *arguments), environment)


def _can_be_read(place: Path) -> bool:
    """Whether none of git's own files is a pipe or a device, for which git would wait without end."""
    for name in ("", *_GIT_FILES):
        with suppress(OSError):
            kind = stat.S_IFMT(os.stat(place / name if name else place).st_mode)  # noqa: PTH116
            if kind not in (stat.S_IFREG, stat.S_IFDIR):
                return False
    return True


def _verb(arguments: Sequence[str]) -> str:
    """What git is asked to do: the first argument that is no option of git itself."""
    words = iter(arguments)
    for word in words:
        if word == "-c":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def repository_root(folder: Path) -> Path | None:
    """The folder itself or its nearest parent that contains ``.git``, readable or not."""
    start = Path(os.path.realpath(folder))
    return next((parent for parent in (start, *start.parents) if os.path.lexists(parent / ".git")), None)


def _is_owned_by_user(top: Path) -> bool:
    """Whether the repository belongs to this user or root. With ``--git-dir``, git does not check that itself."""
    return (top / ".git").lstat().st_uid in (os.getuid(), 0)


def worktree_root(folder: Path) -> Path | None:
    """The root of the work tree that contains a folder."""
    output = git(folder, "rev-parse", "--show-toplevel")
    return None if output is None else Path(os.fsdecode(output.rstrip(b"\n")))


def tracked_files(folder: Path) -> tuple[Path, list[str]] | None:
    """The root of the work tree that contains a folder, and the files that git tracks in it; None without git.

    git is asked again only if its index has changed since: the names depend on nothing else.
    """
    top = repository_root(folder)
    if top is None:
        return None
    index = _index_digest(top)
    known = _TRACKED.get(top)
    if index is not None and known is not None and known[0] == index:
        return top, [*known[1]]
    listed = git(top, "ls-files", "-z", "--recurse-submodules")
    if listed is None:
        return None
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    # If the index was written meanwhile, it is not known which of the two git has read.
    if index is not None and index == _index_digest(top):
        if len(_TRACKED) >= _MAX_KEPT:
            _TRACKED.pop(next(iter(_TRACKED)), None)
        _TRACKED[top] = (index, tuple(names))
    return top, names


def _index_digest(top: Path) -> bytes | None:
    """A hash of the repository's index; None if the tracked files depend on more than that file."""
    try:
        if (top / ".gitmodules").exists() or not (top / ".git").is_dir():
            return None
        with opened(top / ".git" / "index") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return None


def first_commit_with(path: Path, text: str) -> str | None:
    """The short id of the first commit that brought this text into a file; None if git does not know it."""
    output = git(path.parent, "log", "--reverse", "--format=%h", f"-S{text}", "--", path.name)
    lines = [] if output is None else output.decode("ascii", "replace").split()
    return lines[0] if lines else None


def committed_files(top: Path, folder: str) -> Iterator[tuple[str, bytes]]:
    """The files of a folder in the current commit with their contents, read with a single git process."""
    files = files_in_commit(top, "HEAD", f"{folder}/")
    yield from zip((file.name for file in files), blob_contents(top, [file.blob for file in files]), strict=False)


class CommittedFile(NamedTuple):
    """A file of a commit."""

    name: str
    mode: str
    blob: str


def files_in_commit(top: Path, commit: str, *paths: str) -> list[CommittedFile]:
    """The files of a commit, or those at the given paths; submodules are skipped."""
    listed = git(top, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths) or b""
    rows = [row.partition(b"\t") for row in listed.split(b"\0") if row]
    files = [(os.fsdecode(name), meta.decode("ascii", "replace").split()) for meta, _, name in rows]
    return [CommittedFile(name, mode, blob) for name, (mode, kind, blob) in files if kind == "blob"]


def blob_contents(top: Path, blobs: Sequence[str]) -> Iterator[bytes]:
    """The contents of blobs in this order, read with a single git process."""
    output = git(top, "cat-file", "--batch", given="\n".join(blobs).encode() + b"\n") if blobs else None
    if output is None:
        return
    position = 0
    for blob in blobs:
        end = output.find(b"\n", position)
        header = output[position:end].split()
        if end < 0 or len(header) != 3:
            raise GitError(f"git can't read the object {blob[:12]}.", where=str(top), next_step="git fsck")
        size = int(header[2])
        yield output[end + 1 : end + 1 + size]
        position = end + 1 + size + 1
