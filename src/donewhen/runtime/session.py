"""A session: typed slices of state that events change atomically, also with several threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar, cast

from donewhen.runtime.dispatcher import (
    Dispatcher,
    DispatchError,
    DispatchResult,
    InProcessDispatcher,
    describe,
)
from donewhen.runtime.reducers import AnyReducer, Append, Clear, Reducer, Replace, SliceOp, append_all
from donewhen.runtime.slice_store import SliceStore, StoreView, checked_value, joined_store
from donewhen.runtime.writing import SessionError as SessionError
from donewhen.runtime.writing import Writing, check_signature, is_refusal, pure

T = TypeVar("T")
E = TypeVar("E")


class Snapshot(NamedTuple):
    """The values of every slice at one moment. Values are shared, not copied: keep them immutable."""

    slices: Mapping[type, tuple[Any, ...]]
    untaken: frozenset[type] = frozenset()
    """The slices that hold only values that nothing took."""
    failures: Mapping[type, Mapping[type, DispatchError]] = MappingProxyType({})
    """The failures of reducers that were not made good: by slice, then by the event's type."""


class Session:
    """Typed state of one run.

    ``session[Plan]`` is the slice of all :class:`Plan` values. A slice is known once it has a reducer or was written
    to. A dispatched value of a known slice is state: a reducer that the slice has for its own type takes it, and
    without one it is appended. Nothing that is dispatched to a session is lost: a value that nothing takes is kept in
    the slice of its own type as well, and the :class:`DispatchResult` is not ``ok``. A slice of a base class that
    becomes known later takes it over. A slice whose reducer failed says so in :attr:`Slice.failure`.

    Reading, reducing and applying an event is one step
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
        self._stores: dict[type, SliceStore] = {}
        self._reducers: dict[type, dict[type, AnyReducer]] = {}
        self._unclaimed: set[type] = set()
        self.dispatcher.attach(self)

    def __getitem__(self, slice_type: type[T]) -> Slice[T]:
        if not isinstance(slice_type, type):
            raise TypeError(f"a session is indexed by a class, as in session[Plan], not by {slice_type!r}")
        return Slice(self, slice_type)

    def __contains__(self, slice_type: object) -> bool:
        """Whether the slice was registered or ever written to."""
        with self._lock:
            return slice_type in self._stores and slice_type not in self._unclaimed

    def dispatch(self, event: object) -> DispatchResult:
        """Apply ``event`` to this session's slices, then announce it to the dispatcher's handlers.

        An event that no slice takes is kept in the slice of its own type, so that a checker that reads this slice
        sees it; only a reducer or a handler makes the result ``ok``.
        """
        reduced = self.reduce(event)
        if not reduced.handled and not reduced.errors:
            with self._writing():
                self._store(type(event), claim=False).append(event)
        return reduced + self.dispatcher.announce(event)

    def reduce(self, event: object) -> DispatchResult:
        """Apply ``event`` to this session's slices. If a reducer fails, its slice is not changed."""
        errors: list[DispatchError] = []
        handled = 0
        with self._writing():
            for slice_type, reducer in self._reducers_of(type(event)):
                try:
                    self._reduce_slice(slice_type, reducer, event)
                except Exception as error:  # noqa: BLE001 - reported to the dispatching caller
                    failure = DispatchError(describe(reducer), error)
                    errors.append(failure)
                    if isinstance(event, slice_type) or not is_refusal(error):
                        self._store(slice_type).failures[type(event)] = failure
                else:
                    handled += 1
        return DispatchResult(handled, tuple(errors))

    def home(self, kind: type[T]) -> type[T]:
        """Return the known slice that holds values of ``kind``: its own, or else that of its nearest base class."""
        with self._lock:
            known = (base for base in kind.__mro__ if base in self._stores and base not in self._unclaimed)
            return cast("type[T]", next(known, kind))

    def versions(self) -> dict[type, int]:
        """Return how often each slice was written to."""
        with self._lock:
            return {kind: store.version for kind, store in self._stores.items()}

    def snapshot(self) -> Snapshot:
        """Return the values of all slices at this moment."""
        with self._lock:
            # In the order of their last writes, so that a restored session knows which value is the newest.
            stores = dict(sorted(self._stores.items(), key=lambda item: item[1].written))
            failures = {kind: dict(store.failures) for kind, store in stores.items() if store.failures}
            slices = MappingProxyType({kind: store.all() for kind, store in stores.items()})
            return Snapshot(slices, frozenset(self._unclaimed), MappingProxyType(failures))

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the slices of ``snapshot`` and empty all others. Reducers stay registered."""
        with self._writing():
            for kind in self._stores.keys() - snapshot.slices.keys():
                self._restore_slice(kind, (), {})
            # What nothing took comes last: since then, a slice may have become known that takes it.
            for kind in sorted(snapshot.slices, key=snapshot.untaken.__contains__):
                home = self.home(kind) if kind in snapshot.untaken else kind
                store = self._store(home, claim=kind not in snapshot.untaken)
                before = () if home is kind else store.all()
                self._restore_slice(home, (*before, *snapshot.slices[kind]), snapshot.failures.get(kind, {}))

    def _restore_slice(self, kind: type, values: tuple[Any, ...], failures: Mapping[type, DispatchError]) -> None:
        store = self._stores[kind]
        store.replace(values)
        store.failures = dict(failures)

    def _writing(self) -> Writing:
        return Writing(self._lock)

    def _store(self, slice_type: type, *, claim: bool = True) -> SliceStore:
        store = self._stores.get(slice_type)
        if store is None:
            store = self._stores[slice_type] = SliceStore()
            self._unclaimed.add(slice_type)
        if claim and slice_type in self._unclaimed:
            self._claim(slice_type, store)
        return store

    def _claim(self, slice_type: type, store: SliceStore) -> None:
        """Make the slice known. Values of subclasses that nothing took until now belong to it."""
        untaken = [kind for kind in self._unclaimed if slice_type in kind.__mro__]
        if untaken != [slice_type]:
            store.replace(joined_store(self._stores[kind] for kind in untaken).all())
        self._unclaimed.difference_update(untaken)
        for kind in untaken:
            if kind is not slice_type:
                del self._stores[kind]

    def _reading(self, slice_type: type) -> SliceStore:
        """Return the store of a slice. A slice that is not known reads the values of all its subclasses."""
        store = self._stores.get(slice_type)
        if store is not None and slice_type not in self._unclaimed:
            return store
        stores = [known for kind, known in self._stores.items() if slice_type in kind.__mro__]
        return stores[0] if len(stores) == 1 else joined_store(stores)

    def _reducers_of(self, kind: type) -> list[tuple[type, AnyReducer]]:
        """Return a copy of the reducers for events of this type, with the one that keeps it in its own slice.

        A copy, because this thread may register further reducers while it iterates.
        """
        registered = self._reducers.get(kind, {})
        reducers = list(registered.items())
        home = self.home(kind) if not registered else kind
        if home not in registered and home in self:
            reducers.append((home, self._reducers.get(home, {}).get(home, append_all)))
        return reducers

    def _reduce_slice(self, slice_type: type, reducer: AnyReducer, event: object) -> None:
        store = self._store(slice_type)
        with pure:
            operation: SliceOp[Any] | None = reducer(StoreView(store), event)
        self._apply(slice_type, operation)
        if operation is None:
            return
        if isinstance(event, slice_type):
            store.failures.clear()
        else:
            store.failures.pop(type(event), None)

    def _apply(self, slice_type: type, operation: SliceOp[Any] | None) -> None:
        store = self._store(slice_type)
        match operation:
            case None:
                pass
            case Append(value):
                store.append(checked_value(slice_type, value))
            case Replace(values):
                store.replace(tuple(checked_value(slice_type, value) for value in values))
            case Clear():
                store.replace(())
            case _:
                raise TypeError(f"a reducer must return Append, Replace, Clear or None, not {type(operation).__name__}")


class Slice(Generic[T]):
    """All values of one type in a session. Get it as ``session[T]``."""

    __slots__ = ("_session", "_type")

    def __init__(self, session: Session, slice_type: type[T]) -> None:
        self._session = session
        self._type = slice_type

    def latest(self) -> T | None:
        """Return the newest value, or None."""
        with self._session._lock:
            return cast("T | None", self._session._reading(self._type).latest())

    def all(self) -> tuple[T, ...]:
        """Return every value, oldest first."""
        with self._session._lock:
            return self._session._reading(self._type).all()

    def where(self, predicate: Callable[[T], bool]) -> tuple[T, ...]:
        """Return the values for which ``predicate`` is true, oldest first."""
        return tuple(value for value in self.all() if predicate(value))

    def append(self, value: T) -> None:
        """Append one value, in constant time."""
        with self._session._writing():
            self._session._apply(self._type, Append(value))
            self._session._store(self._type).failures.clear()

    def seed(self, values: T | Iterable[T]) -> None:
        """Replace the whole slice with this value or these values."""
        given = (values,) if isinstance(values, self._type) else tuple(cast("Iterable[T]", values))
        with self._session._writing():
            self._session._apply(self._type, Replace(given))
            self._session._store(self._type).failures.clear()

    def clear(self, predicate: Callable[[T], bool] | None = None) -> None:
        """Remove every value, or those for which ``predicate`` is true."""
        with self._session._writing():
            with pure:
                kept = () if predicate is None else tuple(value for value in self.all() if not predicate(value))
            self._session._apply(self._type, Replace(kept))
            if predicate is None:
                self._session._store(self._type).failures.clear()

    def register(self, event_type: type[E], reducer: Reducer[T, E]) -> None:
        """Apply events of exactly ``event_type`` to this slice with ``reducer``.

        A slice has one reducer for each event type. Registering the same one again has no effect, so a section can
        be installed twice; registering a different one is an error, and so is one that can't be called with a view
        and an event.
        """
        check_signature(reducer)
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

    @property
    def failure(self) -> DispatchError | None:
        """The error of a reducer that was not made good: the slice lacks a change, so its values are out of date.

        A value of the slice's own type, a later event of the same type, or a direct write make it good. A command that
        a reducer refuses with a :class:`DonewhenError` is no failure, because nothing was to change.
        """
        with self._session._lock:
            return next(reversed(self._session._reading(self._type).failures.values()), None)

    def __len__(self) -> int:
        with self._session._lock:
            return len(self._session._reading(self._type))

    def __iter__(self) -> Iterator[T]:
        return iter(self.all())

    def __repr__(self) -> str:
        return f"<Slice {self._type.__name__}: {len(self)} value(s)>"
