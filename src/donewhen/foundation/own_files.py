"""The hash of donewhen's own files, so that it can be compared which gate has decided."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from donewhen.foundation.canonical import digest, digest_of

_COMPILED = "__pycache__"


@cache
def own_files_hash() -> str:
    """A hash over the names and contents of the package's files, without compiled ones. It is the same wherever a
    release is installed."""
    package = Path(__file__).parent.parent
    if not package.is_dir():
        # In an archive that is run as it is.
        archive = next(parent for parent in package.parents if parent.is_file())
        return digest(archive.read_bytes())
    return digest_of(dict(_hashes(str(package), "")))


def _hashes(folder: str, inside: str) -> Iterator[tuple[str, str]]:
    for entry in os.scandir(folder):
        if entry.is_dir():
            if entry.name != _COMPILED:
                yield from _hashes(entry.path, f"{inside}{entry.name}/")
        elif not entry.name.endswith(".pyc"):
            with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123 - 700 files
                yield f"{inside}{entry.name}", hashlib.sha256(file.read()).hexdigest()
