"""Write files of commits to a temporary folder that is a repository of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from donewhen.foundation.git import CommittedFile, git
from donewhen.foundation.git_objects import LINK, PROGRAM
from donewhen.jobs.record.anchors import NOTES
from donewhen.jobs.verifying.base_branch import Base, BaseError

_BATCH = 200


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


def write_files(base: Base, folder: Path, files: Iterable[CommittedFile]) -> None:
    """Write files as they were committed, without the conversions that a checkout could make."""
    waiting = [*files]
    # In batches, because the contents are held in memory.
    for batch in (waiting[start : start + _BATCH] for start in range(0, len(waiting), _BATCH)):
        for file, content in zip(batch, base.contents(batch), strict=True):
            path = clear_path(folder, file.name)
            if file.mode == LINK:
                path.symlink_to(os.fsdecode(content))
                continue
            path.write_bytes(content)
            path.chmod(0o755 if file.mode == PROGRAM else 0o644)


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
