"""Which clone of a repository a folder belongs to.

A clone has a random id in its git folder, which nobody commits. An id can be changed or lost, so the clone is also
known by the place of that folder and by its number in the file system: two clones differ only if all of it does.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from donewhen.foundation.files import read_regular
from donewhen.foundation.git import repository_root
from donewhen.foundation.git_head import git_folder
from donewhen.foundation.size_limits import OTHER

CLONE_FILE = Path("donewhen") / "clone"
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Clone:
    """A clone, and the work tree in it."""

    id: str
    """Empty if there is none, or it can't be read."""
    places: tuple[str, ...]
    """Hashes of where the clone is."""
    worktree: str
    """A hash of where the work tree is."""

    def is_other_than(self, id: str, places: tuple[str, ...]) -> bool:  # noqa: A002 - as the field
        """Whether a clone with this id and these places is certainly another one."""
        return bool(id and self.id and id != self.id) and not set(places) & set(self.places)


def clone_of(folder: Path) -> Clone:
    """The clone that a folder belongs to. Gives it an id if it has none."""
    top = repository_root(folder)
    try:
        common = None if top is None else _common_folder(top)
    except OSError:
        common = None
    if top is None or common is None:
        place = Path(os.path.realpath(folder))
        return Clone("", _places(place), _hash("path", str(place)))
    return Clone(_clone_id(common / CLONE_FILE), _places(common), _hash("path", os.path.realpath(top)))


def _common_folder(top: Path) -> Path | None:
    """The git folder that all work trees of a clone share."""
    place = git_folder(top)
    if place is None:
        return None
    try:
        shared = read_regular(place / "commondir", OTHER).decode("utf-8", "surrogateescape").strip()
    except FileNotFoundError:
        shared = "."
    return Path(os.path.realpath(place / shared))


def _clone_id(path: Path) -> str:
    with suppress(OSError):
        if not os.path.lexists(path):
            import secrets  # only once in a clone's life

            path.parent.mkdir(exist_ok=True)
            # Complete from the beginning: another process may read it at once.
            new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
            new.write_text(f"{secrets.token_hex(16)}\n")
            with suppress(FileExistsError):
                os.link(new, path)
            new.unlink()
        found = read_regular(path, OTHER).decode("ascii", "replace").strip()
        return found if _ID.fullmatch(found) else ""
    return ""


def _places(folder: Path) -> tuple[str, ...]:
    with suppress(OSError):
        about = folder.stat()
        return _hash("path", str(folder)), _hash("number", f"{about.st_dev} {about.st_ino}")
    return (_hash("path", str(folder)),)


def _hash(kind: str, value: str) -> str:
    machine = b""
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_bytes().strip()
    about = f"{kind}\0{os.uname().nodename}\0{value}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(machine + b"\0" + about).hexdigest()[:16]
