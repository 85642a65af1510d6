"""Asking a checker so that nothing it does can look like a pass, except saying so."""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, runtime_checkable

from donewhen.foundation.cancellation import cancellable, cancelled
from donewhen.foundation.plain_text import one_line
from donewhen.protocols import ReasonCode, TaskCompletionChecker, TaskCompletionContext, TaskCompletionResult

if TYPE_CHECKING:
    import asyncio


@runtime_checkable
class AsyncTaskCompletionChecker(Protocol):
    """A checker whose ``check`` is a coroutine function. It may stand wherever a checker may."""

    async def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        """Say whether the tasks are complete."""
        ...


T = TypeVar("T")
AnyChecker = TaskCompletionChecker | AsyncTaskCompletionChecker

_SETTLING = 3.0

_checking: ContextVar[bool] = ContextVar("donewhen_checking", default=False)


def is_checking() -> bool:
    """Whether the current code runs inside a check: an adapter that a judge asks must not be guarded in turn."""
    return _checking.get()


@contextmanager
def checking() -> Iterator[None]:
    """Mark what runs inside as part of a check."""
    token = _checking.set(True)
    try:
        yield
    finally:
        _checking.reset(token)


def checker_name(checker: object) -> str:
    """What to call a checker in a sentence; a str is a name already."""
    try:
        name = checker if isinstance(checker, str) else getattr(checker, "name", None)
    except Exception:  # noqa: BLE001 - a checker that can't even be named is still to be told of
        name = None
    return name if isinstance(name, str) and name else type(checker).__name__


def run_check(
    checker: AnyChecker, context: TaskCompletionContext, *, timeout: float | None = None
) -> TaskCompletionResult:
    """Ask ``checker`` and always come back with a result.

    A checker that raises, exits the interpreter or returns something else is *incomplete* with
    ``gate_error``. One that does not answer within ``timeout`` seconds is abandoned (a command it is
    running is killed) and is *incomplete* with ``check_timeout``. Without a timeout it is waited for.
    """
    if timeout is None:
        return contextvars.copy_context().run(_ask, checker, context)
    box = _Box()
    try:
        box.start(checker, context)
        return _answered(box.wait(timeout), checker, timeout)
    except BaseException:
        # A person's Ctrl-C, also in the moment between the two. What the check has started must end before we do.
        box.abandon()
        box.settle()
        raise


async def arun_check(
    checker: AnyChecker, context: TaskCompletionContext, *, timeout: float | None = None
) -> TaskCompletionResult:
    """The same for asynchronous callers: the event loop goes on while the checker works in a thread.

    A checker whose ``check`` is a coroutine function is awaited on the caller's own loop.
    """
    import asyncio

    if _is_async(checker):
        task = asyncio.ensure_future(_await_checked(checker, context))
        try:
            done, _ = await asyncio.wait({task}, timeout=timeout)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            task.cancel()
            return _answered(None, checker, timeout)
        return gate_error(checker, "raised CancelledError") if task.cancelled() else task.result()
    loop = asyncio.get_running_loop()
    answered = asyncio.Event()
    box = _Box()
    box.start(checker, context, on_answer=lambda: _tell(loop, answered))
    try:
        await asyncio.wait_for(answered.wait(), timeout)
    except TimeoutError:
        return _answered(box.abandon(), checker, timeout)
    except asyncio.CancelledError:
        box.abandon()
        raise
    return _answered(box.wait(None), checker, timeout)


def gate_error(checker: object, what: str) -> TaskCompletionResult:
    """The result of a check that is itself broken."""
    return TaskCompletionResult.incomplete(
        f"gate_error: the completion check {checker_name(checker)} {what}. A broken check is not a pass; "
        "fix the check, or ask the person who set it up.",
        code=ReasonCode.GATE_ERROR,
    )


def _answered(result: TaskCompletionResult | None, checker: object, timeout: float | None) -> TaskCompletionResult:
    if result is not None:
        return result
    return TaskCompletionResult.incomplete(
        f"check_timeout: the completion check {checker_name(checker)} did not answer within {timeout:g} seconds "
        "and was abandoned, so the work is not verified.",
        code=ReasonCode.CHECK_TIMEOUT,
    )


