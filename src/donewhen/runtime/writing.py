"""Who may write to a session, and when: never inside a running reducer."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable

from donewhen.foundation.errors import DonewhenError
from donewhen.runtime.dispatcher import describe


class SessionError(DonewhenError):
    """A session was used in a way that would lose or mix up state."""

    code = "session"


class Pure(threading.local):
    """Marks that a reducer or predicate is running under a session's lock, and so must not write to a session."""

    running = False

    def __enter__(self) -> None:
        self.running = True

    def __exit__(self, *_: object) -> None:
        self.running = False


pure = Pure()


class Writing:
    """A session's lock for writing. It is refused inside a running reducer of any session."""

    __slots__ = ("_lock",)

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        if pure.running:
            raise SessionError(
                "A reducer tried to change the session while it was running.",
                next_step="Return an operation instead, and dispatch further events after the dispatch.",
            )
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def check_signature(reducer: Callable[..., object]) -> None:
    """Raise for a reducer with other parameters: every dispatch would fail, and state would be missing."""
    try:
        signature = inspect.signature(reducer)
    except (ValueError, TypeError):
        return  # some built-in functions have no signature
    try:
        signature.bind(None, None)
    except TypeError:
        parameters = ", ".join(signature.parameters) or "none"
        raise SessionError(
            f"The reducer {describe(reducer)} can't be called with a view and an event; its parameters: {parameters}.",
            next_step="Write it as def reducer(view, event), and return Append, Replace, Clear or None.",
        ) from None


def is_refusal(error: Exception) -> bool:
    """Whether a reducer declined an event on purpose, as the planning tools decline an unknown step."""
    return isinstance(error, DonewhenError) and not isinstance(error, SessionError)
