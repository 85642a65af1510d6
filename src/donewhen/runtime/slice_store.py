"""How a session keeps the values of one slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from donewhen.runtime.dispatcher import DispatchError

_writes = count(1)


class SliceStore:
    """One slice's values. ``all`` is cached, so that reading twice copies once.

    ``version`` counts the writes, ``written`` orders the last writes of several slices, and ``failures`` holds the last
    failure of a reducer for each event type.
    """

    __slots__ = ("_cached", "_values", "failures", "version", "written")

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._cached: tuple[Any, ...] | None = ()
        self.version = 0
        self.written = 0
        self.failures: dict[type, DispatchError] = {}

    def latest(self) -> Any:
        return self._values[-1] if self._values else None

    def all(self) -> tuple[Any, ...]:
        if self._cached is None:
            self._cached = tuple(self._values)
        return self._cached

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.all())

    def append(self, value: Any) -> None:
        self._values.append(value)
        self._cached = None
        self.version += 1
        self.written = next(_writes)

    def replace(self, values: tuple[Any, ...]) -> None:
        self._values = list(values)
        self._cached = values
        self.version += 1
        self.written = next(_writes)


class StoreView:
    """A read-only view of a slice, for reducers."""

    __slots__ = ("__store",)

    def __init__(self, store: SliceStore) -> None:
        self.__store = store

    def latest(self) -> Any:
        return self.__store.latest()

    def all(self) -> tuple[Any, ...]:
        return self.__store.all()

    def __len__(self) -> int:
        return len(self.__store)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__store)


def checked_value(slice_type: type, value: object) -> object:
    if not isinstance(value, slice_type):
        raise TypeError(f"the slice holds {slice_type.__name__}, not {type(value).__name__}")
    return value


def joined_store(stores: Iterable[SliceStore]) -> SliceStore:
    """The values and failures of several slices; the slice with the newest value comes last."""
    joined = SliceStore()
    ordered = sorted(stores, key=lambda store: store.written)
    joined.replace(tuple(value for store in ordered for value in store.all()))
    for store in ordered:
        joined.failures |= store.failures
    return joined
