"""Run a checker safely: an error, a timeout or a wrong return value is never a pass."""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from donewhen.completion.functions import CheckFunction, as_checker
from donewhen.completion.loops import await_blocking, off_blocked_loop, on_loop
from donewhen.foundation.cancellation import cancellable, cancelled
from donewhen.foundation.plain_text import one_line, shorten, shorten_middle
from donewhen.protocols import ReasonCode, TaskCompletionChecker, TaskCompletionContext, TaskCompletionResult

if TYPE_CHECKING:
    import asyncio


@runtime_checkable
class AsyncTaskCompletionChecker(Protocol):
    """A checker whose ``check`` is a coroutine function. It is accepted wherever a checker is."""

    async def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        """Return whether the tasks are complete."""
        ...


AnyChecker = TaskCompletionChecker | AsyncTaskCompletionChecker
Checkable = AnyChecker | CheckFunction
"""What is accepted as a checker: an object with ``check``, or a function of the context, plain or async."""

MAX_FEEDBACK = 8000
"""In characters. Runtimes cut longer feedback, or fail on it."""
_NOTE = 40
"""Room for the words that say how much was left out."""
_SETTLING = 3.0

_checking: ContextVar[bool] = ContextVar("donewhen_checking", default=False)
_running: ContextVar[list[str]] = ContextVar("donewhen_running")
"""The names of the checkers that are running in this check, the outermost first."""


def is_checking() -> bool:
    """Whether the current code runs inside a check. An adapter that is called by a judge must not be guarded itself."""
    return _checking.get()


@contextmanager
def checking() -> Iterator[None]:
    """Context manager: mark the code inside as part of a check."""
    token = _checking.set(True)
    try:
        yield
    finally:
        _checking.reset(token)


def checker_name(checker: object) -> str:
    """Return the name of a checker for messages; a str is used as it is."""
    try:
        name = checker if isinstance(checker, str) else getattr(checker, "name", None)
    except Exception:  # noqa: BLE001 - a checker whose name raises must still be reported
        name = None
    return name if isinstance(name, str) and name else type(checker).__name__


def run_check(
    checker: Checkable, context: TaskCompletionContext, *, timeout: float | None = None
) -> TaskCompletionResult:
    """Run ``checker``, which may be a function, and always return a result.

    A checker that raises, exits the interpreter or returns something else is *incomplete* with
    ``gate_error``. A checker that does not return within ``timeout`` seconds is abandoned (its running
    command is killed) and is *incomplete* with ``check_timeout``. Without a timeout, wait until it returns.
    Something that is neither a checker nor a function is a TypeError.

    An async checker runs on the loop of the :func:`arun_check` around this call, or else on a loop of its own.
    """
    checker = as_checker(checker)
    if timeout is None:
        return contextvars.copy_context().run(_call_checker, checker, context)
    thread = _CheckThread()
    try:
        with off_blocked_loop():
            thread.start(checker, context)
        return _result_or_timeout(thread.wait(timeout), checker, timeout, thread.names)
    except BaseException:
        # For example Ctrl-C, possibly between start and wait. What the check has started must end before we do.
        thread.abandon()
        thread.settle()
        raise


async def arun_check(
    checker: Checkable, context: TaskCompletionContext, *, timeout: float | None = None
) -> TaskCompletionResult:
    """Like :func:`run_check`, for asynchronous callers: the checker runs in a thread, so the event loop is not blocked.

    What is async is awaited on the caller's own loop, also inside a checker of checkers: clients and locks can be
    shared with the rest of the program.
    """
    import asyncio

    checker = as_checker(checker)
    if _is_async(checker):
        names: list[str] = []
        token = _running.set(names)
        task = asyncio.ensure_future(_await_checker(checker, context))
        _running.reset(token)
        try:
            done, _ = await asyncio.wait({task}, timeout=timeout)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            task.cancel()
            return _result_or_timeout(None, checker, timeout, names)
        return gate_error(checker, "raised CancelledError") if task.cancelled() else task.result()
    loop = asyncio.get_running_loop()
    answered = asyncio.Event()
    thread = _CheckThread()
    with on_loop(loop):
        thread.start(checker, context, on_answer=lambda: _set_event(loop, answered))
    try:
        await asyncio.wait_for(answered.wait(), timeout)
    except TimeoutError:
        return _result_or_timeout(thread.abandon(), checker, timeout, thread.names)
    except asyncio.CancelledError:
        thread.abandon()
        raise
    return _result_or_timeout(thread.wait(None), checker, timeout, thread.names)


def gate_error(checker: object, what: str) -> TaskCompletionResult:
    """Return the result for a check that is itself broken."""
    stop = "" if what.endswith((".", "?")) else "."
    return TaskCompletionResult.incomplete(
        f"gate_error: the completion check {checker_name(checker)} {what}{stop} A broken check is not a pass; "
        "fix the check, or ask the person who set it up.",
        code=ReasonCode.GATE_ERROR,
    )


