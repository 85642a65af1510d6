"""Reducers: pure functions that return how an event changes a slice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E")


class SliceView(Protocol[T_co]):
    """A read-only view of a slice, for reducers."""

    def latest(self) -> T_co | None:
        """Return the newest value, or None."""
        ...

    def all(self) -> tuple[T_co, ...]:
        """Return every value, oldest first."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


class Append(NamedTuple, Generic[T]):
    """Append one value, in constant time."""

    value: T


class Replace(NamedTuple, Generic[T]):
    """Replace all values of the slice."""

    values: tuple[T, ...]


class Clear(NamedTuple):
    """Empty the slice."""


SliceOp: TypeAlias = Append[T] | Replace[T] | Clear
Reducer: TypeAlias = Callable[[SliceView[T], E], SliceOp[T] | None]
"""``(view, event) -> operation``; None leaves the slice as it is."""


def append_all(view: SliceView[T], event: T) -> Append[T]:
    """Keep every event."""
    return Append(event)


def replace_latest(view: SliceView[T], event: T) -> Replace[T]:
    """Keep the newest event only."""
    return Replace((event,))


def upsert_by(key: Callable[[T], Hashable]) -> Callable[[SliceView[T], T], Replace[T]]:
    """Keep one value for each key: a new value replaces the old one in its position."""

    def upsert(view: SliceView[T], event: T) -> Replace[T]:
        wanted = key(event)
        values = [event if key(value) == wanted else value for value in view]
        if not any(value is event for value in values):
            values.append(event)
        return Replace(tuple(values))

    return upsert


AnyReducer: TypeAlias = Callable[[SliceView[Any], Any], SliceOp[Any] | None]
