"""The command line: one file a verb, and one place that turns what happened into an exit status."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``donewhen`` with these arguments and give back its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _end_properly_when_asked_to()
    if arguments[:1] == ["hook"]:
        from donewhen.cli.hook import main as hook

        return hook(arguments[1:])
    from donewhen.cli._run import run

    return run(arguments)


def _end_properly_when_asked_to() -> None:
    """A runtime that gives up on us sends a signal; what we have started must end with us."""
    import signal

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    with suppress(ValueError):  # only a program's main thread may say so
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, leave)
