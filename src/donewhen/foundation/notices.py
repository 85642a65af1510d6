"""Notices: what a caller should know while the work goes on, such as a wait or a view that could not be refreshed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from donewhen.foundation.plain_text import one_line

_MAX_LENGTH = 1000

_handler: ContextVar[Callable[[str], object] | None] = ContextVar("donewhen_notices", default=None)


def notify(message: str) -> None:
    """Give a notice to whoever handles notices in this context. Without a handler, it is logged as a warning.

    A notice changes no outcome: a handler that fails is ignored.
    """
    handler = _handler.get() or _log
    with suppress(Exception):
        handler(one_line(message, _MAX_LENGTH))


@contextmanager
def notices_to(handler: Callable[[str], object]) -> Iterator[None]:
    """Give the notices of this context to ``handler``, as one plain line each."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


def _log(message: str) -> None:
    # Imported late: a hook that gives no notice must start fast.
    import logging

    logging.getLogger("donewhen").warning("%s", message)