class _Box:
    """One check in a thread of its own, which may be left behind: a daemon thread never delays the exit."""

    def __init__(self) -> None:
        self._answered = threading.Event()
        self._cancel: threading.Event | None = None
        self._result: TaskCompletionResult | None = None
        self._interrupt: BaseException | None = None

    def start(
        self,
        checker: AnyChecker,
        context: TaskCompletionContext,
        on_answer: Callable[[], object] = lambda: None,
    ) -> None:
        surroundings = contextvars.copy_context()
        self._cancel = surroundings.run(cancellable)

        def work() -> None:
            try:
                self._result = surroundings.run(_ask, checker, context)
            except BaseException as interrupt:  # noqa: BLE001 - raised again in the waiting thread
                self._interrupt = interrupt
            self._answered.set()
            on_answer()

        threading.Thread(target=work, name=f"check {checker_name(checker)}", daemon=True).start()

    def wait(self, timeout: float | None) -> TaskCompletionResult | None:
        """The answer, or None when there is none in time."""
        if not self._answered.wait(timeout):
            return self.abandon()
        if self._interrupt is not None:
            raise self._interrupt
        return self._result

    def settle(self) -> None:
        """Give an abandoned check a moment to end what it has started."""
        self._answered.wait(_SETTLING)

    def abandon(self) -> TaskCompletionResult | None:
        """Stop waiting and ask what was started to stop; an answer that came just now still counts."""
        if self._cancel is not None:
            self._cancel.set()
        return self._result


def _tell(loop: asyncio.AbstractEventLoop, answered: asyncio.Event) -> None:
    # A loop that was closed in the meantime has nobody left who waits.
    if not loop.is_closed():
        loop.call_soon_threadsafe(answered.set)


def _is_async(checker: object) -> bool:
    try:
        return inspect.iscoroutinefunction(getattr(checker, "check", None))
    except Exception:  # noqa: BLE001 - asking it will tell
        return False


def _ask(checker: AnyChecker, context: TaskCompletionContext) -> TaskCompletionResult:
    _checking.set(True)
    if cancelled():
        return TaskCompletionResult.incomplete(
            f"check_timeout: {checker_name(checker)} was not asked any more, because nobody waits for its answer.",
            code=ReasonCode.CHECK_TIMEOUT,
        )
    try:
        check = getattr(checker, "check", None)
        if not callable(check):
            return gate_error(checker, "has no check method")
        answer: object = check(context)
        if inspect.isawaitable(answer):
            answer = run_awaitable(answer)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - fail closed: sys.exit(0) in a checker is no pass either
        return gate_error(checker, _raised(error))
    return _checked(checker, answer)


async def _await_checked(checker: AnyChecker, context: TaskCompletionContext) -> TaskCompletionResult:
    import asyncio

    _checking.set(True)
    try:
        answer: object = checker.check(context)
        if inspect.isawaitable(answer):
            answer = await answer
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - fail closed
        return gate_error(checker, _raised(error))
    return _checked(checker, answer)


def _checked(checker: object, answer: object) -> TaskCompletionResult:
    # By its real type and its real value: an object can pretend both to isinstance and to an if.
    if issubclass(type(answer), TaskCompletionResult) and type(getattr(answer, "complete", None)) is bool:
        return cast("TaskCompletionResult", answer)
    return gate_error(checker, f"returned {_shown(answer)}, which is not a TaskCompletionResult")


def _shown(thing: object) -> str:
    try:
        return one_line(repr(thing), 60)
    except Exception:  # noqa: BLE001 - what it is can still be told
        return f"an object of type {type(thing).__name__}"


def _raised(error: BaseException) -> str:
    try:
        text = one_line(str(error))
    except Exception:  # noqa: BLE001 - its name says something, too
        text = ""
    return f"raised {type(error).__name__}" + (f": {text.rstrip('.')}" if text else "")


def run_awaitable(answer: Awaitable[T]) -> T:
    """Run an awaitable to its end, on a loop of its own, from any thread, also one whose loop is running."""
    import asyncio

    async def awaited() -> T:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(awaited())
    outcome: list[T] = []
    failure: list[BaseException] = []
    surroundings = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.append(surroundings.run(asyncio.run, awaited()))
        except BaseException as error:  # noqa: BLE001 - raised again below
            failure.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
