"""The command line: one file per verb, and one place that turns every outcome into an exit status."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context

_COLLECTED_AFTER = 50_000
"""Number of new objects after which garbage is collected."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``donewhen`` with these arguments and return its exit status."""
    if argv is not None:
        return _dispatch(list(argv))
    _collect_garbage_rarely()
    status = _dispatch(sys.argv[1:])
    # The process ends here; otherwise Python would search all that is left for garbage first.
    gc.freeze()
    return status


def _dispatch(arguments: list[str]) -> int:
    _end_properly_when_asked_to()
    if arguments[:1] == ["hook"]:
        from donewhen.cli.hook import main as hook

        return copy_context().run(hook, arguments[1:])
    from donewhen.cli._run import run

    # In a context of its own: a program that goes on afterwards no longer runs this command.
    return copy_context().run(run, arguments)


def _collect_garbage_rarely() -> None:
    """Raise Python's threshold of 700 new objects. The modules that a command imports are no garbage, but the collector
    would go through them seventy times, which is a twentieth of the time of a stop hook."""
    first, *others = gc.get_threshold()
    if first:
        gc.set_threshold(max(first, _COLLECTED_AFTER), *others)


def _end_properly_when_asked_to() -> None:
    """Exit on SIGTERM and SIGHUP as on an exception, so that started processes are ended too."""
    import signal

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    with suppress(ValueError):  # only the main thread may set signal handlers
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, leave)
