"""What is checked out in a folder, read from git's files, because a hook that asks git starts slowly."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.files import read_regular, read_start
from donewhen.foundation.git import git, repository_root
from donewhen.foundation.size_limits import OTHER

DETACHED = "detached"
"""Instead of a branch: a commit is checked out, as in a rebase or a bisection."""
WITHOUT_GIT = "without git"
_BRANCH = "refs/heads/"
# The content of HEAD where git keeps all references in tables.
_IN_TABLES = "refs/heads/.invalid"
_LONGEST_LINE = 4096
_NO_COMMIT = b"0" * 40


class CheckedOut(NamedTuple):
    """What is checked out in a work tree."""

    top: Path
    """The root of the work tree; without git, the folder that was asked about."""
    branch: str
    """``refs/heads/…``, or one of the words above."""
    begun: str
    """A hash of the first line of the log of this work tree; empty if it is not known. Another clone in the same place
    has another one."""


def checked_out(folder: Path) -> CheckedOut:
    """What is checked out in the work tree around a folder. Raise OSError if git's files are not regular files."""
    top = repository_root(folder)
    if top is None:
        return CheckedOut(Path(os.path.realpath(folder)), WITHOUT_GIT, "")
    place = git_folder(top)
    if place is None:
        return CheckedOut(top, DETACHED, "")
    return CheckedOut(top, _branch(top, place), _beginning(place))


def git_folder(top: Path) -> Path | None:
    """The git folder of a work tree, which may be linked to a repository elsewhere."""
    entry = top / ".git"
    if entry.is_dir():
        return entry
    pointer = read_regular(entry, OTHER).decode("utf-8", "surrogateescape").strip()
    return top / pointer.removeprefix("gitdir:").strip() if pointer.startswith("gitdir:") else None


def _branch(top: Path, place: Path) -> str:
    head = place / "HEAD"
    try:
        text = read_regular(head, OTHER).decode("utf-8", "surrogateescape").strip()
    except FileNotFoundError:
        return DETACHED
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        text = f"ref: {os.readlink(head)}"  # noqa: PTH115 - as old versions of git wrote it
    name = text.removeprefix("ref:").strip()
    if name == _IN_TABLES:
        name = (git(top, "symbolic-ref", "-q", "HEAD") or b"").decode("utf-8", "surrogateescape").strip()
    return name if name.startswith(_BRANCH) else DETACHED


def _beginning(place: Path) -> str:
    """A log that git has shortened does not begin with a line that follows no commit."""
    try:
        line = read_start(place / "logs" / "HEAD", _LONGEST_LINE).partition(b"\n")[0]
    except FileNotFoundError:
        return ""
    return hashlib.sha256(line).hexdigest() if line.startswith(_NO_COMMIT) else ""
