"""A memory of files that were read before, so that a second look costs what has changed.

It is keyed by content: what a file says is remembered under the hash of the file, and the file's size, times and inode
only choose which files are read again. It is for looking; whoever decides reads the files. Deleting it loses nothing.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from donewhen.foundation.files import read_regular

_LAYOUT = 2
_KEPT_ANYWAY = 1000
_TABLES = """
create table if not exists seen (path text primary key, stat text not null, sha text not null) without rowid;
create table if not exists said (kind text not null, sha text not null, data text not null, primary key (kind, sha));
"""


class FileIndex:
    """The memory in one SQLite file. Without one, or where it can't be used, everything is simply read again."""

    def __init__(self, path: Path | None, *, wait: float = 2.0) -> None:
        self._path = path
        self._wait = wait
        self._connection: sqlite3.Connection | None = None
        self._seen: dict[str, tuple[str, str]] = {}
        self._new_seen: dict[str, tuple[str, str]] = {}
        self._new_said: dict[tuple[str, str], str] = {}
        self._looked: set[str] = set()
        self._known: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Self:
        if self._path is None:
            return self
        try:
            self._connection = _opened(self._path, self._wait)
            rows = self._connection.execute("select path, stat, sha from seen")
            self._seen = {path: (stat, sha) for path, stat, sha in rows}
            # All at once: a question for each file would cost more than the answers.
            self._known = {(kind, sha): data for kind, sha, data in self._connection.execute("select * from said")}
        except (sqlite3.Error, OSError):
            if self._connection is not None:
                self._connection.close()
            self._connection = _begun_anew(self._path, self._wait)
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
                [(kind_, sha, data) for (kind_, sha), data in self._new_said.items()],
            )
            if self._new_said:
                self._prune(self._connection)
        self._connection.close()

    def remembered(
        self, kind: str, path: Path, read: Callable[[bytes], Any], fits: Callable[[Any], bool] = lambda _: True
    ) -> Any:
        """What ``read`` makes of a file's content: remembered where this content was read before.

        ``read`` returns a JSON value that depends on the content alone; ``kind`` names what it is, and ``fits`` tells
        whether what is remembered has its shape. Raises OSError where the file can't be read.
        """
        name, kind = _storable(str(path)), _storable(kind)
        self._looked.add(name)
        known = self._seen.get(name)
        now = _stat(path)
        if known is not None and known[0] == now:
            data = self._said(kind, known[1])
            if data is not None and fits(data):
                return data
        content = read_regular(path)
        sha = hashlib.sha256(content).hexdigest()
        if known != (now, sha):
            self._new_seen[name] = (now, sha)
        data = self._said(kind, sha)
        if data is None or not fits(data):
            data = read(content)
            self._new_said[(kind, sha)] = json.dumps(data, ensure_ascii=True)
        return data

    def _said(self, kind: str, sha: str) -> Any:
        data = self._new_said.get((kind, sha)) or self._known.get((kind, sha))
        try:
            return None if data is None else msgspec.json.decode(data)
        except (msgspec.DecodeError, TypeError):
            return None

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Files that are gone, and contents that no file has any more, are forgotten once they are the larger part."""
        gone = [(one,) for one in self._seen if one not in self._looked]
        if len(gone) > len(self._looked) + _KEPT_ANYWAY:
            connection.executemany("delete from seen where path = ?", gone)
        seen, said = (connection.execute(f"select count(*) from {one}").fetchone()[0] for one in ("seen", "said"))  # noqa: S608
        if said > 2 * seen + _KEPT_ANYWAY:
            connection.execute("delete from said where sha not in (select sha from seen)")


def _opened(path: Path, wait: float) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=wait)
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = off")
        known = "select count(*) from sqlite_master where type = 'table' and name in ('seen', 'said')"
        layout = connection.execute("pragma user_version").fetchone()[0]
        if layout != _LAYOUT or connection.execute(known).fetchone()[0] != 2:
            connection.executescript(f"drop table if exists seen; drop table if exists said; {_TABLES}")
            connection.execute(f"pragma user_version = {_LAYOUT}")
    except BaseException:
        connection.close()
        raise
    return connection


def _begun_anew(path: Path, wait: float) -> sqlite3.Connection | None:
    """A broken file is removed and begun anew; one that is merely busy, or not ours to write, is left alone."""
    try:
        if not _is_corrupt(path):
            return None
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        return _opened(path, wait)
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


def _stat(path: Path) -> str:
    found = path.stat(follow_symlinks=False)
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def _storable(text: str) -> str:
    """A name as SQLite can keep it: file names need not be text."""
    return text.encode("utf-8", "backslashreplace").decode()
