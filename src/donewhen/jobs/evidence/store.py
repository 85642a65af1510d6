"""What the gate itself saw: records of runs, named by their content, and the key that says how long they hold.

A key is the hash of the command, its executable, its environment and the contents of its inputs. While it stays the
same, the evidence is fresh; clocks and paths have no part in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.foundation.canonical import canonical_json, digest, digest_of
from donewhen.foundation.files import write_atomically

RECORD = "donewhen/evidence/v1"
_COMMITTED_UP_TO = 256 * 1024


class EvidenceKey(NamedTuple):
    """The four things that a run depends on, each by its hash."""

    command: str
    executable: str
    environment: str
    inputs: str

    @property
    def key(self) -> str:
        return digest_of(self._asdict())

    def differing(self, other: Mapping[str, Any]) -> tuple[str, ...]:
        """Which of them are not as in ``other``."""
        return tuple(name for name, value in self._asdict().items() if other.get(name) != value)


class EvidenceStore:
    """Contents under their own hash. What is large stays on this machine; the rest is meant to be committed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: bytes) -> str:
        """Keep a content, once, and return its name."""
        name = digest(content)
        path = self._path(name, large=len(content) > _COMMITTED_UP_TO)
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent.name == "large" and not (path.parent / ".gitignore").exists():
                write_atomically(path.parent / ".gitignore", b"*\n")
            write_atomically(path, content)
        return name

    def put_json(self, value: object) -> str:
        """Keep a value in its canonical form."""
        return self.put(canonical_json(value))

    def get(self, name: str) -> bytes | None:
        """A content by its name; None where it is missing, or is not what its name says."""
        content = self.found(name)
        return content if content is not None and digest(content) == name else None

    def get_json(self, name: str) -> Any:
        """A value by its name; None where it can't be had."""
        content = self.get(name)
        if content is None:
            return None
        try:
            return json.loads(content)
        except ValueError:
            return None

    def found(self, name: str) -> bytes | None:
        """What stands under a name, whatever it is."""
        if not _is_name(name):
            return None
        for large in (False, True):
            try:
                return self._path(name, large=large).read_bytes()
            except OSError:
                continue
        return None

    def _path(self, name: str, *, large: bool) -> Path:
        hexadecimal = name.partition(":")[2]
        return self._folder / ("large" if large else hexadecimal[:2]) / hexadecimal


def _is_name(name: str) -> bool:
    kind, _, hexadecimal = name.partition(":")
    return kind == "sha256" and len(hexadecimal) == 64 and set(hexadecimal) <= set("0123456789abcdef")
