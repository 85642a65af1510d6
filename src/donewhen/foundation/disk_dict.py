"""A dictionary for millions of texts: the newest in memory, the others in a temporary file."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Self

from donewhen.foundation.errors import DonewhenError

_IN_MEMORY = 20_000
_TABLE = "create table texts (mark blob primary key, text blob not null) without rowid"


class DiskDictError(DonewhenError):
    """The temporary file can't be used."""

    code = "temporary_file"


class DiskDict:
    """A dictionary that keeps at most ``at_hand`` entries in memory. Closing it empties it.

    Entries can't be removed. Keys are stored only as 128-bit hashes.
    """

    def __init__(self, at_hand: int = _IN_MEMORY) -> None:
        self._limit = at_hand
        self._at_hand: dict[bytes, str] = {}
        self._file: sqlite3.Connection | None = None

    def get(self, key: str) -> str | None:
        """The text of a key, or None."""
        return self._get(_key_hash(key))

    def first(self, key: str, text: str) -> str | None:
        """Return the text of a key. If there is none, store ``text`` and return None."""
        mark = _key_hash(key)
        before = self._get(mark)
        if before is None:
            self._put(mark, text)
        return before

    def __setitem__(self, key: str, text: str) -> None:
        self._put(_key_hash(key), text)

    def close(self) -> None:
        self._at_hand = {}
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _get(self, mark: bytes) -> str | None:
        known = self._at_hand.get(mark)
        if known is not None or self._file is None:
            return known
        try:
            row = self._file.execute("select text from texts where mark = ?", (mark,)).fetchone()
        except sqlite3.Error as error:
            raise _disk_error(error) from error
        return None if row is None else bytes(row[0]).decode("utf-8", "surrogatepass")

    def _put(self, mark: bytes, text: str) -> None:
        self._at_hand[mark] = text
        if len(self._at_hand) <= self._limit:
            return
        try:
            if self._file is None:
                self._file = _open_temporary()
            # Sorted like the table, so that fewer pages are touched.
            rows = ((mark, _bytes(text)) for mark, text in sorted(self._at_hand.items()))
            self._file.executemany("insert or replace into texts values (?, ?)", rows)
            self._file.commit()
        except sqlite3.Error as error:
            raise _disk_error(error) from error
        self._at_hand = {}


def _open_temporary() -> sqlite3.Connection:
    # An empty name means a private temporary file that disappears with the process. It is used by one thread at a time,
    # but not always by the same thread.
    connection = sqlite3.connect("", check_same_thread=False)
    connection.execute("pragma journal_mode = off")
    connection.execute("pragma cache_size = -8000")
    connection.execute(_TABLE)
    return connection


def _key_hash(key: str) -> bytes:
    return hashlib.blake2b(_bytes(key), digest_size=16).digest()


def _bytes(text: str) -> bytes:
    # A file name may contain lone surrogates.
    return text.encode("utf-8", "surrogatepass")


def _disk_error(error: sqlite3.Error) -> DiskDictError:
    return DiskDictError(f"A temporary file can't be used: {error}.", next_step="Free disk space, or set TMPDIR.")
