"""The repository of a room: of its own, with one commit that has exactly the files of the room."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from donewhen.foundation.git import GitError, git
from donewhen.foundation.git_objects import TreeFile

_SETTINGS = (
    *("-c", "user.name=donewhen", "-c", "user.email=donewhen@localhost", "-c", "commit.gpgSign=false"),
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.fileMode=true", "-c", "checkout.workers=2"),
)
_RAW = "* -text -eol -ident -filter -working-tree-encoding -merge -diff\n"


def start_repository(folder: Path, top: Path, commit: str, files: Mapping[str, TreeFile]) -> None:
    """Create a repository that can read the objects of another one, with these files of ``commit`` in its index.

    Nothing else of the other repository is used: no settings, hooks, attributes or references.
    """
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
    rows = [f"{file.mode} {file.blob}\t".encode() + os.fsencode(name) + b"\0" for name, file in files.items()]
    _git(folder, *_SETTINGS, "update-index", "-z", "--index-info", given=b"".join(rows))


def check_out(folder: Path, names: Collection[str]) -> None:
    """Write files of the index into the folder."""
    given = b"".join(os.fsencode(name) + b"\0" for name in names)
    _git(folder, *_SETTINGS, "checkout-index", "--force", "--index", "-z", "--stdin", given=given)


def finish_repository(folder: Path, names: Collection[str]) -> None:
    """Make one commit of the files as they lie in the folder; ``names`` are not in the index yet. The rules for
    attributes are those of the files from then on."""
    given = b"".join(os.fsencode(name) + b"\0" for name in names)
    if given:
        _git(folder, *_SETTINGS, "update-index", "--add", "--replace", "-z", "--stdin", given=given)
    tree = _git(folder, "write-tree", "--missing-ok").decode().strip()
    made = _git(folder, *_SETTINGS, "commit-tree", "-m", "The files as they are checked", tree).decode().strip()
    _git(folder, "update-ref", "HEAD", made)
    (folder / ".git" / "info" / "attributes").unlink(missing_ok=True)


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
        verb = next(word for word in arguments if word != "-c" and "=" not in word)
        raise GitError(
            f"git {verb} failed in a temporary repository.",
            where=str(folder),
            next_step="Is there enough space on that disk? Another folder can be set with TMPDIR.",
        )
    return output