def _result_or_timeout(
    result: TaskCompletionResult | None, checker: object, timeout: float | None, running: list[str]
) -> TaskCompletionResult:
    """Return the result, or one that names the innermost check that was still running."""
    if result is not None:
        return result
    name = running[-1] if running else checker_name(checker)
    return TaskCompletionResult.incomplete(
        f"check_timeout: the completion check {shorten(name, 200)} did not answer within {timeout:g} seconds "
        "and was abandoned, so the work is not verified.",
        code=ReasonCode.CHECK_TIMEOUT,
    )


class _CheckThread:
    """One check in its own daemon thread, so that an abandoned check never delays the exit."""

    def __init__(self) -> None:
        self.names: list[str] = []
        """The checkers that are running in it, the outermost first."""
        self._done_event = threading.Event()
        self._cancel: threading.Event | None = None
        self._result: TaskCompletionResult | None = None
        self._interrupt: BaseException | None = None

    def start(
        self,
        checker: AnyChecker,
        context: TaskCompletionContext,
        on_answer: Callable[[], object] = lambda: None,
    ) -> None:
        context_copy = contextvars.copy_context()
        self._cancel = context_copy.run(cancellable)
        context_copy.run(_running.set, self.names)

        def work() -> None:
            try:
                self._result = context_copy.run(_call_checker, checker, context)
            except BaseException as interrupt:  # noqa: BLE001 - raised again in the waiting thread
                self._interrupt = interrupt
            self._done_event.set()
            on_answer()

        threading.Thread(target=work, name=f"check {checker_name(checker)}", daemon=True).start()

    def wait(self, timeout: float | None) -> TaskCompletionResult | None:
        """Return the result, or None after the timeout."""
        if not self._done_event.wait(timeout):
            return self.abandon()
        if self._interrupt is not None:
            raise self._interrupt
        return self._result

    def settle(self) -> None:
        """Wait briefly for an abandoned check to stop what it has started."""
        self._done_event.wait(_SETTLING)

    def abandon(self) -> TaskCompletionResult | None:
        """Cancel the check. Return its result if it has just finished."""
        if self._cancel is not None:
            self._cancel.set()
        return self._result


def _set_event(loop: asyncio.AbstractEventLoop, answered: asyncio.Event) -> None:
    # If the loop was closed in the meantime, nothing waits for the event.
    if not loop.is_closed():
        loop.call_soon_threadsafe(answered.set)


def _is_async(checker: object) -> bool:
    try:
        return inspect.iscoroutinefunction(getattr(checker, "check", None))
    except Exception:  # noqa: BLE001 - running the check will report it
        return False


def _call_checker(checker: AnyChecker, context: TaskCompletionContext) -> TaskCompletionResult:
    _checking.set(True)
    if cancelled():
        return TaskCompletionResult.incomplete(
            f"check_timeout: {checker_name(checker)} was not run: the check was abandoned before it started.",
            code=ReasonCode.CHECK_TIMEOUT,
        )
    names = _running.get([])
    names.append(checker_name(checker))
    try:
        check = getattr(checker, "check", None)
        if not callable(check):
            return gate_error(checker, "has no check method")
        answer: object = check(context)
        if inspect.isawaitable(answer):
            answer = await_blocking(answer)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - fail closed: sys.exit(0) in a checker is no pass either
        return gate_error(checker, _describe_error(error))
    finally:
        # An abandoned check keeps its names, so that it can still be said what it was doing.
        if not cancelled():
            names.pop()
    return _validated_result(checker, answer)


async def _await_checker(checker: AnyChecker, context: TaskCompletionContext) -> TaskCompletionResult:
    import asyncio

    _checking.set(True)
    _running.get([]).append(checker_name(checker))
    try:
        answer: object = checker.check(context)
        if inspect.isawaitable(answer):
            answer = await answer
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - fail closed
        return gate_error(checker, _describe_error(error))
    return _validated_result(checker, answer)


def _validated_result(checker: object, answer: object) -> TaskCompletionResult:
    # Check the real type and the real value: an object can fool both isinstance and bool().
    if issubclass(type(answer), TaskCompletionResult) and type(getattr(answer, "complete", None)) is bool:
        return _bounded(cast("TaskCompletionResult", answer))
    return gate_error(checker, f"returned {_short_repr(answer)}, which is not a TaskCompletionResult")


def _bounded(result: TaskCompletionResult) -> TaskCompletionResult:
    """The result with feedback of limited length: its beginning, which names the check, and its end."""
    feedback = result.feedback
    if feedback is None or len(feedback) <= MAX_FEEDBACK:
        return result
    return TaskCompletionResult(result.complete, shorten_middle(feedback, MAX_FEEDBACK - _NOTE), result.code)


def _short_repr(thing: object) -> str:
    try:
        return one_line(repr(thing), 60)
    except Exception:  # noqa: BLE001 - the type can still be named
        return f"an object of type {type(thing).__name__}"


def _describe_error(error: BaseException) -> str:
    try:
        text = one_line(str(error))
    except Exception:  # noqa: BLE001 - the type name is still useful
        text = ""
    return f"raised {type(error).__name__}" + (f": {text.rstrip('.')}" if text else "")
