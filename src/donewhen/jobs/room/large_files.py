"""Files that Git LFS keeps outside of the repository: what is committed names their content by its hash."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from donewhen.foundation.files import read_whole
from donewhen.foundation.git import git
from donewhen.foundation.git_objects import object_name
from donewhen.jobs.room.blobs import MissingContentError

_MAX_POINTER = 1024
# One with extensions names a content that programs have changed before it was hashed.
_POINTER = re.compile(rb"version https://[^\n]+/spec/v1\noid sha256:([0-9a-f]{64})\nsize (\d{1,18})\n", re.ASCII)
_CHUNK = 1 << 20
# Hashes of contents by git's name for them. A content never gets another hash.
_HASHES: dict[str, str] = {}


@dataclass(frozen=True)
class Pointer:
    """What is committed of a large file."""

    hash: str
    size: int


@dataclass(frozen=True)
class LargeFile:
    """A file with the content that a pointer names."""

    path: Path
    blob: str
    """The name that git would give the content."""


def read_pointer(content: bytes) -> Pointer | None:
    """The pointer that a committed content is; None if it is the content itself."""
    found = _POINTER.fullmatch(content) if len(content) <= _MAX_POINTER else None
    return None if found is None else Pointer(found[1].decode(), int(found[2]))


def has_content(path: Path, blob: str, pointer: Pointer) -> bool:
    """Whether a file, whose content git would give this name, has the content that a pointer names."""
    try:
        if path.lstat().st_size != pointer.size:
            return False
        if blob not in _HASHES:
            name, found = _names(path, blob)
            # If it was written to since it was read, this is the hash of something else.
            if name != blob:
                return False
            _HASHES[blob] = found
    except OSError:
        return False
    return _HASHES[blob] == pointer.hash


def stored_file(top: Path, pointer: Pointer, like: str) -> LargeFile | None:
    """The file with this content among those that were downloaded for a repository; None if it is not there."""
    folder = git(top, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if folder is None:
        return None
    hashed = pointer.hash
    path = Path(os.fsdecode(folder.rstrip(b"\n"))) / "lfs" / "objects" / hashed[:2] / hashed[2:4] / hashed
    try:
        if path.lstat().st_size != pointer.size:
            return None
        blob, found = _names(path, like)
    except OSError:
        return None
    return LargeFile(path, blob) if found == hashed else None


class LargeFileBlobs:
    """Contents in files with other names. They are compared with their names when they are read."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths

    def contents(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        for name, blob in files:
            try:
                content = read_whole(self._paths[blob])
            except (OSError, KeyError) as error:
                raise MissingContentError(f"The agreed content of {name} can't be read.") from error
            if object_name(content, "blob", blob) != blob:
                raise MissingContentError(f"The agreed content of {name} changed while it was being read.")
            yield content


def _names(path: Path, like: str) -> tuple[str, str]:
    """The name that git would give a content, and its hash in Git LFS."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        blob = hashlib.sha256() if len(like) == 64 else hashlib.sha1(usedforsecurity=False)
        content = hashlib.sha256()
        blob.update(b"blob %d\0" % os.fstat(descriptor).st_size)
        while chunk := file.read(_CHUNK):
            blob.update(chunk)
            content.update(chunk)
    return blob.hexdigest(), content.hexdigest()
