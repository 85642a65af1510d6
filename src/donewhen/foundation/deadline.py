"""Ends waiting for a file system that does not answer."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from donewhen.foundation.errors import DonewhenError

_Given = TypeVarTuple("_Given")
_T = TypeVar("_T")


class DeadlineError(DonewhenError):
    """Something did not answer in time."""

    code = "deadline"


def within(seconds: float, work: Callable[[*_Given], _T], *given: *_Given, what: str) -> _T:
    """``work(*given)``; raise DeadlineError if it has not ended then. ``what`` is the work, for the error.

    A read from a mount that hangs can't be interrupted. So the work is done in a thread of its own, which is left
    behind then and does not keep the process from ending.
    """
    results: list[_T] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            results.append(context.run(work, *given))
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, name=what, daemon=True)
    thread.start()
    thread.join(seconds)
    if results:
        return results[0]
    if errors:
        raise errors[0]
    raise DeadlineError(
        f"{what[:1].upper()}{what[1:]} did not end within {seconds:g} seconds. A file system or a pipe does not "
        "answer.",
        next_step="Look for a mount that hangs, and unmount it; then try again.",
    )
