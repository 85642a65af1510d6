"""A repository of our own with a few agreed files, in which git is asked what those files say about others.

The repository of the project has settings, attributes and ignore rules that nobody has agreed to.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from donewhen.foundation.git import GitError, git
from donewhen.foundation.git_objects import LINK, PROGRAM, TreeFile
from donewhen.jobs.room.blobs import Blobs


@contextmanager
def temporary_repository(files: Mapping[str, TreeFile], blobs: Blobs, like: str, *, inside: str = "") -> Iterator[Path]:
    """An empty repository with these files in its work tree, as they are stored. ``inside`` is the folder that they
    have in ``blobs``, with a trailing slash; ``like`` is the name of some object of the real repository."""
    with tempfile.TemporaryDirectory(prefix="donewhen-rules-", ignore_cleanup_errors=True) as folder:
        place = Path(os.path.realpath(folder))
        # Made before git is started, which would otherwise look for a repository in the folders above.
        (place / ".git").mkdir()
        kind = "sha256" if len(like) == 64 else "sha1"
        if git(place, "init", "--quiet", "--template=", f"--object-format={kind}", ".") is None:
            raise GitError("git can't create a temporary repository.", where=folder, next_step="git --version")
        put_files(place, files, blobs, inside=inside)
        yield place


def put_files(place: Path, files: Mapping[str, TreeFile], blobs: Blobs, *, inside: str = "") -> None:
    """Write files, but no links, into a folder."""
    regular = {name: file for name, file in files.items() if file.mode != LINK}
    contents = blobs.contents([(f"{inside}{name}", file.blob) for name, file in regular.items()])
    for (name, file), content in zip(regular.items(), contents, strict=True):
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        if file.mode == PROGRAM:
            path.chmod(0o755)
