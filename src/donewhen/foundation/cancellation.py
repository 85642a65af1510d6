"""How a caller that stopped waiting tells the work it abandoned to stop, too."""

from __future__ import annotations

import threading
from contextvars import ContextVar

from donewhen.foundation.errors import DonewhenError

_current: ContextVar[threading.Event | None] = ContextVar("donewhen_cancelled", default=None)


class CancelledError(DonewhenError):
    """Whoever started the current work has stopped waiting for it."""

    code = "cancelled"


def cancellable() -> threading.Event:
    """Make this context cancellable; setting the returned event asks everything started in it to stop.

    Call it inside a context of your own (``contextvars.copy_context().run``): the event stays for all
    that runs there. An outer event, if there is one, is still honoured through :func:`cancelled`.
    """
    event = _Linked(_current.get())
    _current.set(event)
    return event


def cancelled() -> bool:
    """Whether whoever started the current work has stopped waiting for it."""
    event = _current.get()
    return event is not None and event.is_set()


def raise_if_cancelled() -> None:
    """Go no further for somebody who has stopped waiting."""
    if cancelled():
        raise CancelledError("Nobody waits for this any more, so it was ended.")


class _Linked(threading.Event):
    """An event that is also set when its parent is."""

    def __init__(self, parent: threading.Event | None) -> None:
        super().__init__()
        self._parent = parent

    def is_set(self) -> bool:
        return super().is_set() or (self._parent is not None and self._parent.is_set())
