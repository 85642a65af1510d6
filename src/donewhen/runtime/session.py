"""A session: typed slices of state that events change atomically, also with several threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar, cast

from donewhen.foundation.errors import DonewhenError
from donewhen.runtime.dispatcher import (
    Dispatcher,
    DispatchError,
    DispatchResult,
    InProcessDispatcher,
    describe,
)
from donewhen.runtime.reducers import AnyReducer, Append, Clear, Reducer, Replace, SliceOp

T = TypeVar("T")
E = TypeVar("E")


class SessionError(DonewhenError):
    """A session was used in a way that would lose or mix up state."""

    code = "session"


class _Store:
    """One slice's values. ``all`` is cached, so that reading twice copies once."""

    __slots__ = ("_cached", "_values")

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._cached: tuple[Any, ...] | None = ()

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

    def replace(self, values: tuple[Any, ...]) -> None:
        self._values = list(values)
        self._cached = values


class _View:
    """A read-only view of a slice, for reducers."""

    __slots__ = ("__store",)

    def __init__(self, store: _Store) -> None:
        self.__store = store

    def latest(self) -> Any:
        return self.__store.latest()

    def all(self) -> tuple[Any, ...]:
        return self.__store.all()

    def __len__(self) -> int:
        return len(self.__store)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__store)


class Snapshot(NamedTuple):
    """The values of every slice at one moment. Values are shared, not copied: keep them immutable."""

    slices: Mapping[type, tuple[Any, ...]]


class Session:
    """Typed state of one run.

    ``session[Plan]`` is the slice of all :class:`Plan` values. Reading, reducing and applying an event is one step
    under one lock, so no update is lost if several threads dispatch. Reducers must be pure: dispatching or writing
    inside a reducer is an error, reported in the :class:`DispatchResult`.

    Pass a dispatcher as ``dispatcher`` or as ``bus``; by default the session creates its own.
    """

    def __init__(self, *, bus: Dispatcher | None = None, dispatcher: Dispatcher | None = None) -> None:
        if bus is not None and dispatcher is not None and bus is not dispatcher:
            raise SessionError("bus and dispatcher are aliases, but two different dispatchers were given.")
        self.session_id = os.urandom(16).hex()
        given = bus if bus is not None else dispatcher
        self.dispatcher: Dispatcher = InProcessDispatcher() if given is None else given
        self._lock = threading.RLock()
        self._stores: dict[type, _Store] = {}
        self._reducers: dict[type, dict[type, AnyReducer]] = {}
        self.dispatcher.attach(self)

    def __getitem__(self, slice_type: type[T]) -> Slice[T]:
        if not isinstance(slice_type, type):
            raise TypeError(f"a session is indexed by a class, as in session[Plan], not by {slice_type!r}")
        return Slice(self, slice_type)

    def __contains__(self, slice_type: object) -> bool:
        """Whether the slice was registered or ever written to."""
        with self._lock:
            return slice_type in self._stores

    def dispatch(self, event: object) -> DispatchResult:
        """Apply ``event`` to this session's slices, then announce it to the dispatcher's handlers."""
        return self.reduce(event) + self.dispatcher.announce(event)

    def reduce(self, event: object) -> DispatchResult:
        """Apply ``event`` to this session's slices. If a reducer fails, its slice is not changed."""
        errors: list[DispatchError] = []
        handled = 0
        with self._writing():
            # Iterate over a copy: other threads register reducers only under this lock, but this thread may do so.
            for slice_type, reducer in list(self._reducers.get(type(event), {}).items()):
                try:
                    self._apply(slice_type, self._reduced(slice_type, reducer, event))
                except Exception as error:  # noqa: BLE001 - reported to the dispatching caller
                    errors.append(DispatchError(describe(reducer), error))
                else:
                    handled += 1
        return DispatchResult(handled, tuple(errors))

    def snapshot(self) -> Snapshot:
        """Return the values of all slices at this moment."""
        with self._lock:
            return Snapshot(MappingProxyType({kind: store.all() for kind, store in self._stores.items()}))

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the slices of ``snapshot`` and empty all others. Reducers stay registered."""
        with self._writing():
            for kind in self._stores.keys() | snapshot.slices.keys():
                self._store(kind).replace(snapshot.slices.get(kind, ()))

    def _writing(self) -> _Writing:
        return _Writing(self)

    def _store(self, slice_type: type) -> _Store:
        store = self._stores.get(slice_type)
        if store is None:
            store = self._stores.setdefault(slice_type, _Store())
        return store

    def _reduced(self, slice_type: type, reducer: AnyReducer, event: object) -> SliceOp[Any] | None:
        with _pure:
            return reducer(_View(self._store(slice_type)), event)

    def _apply(self, slice_type: type, operation: SliceOp[Any] | None) -> None:
        store = self._store(slice_type)
        match operation:
            case None:
                pass
            case Append(value):
                store.append(_checked(slice_type, value))
            case Replace(values):
                store.replace(tuple(_checked(slice_type, value) for value in values))
            case Clear():
                store.replace(())
            case _:
                raise TypeError(f"a reducer must return Append, Replace, Clear or None, not {type(operation).__name__}")


class _Pure(threading.local):
    """Marks that a reducer or predicate is running under a session's lock, and so must not write to a session."""

    running = False

    def __enter__(self) -> None:
        self.running = True

    def __exit__(self, *_: object) -> None:
        self.running = False


