"""A cache of parsed files, so that only changed files are read again.

It is keyed by content: parsed data is stored under the hash of the file; size, times and inode only select which files
are read again. It serves overviews only: gates read the files themselves. Deleting it loses nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from donewhen.foundation.files import read_regular
from donewhen.foundation.size_limits import OTHER, SizeLimit

_LAYOUT = 2
_MIN_KEPT = 1000
_TABLES = """
create table if not exists seen (path text primary key, stat text not null, sha text not null) without rowid;
create table if not exists said (kind text not null, sha text not null, data text not null, primary key (kind, sha));
"""


class FileIndex:
    """The cache in one SQLite file. Without a file, or if it can't be used, every file is read again."""

    def __init__(self, path: Path | None, *, wait: float = 2.0) -> None:
        self._path = path
        self._wait = wait
        self._connection: sqlite3.Connection | None = None
        self._seen: dict[str, tuple[str, str]] = {}
        self._new_seen: dict[str, tuple[str, str]] = {}
        self._new_data: dict[tuple[str, str], str] = {}
        self._visited: set[str] = set()
        self._data: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Self:
        if self._path is None:
            return self
        try:
            self._connection = _open_database(self._path, self._wait)
            rows = self._connection.execute("select path, stat, sha from seen")
            self._seen = {path: (stat, sha) for path, stat, sha in rows}
            # One query for all rows: a query per file would be slower.
            self._data = {(kind, sha): data for kind, sha, data in self._connection.execute("select * from said")}
        except (sqlite3.Error, OSError):
            if self._connection is not None:
                self._connection.close()
            self._connection = _recreate_if_corrupt(self._path, self._wait)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is None:
            return
        with suppress(sqlite3.Error), self._connection:
            self._connection.executemany(
                "insert or replace into seen values (?, ?, ?)",
                [(path, stat, sha) for path, (stat, sha) in self._new_seen.items()],
            )
            self._connection.executemany(
                "insert or replace into said values (?, ?, ?)",
                [(kind_, sha, data) for (kind_, sha), data in self._new_data.items()],
            )
            if self._new_data:
                self._prune(self._connection)
        self._connection.close()

    def get_or_read(
        self,
        kind: str,
        path: Path | str,
        read: Callable[[bytes], Any],
        fits: Callable[[Any], bool] = lambda _: True,
        decode: Callable[[str], Any] = msgspec.json.decode,
        *,
        limit: SizeLimit = OTHER,
    ) -> Any:
        """Return ``read(content)`` of a file, from the cache if this content was read before.

        ``read`` returns a JSON value or a struct that depends on the content alone; ``kind`` names that value, ``fits``
        returns whether a cached value has the expected shape, and ``decode`` decodes it. A cached value that can't be
        decoded is read again. Raises OSError if the file can't be read or exceeds ``limit``.
        """
        path = str(path)
        name, kind = _storable(path), _storable(kind)
        self._visited.add(name)
        known = self._seen.get(name)
        now = _stat(path)
        if known is not None and known[0] == now:
            data = self._cached(kind, known[1], decode)
            if data is not None and fits(data):
                return data
        content = read_regular(Path(path), limit)
        sha = hashlib.sha256(content).hexdigest()
        if known != (now, sha):
            self._new_seen[name] = (now, sha)
        data = self._cached(kind, sha, decode)
        if data is None or not fits(data):
            data = read(content)
            self._new_data[(kind, sha)] = json.dumps(data, ensure_ascii=True, default=msgspec.to_builtins)
        return data

    def _cached(self, kind: str, sha: str, decode: Callable[[str], Any]) -> Any:
        data = self._new_data.get((kind, sha)) or self._data.get((kind, sha))
        try:
            return None if data is None else decode(data)
        except (msgspec.DecodeError, TypeError):
            return None

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Delete the rows of missing files and of unused contents once they outnumber the others."""
        gone = [(path,) for path in self._seen if path not in self._visited]
        if len(gone) > len(self._visited) + _MIN_KEPT:
            connection.executemany("delete from seen where path = ?", gone)
        file_rows = connection.execute("select count(*) from seen").fetchone()[0]
        data_rows = connection.execute("select count(*) from said").fetchone()[0]
        if data_rows > 2 * file_rows + _MIN_KEPT:
            connection.execute("delete from said where sha not in (select sha from seen)")


def _open_database(path: Path, wait: float) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=wait)
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = off")
        count_tables = "select count(*) from sqlite_master where type = 'table' and name in ('seen', 'said')"
        layout = connection.execute("pragma user_version").fetchone()[0]
        if layout != _LAYOUT or connection.execute(count_tables).fetchone()[0] != 2:
            connection.executescript(f"drop table if exists seen; drop table if exists said; {_TABLES}")
            connection.execute(f"pragma user_version = {_LAYOUT}")
    except BaseException:
        connection.close()
        raise
    return connection


def _recreate_if_corrupt(path: Path, wait: float) -> sqlite3.Connection | None:
    """Replace a corrupt file by an empty one; a file that is busy or not writable is left alone."""
    try:
        if not _is_corrupt(path):
            return None
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        return _open_database(path, wait)
    except (sqlite3.Error, OSError):
        return None


def _is_corrupt(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0.1)
        try:
            return bool(connection.execute("pragma quick_check(1)").fetchone()[0] != "ok")
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        return True


def _stat(path: str) -> str:
    status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - thousands of paths take a while to build
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _storable(text: str) -> str:
    """A name that SQLite can store: file names need not be valid text."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
