"""Texts by their keys, of which there may be millions: the newest in memory, the others in a temporary file."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Self

from donewhen.foundation.errors import DonewhenError

_AT_HAND = 20_000
_TABLE = "create table texts (mark blob primary key, text blob not null) without rowid"


class DiskDictError(DonewhenError):
    """There is no room for a temporary file."""

    code = "temporary_file"


class DiskDict:
    """A dictionary that needs no more memory for a million entries than for ``at_hand`` of them. Closed, it is empty.

    Nothing is taken out again, and keys are not kept as such: only half of a hash of each.
    """

    def __init__(self, at_hand: int = _AT_HAND) -> None:
        self._most = at_hand
        self._at_hand: dict[bytes, str] = {}
        self._file: sqlite3.Connection | None = None

    def get(self, key: str) -> str | None:
        """What is kept under a key."""
        return self._get(_mark(key))

    def first(self, key: str, text: str) -> str | None:
        """What was kept under a key before; where there was nothing, the text is, from now on."""
        mark = _mark(key)
        before = self._get(mark)
        if before is None:
            self._put(mark, text)
        return before

    def __setitem__(self, key: str, text: str) -> None:
        self._put(_mark(key), text)

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
            raise _refused(error) from error
        return None if row is None else bytes(row[0]).decode("utf-8", "surrogatepass")

    def _put(self, mark: bytes, text: str) -> None:
        self._at_hand[mark] = text
        if len(self._at_hand) <= self._most:
            return
        try:
            if self._file is None:
                self._file = _opened()
            # In the order of the file, in which they touch fewer of its pages than one by one.
            rows = ((mark, _bytes(text)) for mark, text in sorted(self._at_hand.items()))
            self._file.executemany("insert or replace into texts values (?, ?)", rows)
            self._file.commit()
        except sqlite3.Error as error:
            raise _refused(error) from error
        self._at_hand = {}


def _opened() -> sqlite3.Connection:
    # Without a name, it is a file that nobody else sees, and that goes with the process, however that ends. Read and
    # written by one thread at a time, though not always by the same.
    connection = sqlite3.connect("", check_same_thread=False)
    connection.execute("pragma journal_mode = off")
    connection.execute("pragma cache_size = -8000")
    connection.execute(_TABLE)
    return connection


def _mark(key: str) -> bytes:
    return hashlib.blake2b(_bytes(key), digest_size=16).digest()


def _bytes(text: str) -> bytes:
    # The name of a file may hold what is no character.
    return text.encode("utf-8", "surrogatepass")


def _refused(error: sqlite3.Error) -> DiskDictError:
    return DiskDictError(f"A temporary file can't be used: {error}.", next_step="Make room, or set TMPDIR.")
