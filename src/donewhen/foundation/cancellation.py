"""Cancellation: lets a caller that stopped waiting stop the work that it started."""

from __future__ import annotations

import threading
from contextvars import ContextVar

from donewhen.foundation.errors import DonewhenError

_current: ContextVar[threading.Event | None] = ContextVar("donewhen_cancelled", default=None)


class CancelledError(DonewhenError):
    """The current work was cancelled."""

    code = "cancelled"


def cancellable() -> threading.Event:
    """Make this context cancellable; setting the returned event asks everything started in it to stop.

    Call it inside a separate context (``contextvars.copy_context().run``): the event applies to everything
    that runs there. An outer event, if any, is still honoured by :func:`cancelled`.
    """
    event = _LinkedEvent(_current.get())
    _current.set(event)
    return event


def cancelled() -> bool:
    """Whether the current work was cancelled."""
    event = _current.get()
    return event is not None and event.is_set()


def raise_if_cancelled() -> None:
    """Raise CancelledError if the current work was cancelled."""
    if cancelled():
        raise CancelledError("The work was cancelled.")


class _LinkedEvent(threading.Event):
    """An event that is also set when its parent is."""

    def __init__(self, parent: threading.Event | None) -> None:
        super().__init__()
        self._parent = parent

    def is_set(self) -> bool:
        return super().is_set() or (self._parent is not None and self._parent.is_set())
