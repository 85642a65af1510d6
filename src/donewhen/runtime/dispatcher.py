"""Deliver events to handlers and sessions."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

E = TypeVar("E")


class DispatchError(NamedTuple):
    """A handler or reducer that raised; the others were still called."""

    handler: str
    error: Exception

    def __str__(self) -> str:
        return f"{self.handler}: {type(self.error).__name__}: {self.error}"


@dataclass(frozen=True)
class DispatchResult:
    """The number of handlers and reducers that succeeded, and the errors of the others."""

    handled: int = 0
    errors: tuple[DispatchError, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether somebody took the event, and nothing failed. An event that nobody took has changed nothing."""
        return self.handled > 0 and not self.errors

    def raise_if_errors(self) -> None:
        """Raise all errors of this dispatch as one group."""
        if self.errors:
            raise ExceptionGroup("dispatch failed", [failure.error for failure in self.errors])

    def __add__(self, other: DispatchResult) -> DispatchResult:
        return DispatchResult(self.handled + other.handled, self.errors + other.errors)


class Reduces(Protocol):
    """Updates its state from events, as a session does."""

    def reduce(self, event: object) -> DispatchResult:
        """Update the state with the event."""
        ...


class Dispatcher(Protocol):
    """Delivers events to sessions and handlers."""

    def dispatch(self, event: object) -> DispatchResult:
        """Deliver to every attached session and every handler of the event's type."""
        ...

    def announce(self, event: object) -> DispatchResult:
        """Deliver to the handlers only."""
        ...

    def attach(self, session: Reduces) -> None:
        """Deliver later events of :meth:`dispatch` to this session, too."""
        ...


class InProcessDispatcher:
    """Delivers immediately, in the calling thread. Sessions are held by weak references."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handlers: dict[type, tuple[Callable[[Any], object], ...]] = {}
        self._sessions: tuple[weakref.ref[Reduces], ...] = ()

    def subscribe(self, event_type: type[E], handler: Callable[[E], object]) -> None:
        """Call ``handler`` for each event of exactly this type; subscribing it again changes nothing."""
        with self._lock:
            known = self._handlers.get(event_type, ())
            if handler not in known:
                self._handlers[event_type] = (*known, handler)

    def unsubscribe(self, event_type: type[E], handler: Callable[[E], object]) -> bool:
        """Stop calling ``handler``; return False if it was not subscribed."""
        with self._lock:
            known = self._handlers.get(event_type, ())
            self._handlers[event_type] = tuple(registered for registered in known if registered != handler)
            return handler in known

    def attach(self, session: Reduces) -> None:
        with self._lock:
            alive = [reference for reference in self._sessions if reference() is not None]
            if not any(reference() is session for reference in alive):
                alive.append(weakref.ref(session))
            self._sessions = tuple(alive)

    def dispatch(self, event: object) -> DispatchResult:
        result = DispatchResult()
        for reference in self._sessions:
            if (session := reference()) is not None:
                result += session.reduce(event)
        return result + self.announce(event)

    def announce(self, event: object) -> DispatchResult:
        handlers = self._handlers.get(type(event), ())
        errors: list[DispatchError] = []
        for handler in handlers:
            try:
                handler(event)
            except Exception as error:  # noqa: BLE001 - a failing handler must not affect the others; it is reported
                errors.append(DispatchError(describe(handler), error))
        return DispatchResult(len(handlers) - len(errors), tuple(errors))


def describe(function: Callable[..., object]) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)
