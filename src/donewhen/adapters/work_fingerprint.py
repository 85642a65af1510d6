"""Fingerprint the files of a project, to see whether an agent has worked since the last check."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from donewhen.config.state_folder import FOLDER

_MAX_FILES = 20_000
_MAX_BYTES = 64 << 20
_PIECE = 1 << 20
_OWN_STATE = (f"{FOLDER}/state", f"{FOLDER}/cache", f"{FOLDER}/.git")
"""What donewhen itself writes while it checks, by the beginnings of the names."""


def fingerprint_work(root: Path, files: Iterable[str] = ()) -> str | None:
    """Return a fingerprint of the files in ``root``; None if there are too many to read.

    In a git repository it covers the commit, all changed and untracked files, and ``files`` even if git ignores them.
    """
    changed = _changed_files(root)
    base, names = ("", _all_files(root)) if changed is None else changed
    digest = hashlib.sha256(base.encode("utf-8", "surrogateescape"))
    left = _MAX_BYTES
    for count, name in enumerate(chain(names, sorted(files))):
        if count == _MAX_FILES:
            return None
        digest.update(b"\0" + os.fsencode(name) + b"\0")
        left -= _add_file(digest, root / name, left)
    return digest.hexdigest()[:32]


def _changed_files(root: Path) -> tuple[str, Iterable[str]] | None:
    """What git says about the files in ``root``, and the changed ones; None if it is in no repository."""
    from donewhen.foundation.git import git, repository_root

    top = repository_root(root)
    if top is None:
        return None
    output = git(root, "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames", "--", ".")
    if output is None:
        return None
    facts: list[str] = []
    names: list[str] = []
    for record in os.fsdecode(output).split("\0"):
        kind, _, rest = record.partition(" ")
        if kind == "#":
            # Other headers are about the server's branch.
            facts += [record] if rest.startswith("branch.oid") else []
        elif kind in ("1", "u", "?"):
            fields = rest.split(" ", {"1": 7, "u": 9, "?": 0}[kind])
            name = os.path.relpath(top / fields[-1], os.path.realpath(root))
            if not name.startswith(_OWN_STATE):
                facts.append(record)
                names.append(name)
    return "\0".join(facts), sorted(names)


def _all_files(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        inside = os.path.relpath(folder, root)
        prefix = "" if inside == "." else f"{inside}/"
        folders[:] = sorted(name for name in folders if not f"{prefix}{name}".startswith(_OWN_STATE))
        yield from (f"{prefix}{name}" for name in sorted(names) if not f"{prefix}{name}".startswith(_OWN_STATE))


def _add_file(digest: hashlib._Hash, path: Path, limit: int) -> int:
    """Add a file to the digest and return how much of it was read: at most ``limit`` bytes, and its size."""
    try:
        if path.is_symlink():
            digest.update(b"link " + os.fsencode(os.readlink(path)))  # noqa: PTH115
            return 0
        # Not to wait for a named pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        digest.update(f"error {error.errno}".encode())
        return 0
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        digest.update(f"{stat.S_IMODE(status.st_mode)} {status.st_size} ".encode())
        if not stat.S_ISREG(status.st_mode):
            return 0
        read = 0
        while read < limit and (piece := file.read(min(_PIECE, limit - read))):
            digest.update(piece)
            read += len(piece)
        return read
