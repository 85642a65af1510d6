"""Remembers what was computed from a long chain, because one command asks for the same several times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from donewhen.jobs.ledger.entries import Entry

_MAX_KEPT = 4
_MIN_ENTRIES = 1000

_T = TypeVar("_T")


class EntryMemo(Generic[_T]):
    """The newest few results. The value is shared, so it must not be changed."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[Sequence[Entry], object, _T], ...] = ()

    def get(self, entries: Sequence[Entry], key: object, compute: Callable[[], _T]) -> _T:
        """The value of ``compute``, from earlier if it was computed for the same entries and the same key."""
        # By identity: a verified chain that has not changed is the same tuple, and comparing entries would be slow.
        for known, known_key, value in self._kept:
            if known is entries and known_key == key:
                return value
        value = compute()
        if isinstance(entries, tuple) and len(entries) >= _MIN_ENTRIES:
            self._kept = ((entries, key, value), *self._kept[: _MAX_KEPT - 1])
        return value
