"""A filesystem in memory, for tests and for agents that need no disk."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from donewhen.filesystem.protocol import decode, encode, not_directory, not_found, not_regular, split_path

if TYPE_CHECKING:
    from collections.abc import Mapping

Parts = tuple[str, ...]


class InMemoryFilesystem:
    """Files as a mapping from path to bytes. A directory is there when something is in it."""

    def __init__(self, files: Mapping[str, str | bytes] | None = None) -> None:
        self._lock = threading.RLock()
        self._files: dict[Parts, bytes] = {}
        for path, content in (files or {}).items():
            if isinstance(content, str):
                self.write_text(path, content)
            else:
                self.write_bytes(path, content)

    def exists(self, path: str) -> bool:
        with self._lock:
            return self.is_file(path) or self.is_dir(path)

    def is_file(self, path: str) -> bool:
        with self._lock:
            return split_path(path) in self._files

    def is_dir(self, path: str) -> bool:
        parts = split_path(path)
        with self._lock:
            return not parts or any(_below(file, parts) for file in self._files)

    def read_bytes(self, path: str) -> bytes:
        with self._lock:
            return self._files[self._regular(path)]

    def read_text(self, path: str) -> str:
        return decode(path, self.read_bytes(path))

    def write_bytes(self, path: str, data: bytes) -> None:
        parts = split_path(path)
        with self._lock:
            if self.is_dir(path):
                raise not_regular(path)
            for length in range(1, len(parts)):
                if parts[:length] in self._files:
                    raise not_directory("/".join(parts[:length]))
            self._files[parts] = bytes(data)

    def write_text(self, path: str, text: str) -> None:
        self.write_bytes(path, encode(path, text))

    def list_dir(self, path: str = ".") -> tuple[str, ...]:
        parts = split_path(path)
        with self._lock:
            names = {file[len(parts)] for file in self._files if _below(file, parts)}
            if parts and not names:
                raise not_directory(path) if self.is_file(path) else not_found(path)
        return tuple(sorted(names))

    def delete(self, path: str) -> None:
        with self._lock:
            del self._files[self._regular(path)]

    def _regular(self, path: str) -> Parts:
        parts = split_path(path)
        if parts not in self._files:
            raise not_regular(path) if self.is_dir(path) else not_found(path)
        return parts


def _below(file: Parts, directory: Parts) -> bool:
    return len(file) > len(directory) and file[: len(directory)] == directory
