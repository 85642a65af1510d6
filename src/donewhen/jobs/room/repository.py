"""The repository of a room: of its own, with one commit that has exactly the files of the room."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from donewhen.foundation.git import GitError, git

_SETTINGS = (
    *("-c", "user.name=donewhen", "-c", "user.email=donewhen@localhost", "-c", "commit.gpgSign=false"),
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.fileMode=true", "-c", "checkout.workers=2"),
)
_RAW = "* -text -eol -ident -filter -working-tree-encoding -merge -diff\n"


def start_repository(folder: Path, top: Path, commit: str) -> None:
    """Create a repository in an empty folder that can read the objects of another one, with a commit's files in its
    index. Nothing else of the other repository is used: no settings, hooks, attributes or references."""
    kind = "sha256" if len(commit) == 64 else "sha1"
    objects = git(top, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    if objects is None:
        raise GitError("git can't find the objects of the repository.", where=str(top), next_step="git fsck")
    # Made before git is started, which would otherwise take a repository above for this one.
    (folder / ".git").mkdir()
    _git(folder, "init", "--quiet", "--template=", f"--object-format={kind}", "--initial-branch=main", ".")
    place = folder / ".git"
    (place / "objects" / "info").mkdir(exist_ok=True)
    (place / "objects" / "info" / "alternates").write_bytes(objects)
    (place / "info").mkdir(exist_ok=True)
    # Files are laid out byte for byte.
    (place / "info" / "attributes").write_text(_RAW, encoding="utf-8")
    (place / "shallow").write_text(f"{commit}\n", encoding="ascii")
    _git(folder, "read-tree", commit)


def check_out(folder: Path, names: Collection[str]) -> None:
    """Write files of the index into the folder."""
    given = b"".join(os.fsencode(name) + b"\0" for name in names)
    _git(folder, *_SETTINGS, "checkout-index", "--force", "-z", "--stdin", given=given)


def finish_repository(folder: Path, names: Collection[str], gone: Collection[str], submodules: Collection[str]) -> None:
    """Make one commit of the files as they lie in the folder; ``names`` differ from the index, ``gone`` are not there.
    The rules for attributes are those of the files from then on."""
    # Removed first: what is added may lie where a folder, a file or a submodule was.
    if dropped := b"".join(os.fsencode(name) + b"\0" for name in [*gone, *submodules]):
        _git(folder, *_SETTINGS, "update-index", "--force-remove", "-z", "--stdin", given=dropped)
    if given := b"".join(os.fsencode(name) + b"\0" for name in names):
        _git(folder, *_SETTINGS, "update-index", "--add", "-z", "--stdin", given=given)
    tree = _git(folder, "write-tree").decode().strip()
    made = _git(folder, *_SETTINGS, "commit-tree", "-m", "The files as they are checked", tree).decode().strip()
    _git(folder, "update-ref", "HEAD", made)
    (folder / ".git" / "info" / "attributes").unlink(missing_ok=True)
    (folder / ".git" / "shallow").unlink(missing_ok=True)


def remove_repository(folder: Path) -> None:
    """Remove the repository of a room, whatever a command has made of it."""
    place = folder / ".git"
    if place.is_symlink() or place.is_file():
        place.unlink()
    else:
        shutil.rmtree(place, ignore_errors=True)


def _git(folder: Path, *arguments: str, given: bytes | None = None) -> bytes:
    output = git(folder, *arguments, given=given)
    if output is None:
        raise GitError(f"git {arguments[0]} failed in a temporary repository.", where=str(folder))
    return output
