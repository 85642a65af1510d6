"""In which order changes are tried, so that any beginning of it is a fair sample: pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")


def spread(items: Sequence[T], place: Callable[[T], Hashable], seed: str) -> tuple[T, ...]:
    """The items so that each place comes once before any comes again. The same seed gives the same order."""
    groups: dict[Hashable, list[T]] = {}
    for item in sorted(items, key=lambda item: _lot(seed, item)):
        groups.setdefault(place(item), []).append(item)
    missing = object()
    rounds = zip_longest(*groups.values(), fillvalue=missing)
    return tuple(item for found in rounds for item in found if item is not missing)  # type: ignore[misc]


def _lot(seed: str, item: object) -> str:
    return hashlib.sha256(f"{seed} {item!r}".encode("utf-8", "replace")).hexdigest()
