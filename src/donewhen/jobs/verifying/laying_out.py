"""Write files of commits to a temporary folder that is a repository of its own."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from donewhen.foundation.git import CommittedFile, git
from donewhen.jobs.record.anchors import NOTES
from donewhen.jobs.verifying.base_branch import Base, BaseError

_BATCH = 200
_LFS_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n")
_MAX_POINTER = 1024


def init_repository(base: Base, folder: Path, head: str) -> None:
    """Create a repository that shares the objects of the original, so that git gives the same answers."""
    kind = (git(base.top, "rev-parse", "--show-object-format") or b"sha1").decode().strip()
    shared = git(base.top, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    shallow = git(base.top, "rev-parse", "--path-format=absolute", "--git-path", "shallow")
    initialised = git(folder, "init", "--quiet", "--template=", f"--object-format={kind}", ".")
    if initialised is None or shared is None:
        raise BaseError("git can't create a temporary repository.", where=str(folder), next_step="git --version")
    (folder / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "objects" / "info" / "alternates").write_bytes(shared)
    if shallow is not None and (old := Path(os.fsdecode(shallow.rstrip(b"\n")))).is_file():
        shutil.copyfile(old, folder / ".git" / "shallow")
    git(folder, "update-ref", "--no-deref", "HEAD", head)
    git(folder, "read-tree", head)
    if (notes := git(base.top, "rev-parse", "--verify", "--quiet", f"refs/notes/{NOTES}")) is not None:
        git(folder, "update-ref", f"refs/notes/{NOTES}", notes.decode().strip())


@dataclass(frozen=True)
class WrittenFiles:
    """What was written in the place of pointers of Git LFS."""

    fetched: frozenset[str]
    """The files with their contents."""
    not_fetched: tuple[str, ...]
    """Those whose content is not here, so that the pointer was written."""


def write_files(base: Base, folder: Path, files: Iterable[CommittedFile]) -> WrittenFiles:
    """Write files as they were committed, without the conversions that a checkout could make.

    A pointer of Git LFS is replaced by its content.
    """
    waiting = [*files]
    fetched: set[str] = set()
    not_fetched: list[str] = []
    # In batches, because the contents are held in memory.
    for batch in (waiting[start : start + _BATCH] for start in range(0, len(waiting), _BATCH)):
        contents = list(base.contents(batch))
        for file, content in zip(batch, contents, strict=True):
            path = clear_path(folder, file.name)
            if file.mode == "120000":
                path.symlink_to(os.fsdecode(content))
                continue
            if (digest := _lfs_digest(content)) is not None:
                stored = _lfs_content(base, file, digest)
                if stored is None:
                    not_fetched.append(file.name)
                else:
                    fetched.add(file.name)
                    content = stored
            path.write_bytes(content)
            path.chmod(0o755 if file.mode == "100755" else 0o644)
    return WrittenFiles(frozenset(fetched), tuple(not_fetched))


def remove_links_out(folder: Path, names: Iterable[str], linked: Sequence[str]) -> list[str]:
    """Remove links that lead out of the folder, and return their names. ``linked`` are the linked environments."""
    inside = (folder, *(Path(os.path.realpath(folder / name)) for name in linked))
    links = [name for name in names if (folder / name).is_symlink() and name not in linked]
    out = [name for name in links if not _is_inside(Path(os.path.realpath(folder / name)), inside)]
    for name in out:
        (folder / name).unlink()
    return sorted(out)


def clear_path(folder: Path, name: str) -> Path:
    """Return the path of a new file. Links and files on the way are replaced by folders, since links could lead out."""
    place = folder
    for part in name.split("/")[:-1]:
        place = place / part
        if place.is_symlink() or not place.is_dir():
            place.unlink(missing_ok=True)
            place.mkdir()
    path = folder / name
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError):
            path.unlink()
    return path


def _is_inside(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _lfs_digest(content: bytes) -> str | None:
    """The digest in a pointer of Git LFS; None for any other content."""
    found = _LFS_POINTER.match(content) if len(content) <= _MAX_POINTER else None
    return None if found is None else found[1].decode()


def _lfs_content(base: Base, file: CommittedFile, digest: str) -> bytes | None:
    """What a pointer of Git LFS stands for, if it is here: the commit has its digest, so its origin doesn't matter."""
    store = git(base.top, "rev-parse", "--path-format=absolute", "--git-path", "lfs/objects") or b""
    places = (
        Path(os.fsdecode(store.rstrip(b"\n"))) / digest[:2] / digest[2:4] / digest,
        base.top / file.name,
    )
    for place in places:
        with suppress(OSError):
            found = place.read_bytes()
            if hashlib.sha256(found).hexdigest() == digest:
                return found
    return None