_pure = _Pure()


class _Writing:
    """The session's lock for writing. It is refused inside a running reducer of any session."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        if _pure.running:
            raise SessionError(
                "A reducer tried to change the session while it was running.",
                next_step="Return an operation instead, and dispatch further events after the dispatch.",
            )
        self._session._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._session._lock.release()


class Slice(Generic[T]):
    """All values of one type in a session. Get it as ``session[T]``."""

    __slots__ = ("_session", "_type")

    def __init__(self, session: Session, slice_type: type[T]) -> None:
        self._session = session
        self._type = slice_type

    def latest(self) -> T | None:
        """Return the newest value, or None."""
        with self._session._lock:
            store = self._session._stores.get(self._type)
            return None if store is None else cast("T | None", store.latest())

    def all(self) -> tuple[T, ...]:
        """Return every value, oldest first."""
        with self._session._lock:
            store = self._session._stores.get(self._type)
            return () if store is None else store.all()

    def where(self, predicate: Callable[[T], bool]) -> tuple[T, ...]:
        """Return the values for which ``predicate`` is true, oldest first."""
        return tuple(value for value in self.all() if predicate(value))

    def append(self, value: T) -> None:
        """Append one value, in constant time."""
        with self._session._writing():
            self._session._apply(self._type, Append(value))

    def seed(self, values: T | Iterable[T]) -> None:
        """Replace the whole slice with this value or these values."""
        given = (values,) if isinstance(values, self._type) else tuple(cast("Iterable[T]", values))
        with self._session._writing():
            self._session._apply(self._type, Replace(given))

    def clear(self, predicate: Callable[[T], bool] | None = None) -> None:
        """Remove every value, or those for which ``predicate`` is true."""
        with self._session._writing():
            with _pure:
                kept = () if predicate is None else tuple(value for value in self.all() if not predicate(value))
            self._session._apply(self._type, Replace(kept))

    def register(self, event_type: type[E], reducer: Reducer[T, E]) -> None:
        """Apply events of exactly ``event_type`` to this slice with ``reducer``.

        A slice has one reducer for each event type. Registering the same one again has no effect, so a section can
        be installed twice; registering a different one is an error.
        """
        with self._session._writing():
            reducers = self._session._reducers.setdefault(event_type, {})
            known = reducers.get(self._type)
            if known is not None and known != reducer:
                raise SessionError(
                    f"The slice {self._type.__name__} already has the reducer {describe(known)} "
                    f"for {event_type.__name__}.",
                    next_step="Dispatch a different event type, or keep the value in a slice of your own.",
                )
            reducers[self._type] = reducer
            self._session._store(self._type)

    @property
    def reduced(self) -> bool:
        """Whether reducers are registered for this slice."""
        with self._session._lock:
            return any(self._type in by_slice for by_slice in self._session._reducers.values())

    def __len__(self) -> int:
        with self._session._lock:
            return len(self._session._stores.get(self._type, ()))

    def __iter__(self) -> Iterator[T]:
        return iter(self.all())

    def __repr__(self) -> str:
        return f"<Slice {self._type.__name__}: {len(self)} value(s)>"


def _checked(slice_type: type, value: object) -> object:
    if not isinstance(value, slice_type):
        raise TypeError(f"the slice holds {slice_type.__name__}, not {type(value).__name__}")
    return value
