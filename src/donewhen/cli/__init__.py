"""The command line: one file per verb, and one place that turns every outcome into an exit status."""

# Before the process is isolated, nothing else is imported.
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from donewhen.foundation.isolated_start import IsolationError

_NOT_STARTED = 3
_COLLECTED_AFTER = 50_000
"""Number of new objects after which garbage is collected."""


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run ``donewhen`` with these arguments and return its exit status.

    Without arguments it is the program of this process: it takes them from the command line, and replaces the process
    by an isolated one if it is not isolated yet (:mod:`donewhen.foundation.isolated_start`).
    """
    if argv is not None:
        return _dispatch(list(argv))
    from donewhen.foundation.isolated_start import IsolationError, start_isolated

    try:
        start_isolated()
    except IsolationError as error:
        return fail_to_start(error)
    import gc

    _collect_garbage_rarely()
    status = _dispatch(sys.argv[1:])
    # The process ends here; otherwise Python would search all that is left for garbage first.
    gc.freeze()
    return status


def fail_to_start(error: "IsolationError") -> int:
    """Report why donewhen can't start. An agent whose hook can't start is held back, once."""
    message = f"donewhen: {error.message} {error.next_step}"
    if sys.argv[1:2] == ["hook"]:
        from donewhen.cli.hook import refuse_event

        refuse_event(message)
    sys.stderr.write(f"{message}\n")
    return _NOT_STARTED


def _dispatch(arguments: list[str]) -> int:
    from contextvars import copy_context

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
    import gc

    first, *others = gc.get_threshold()
    if first:
        gc.set_threshold(max(first, _COLLECTED_AFTER), *others)


def _end_properly_when_asked_to() -> None:
    """Exit on SIGTERM and SIGHUP as on an exception, so that started processes are ended too."""
    import signal

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        try:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, leave)
        except ValueError:  # only the main thread may set signal handlers
            return
