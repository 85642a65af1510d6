"""The evidence store: content-addressed records of runs, and the key that says whether a run is still fresh.

A key is the hash of the command, its executable, its environment and the contents of its inputs. While it stays the
same, the evidence is fresh. Times and paths are not part of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.foundation.canonical import canonical_json, digest, digest_of
from donewhen.foundation.files import TooLargeError, read_limited, write_atomically
from donewhen.foundation.size_limits import EVIDENCE
from donewhen.jobs.plan.workspace import Workspace

_MAX_COMMITTED_BYTES = 256 * 1024


class EvidenceKey(NamedTuple):
    """Hashes of the things that a run depends on."""

    command: str
    executable: str
    environment: str
    inputs: str
    room: str = ""
    """Empty for a run in the work tree."""

    @property
    def key(self) -> str:
        return digest_of(self.values())

    def values(self) -> dict[str, str]:
        """The parts that there are, by name."""
        return {name: value for name, value in self._asdict().items() if value or name != "room"}

    def differing(self, other: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of the parts that differ from ``other``."""
        return tuple(name for name, value in self._asdict().items() if other.get(name, "") != value)


class EvidenceStore:
    """Content-addressed files. Large ones are ignored by git; the others are meant to be committed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: bytes) -> str:
        """Write content unless it is already stored, and return its name. Raise TooLargeError if it is too large."""
        name = digest(content)
        if len(content) > EVIDENCE.bytes:
            raise TooLargeError(self._path(name, large=True), len(content), EVIDENCE)
        path = self._path(name, large=len(content) > _MAX_COMMITTED_BYTES)
        if not path.is_file() or path.stat().st_size != len(content) or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent.name == "large" and not (path.parent / ".gitignore").exists():
                write_atomically(path.parent / ".gitignore", b"*\n")
            write_atomically(path, content)
        return name

    def put_json(self, value: object) -> str:
        """Write a value as canonical JSON and return its name."""
        return self.put(canonical_json(value))

    def get(self, name: str) -> bytes | None:
        """Return content by its name; None if it is missing or does not match its hash."""
        content = self.get_unverified(name)
        return content if content is not None and digest(content) == name else None

    def get_json(self, name: str) -> Any:
        """Return a JSON value by its name; None if it is missing, changed or not JSON."""
        content = self.get(name)
        if content is None:
            return None
        try:
            return json.loads(content)
        except ValueError:
            return None

    def get_unverified(self, name: str) -> bytes | None:
        """Return what is stored under a name without comparing its hash; None if it is missing."""
        if not _is_name(name):
            return None
        for large in (False, True):
            try:
                return read_limited(self._path(name, large=large), EVIDENCE)
            except OSError:
                continue
        return None

    def _path(self, name: str, *, large: bool) -> Path:
        hexadecimal = name.partition(":")[2]
        return self._folder / ("large" if large else hexadecimal[:2]) / hexadecimal


def evidence_store(workspace: Workspace) -> EvidenceStore:
    """Return the evidence store of a workspace."""
    return EvidenceStore(workspace.folder / "evidence")


def _is_name(name: str) -> bool:
    kind, _, hexadecimal = name.partition(":")
    return kind == "sha256" and len(hexadecimal) == 64 and set(hexadecimal) <= set("0123456789abcdef")
