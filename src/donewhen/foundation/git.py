"""Asking git, in an environment in which nobody can point it elsewhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.executables import safe_path
from donewhen.foundation.process import small_environment

_TIMEOUT = 120.0
# A repository's own configuration can name programs, and can say that it has no files.
_SAFE = (
    *("-c", "core.bare=false", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "log.showSignature=false", "-c", "trailer.separators=:"),
)


class GitError(DonewhenError):
    """git has lost something that it should have."""

    code = "git"


def git(folder: Path, *arguments: str, given: bytes | None = None) -> bytes | None:
    """What git answers; None where there is no git, no repository, or nothing to answer."""
    top = repository_root(folder)
    if top is not None and not _is_ours(top):
        return None
    environment = small_environment() | {
        "PATH": safe_path(folder, environments=False),
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        # What a person's or a system's configuration, a replaced object or a graft says is not what was committed.
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
    }
    # Said here, so that the repository's own configuration can't say otherwise.
    place = (f"--git-dir={top / '.git'}", f"--work-tree={top}", *_SAFE) if top is not None else ()
    try:
        done = subprocess.run(
            ("git", *place, *arguments), cwd=folder, env=environment, input=given, capture_output=True, timeout=_TIMEOUT
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def repository_root(folder: Path) -> Path | None:
    """The nearest folder upwards with a ``.git`` in it, whether or not git can read that."""
    place = Path(os.path.realpath(folder))
    return next((parent for parent in (place, *place.parents) if os.path.lexists(parent / ".git")), None)


def _is_ours(top: Path) -> bool:
    """git itself refuses a repository of somebody else; with the place given to it, it would not ask."""
    return (top / ".git").lstat().st_uid in (os.getuid(), 0)


def worktree_root(folder: Path) -> Path | None:
    """The folder of the repository that this one is in."""
    answer = git(folder, "rev-parse", "--show-toplevel")
    return None if answer is None else Path(os.fsdecode(answer.rstrip(b"\n")))


def committed_files(top: Path, folder: str) -> Iterator[tuple[str, bytes]]:
    """The files of a folder in the current commit, each with its content; one question for all of them."""
    found = files_in_commit(top, "HEAD", f"{folder}/")
    yield from zip((one.name for one in found), blob_contents(top, [one.blob for one in found]), strict=False)


class CommittedFile(NamedTuple):
    """A file of a commit."""

    name: str
    mode: str
    blob: str


def files_in_commit(top: Path, commit: str, *paths: str) -> list[CommittedFile]:
    """The files of a commit, or those of it at some paths; submodules are left out."""
    listed = git(top, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths) or b""
    rows = [row.partition(b"\t") for row in listed.split(b"\0") if row]
    files = [(os.fsdecode(name), meta.decode("ascii", "replace").split()) for meta, _, name in rows]
    return [CommittedFile(name, mode, blob) for name, (mode, kind, blob) in files if kind == "blob"]


def blob_contents(top: Path, blobs: Sequence[str]) -> Iterator[bytes]:
    """The contents of files of a commit, in this order; one question for all of them."""
    answer = git(top, "cat-file", "--batch", given="\n".join(blobs).encode() + b"\n") if blobs else None
    if answer is None:
        return
    position = 0
    for blob in blobs:
        end = answer.find(b"\n", position)
        header = answer[position:end].split()
        if end < 0 or len(header) != 3:
            raise GitError(f"git can't read the object {blob[:12]}.", where=str(top), next_step="git fsck")
        size = int(header[2])
        yield answer[end + 1 : end + 1 + size]
        position = end + 1 + size + 1
