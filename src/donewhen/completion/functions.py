"""Functions as checkers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

from donewhen.foundation.plain_text import one_line
from donewhen.protocols import TaskCompletionChecker, TaskCompletionContext, TaskCompletionResult

CheckFunction = Callable[[TaskCompletionContext], TaskCompletionResult | bool | Awaitable[TaskCompletionResult | bool]]


class CallableChecker:
    """A function, plain or ``async``, as a checker.

    It returns a :class:`TaskCompletionResult`, or True or False; for False, the first line of its docstring
    says what is missing. Anything else, especially None, is an error and never a pass.
    """

    def __init__(self, function: CheckFunction, *, name: str | None = None) -> None:
        if not callable(function):
            raise TypeError(f"{function!r} can't be called, so it can't be a checker")
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.__doc__ = inspect.getdoc(function)

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        answer = self.function(context)
        # run_check and arun_check await an awaitable; the protocol's return type is a result.
        return cast(
            "TaskCompletionResult",
            self._await_result(answer) if inspect.isawaitable(answer) else self._result(answer),
        )

    def __call__(self, context: TaskCompletionContext) -> Any:
        return self.function(context)

    def __repr__(self) -> str:
        return f"<checker {self.name}>"

    async def _await_result(self, answer: Awaitable[object]) -> object:
        return self._result(await answer)

    def _result(self, answer: object) -> object:
        if answer is True:
            return TaskCompletionResult.ok()
        if answer is False:
            summary = (self.__doc__ or "").strip().split("\n")[0]
            return TaskCompletionResult.incomplete(f"{self.name} is not met" + (f": {summary}" if summary else "."))
        return answer


def checker(function: CheckFunction) -> CallableChecker:
    """Decorator: make a checker from a function ``(context) -> TaskCompletionResult | bool``, plain or async."""
    return CallableChecker(function)


def as_checker(candidate: object) -> TaskCompletionChecker:
    """Return ``candidate`` if it has ``check``, wrap it if it is a function, and raise TypeError otherwise."""
    if isinstance(candidate, type):
        raise TypeError(f"{candidate.__name__} is a class; pass an instance: {candidate.__name__}(...)")
    if has_check(candidate):
        return cast("TaskCompletionChecker", candidate)
    if callable(candidate):
        return CallableChecker(cast("CheckFunction", candidate))
    raise TypeError(f"{_described(candidate)} is not a checker: it has no check(context) method and can't be called")


def has_check(candidate: object) -> bool:
    """Whether ``candidate`` has a ``check`` to call. One that can't even be looked up counts: asking it reports why."""
    try:
        return callable(getattr(candidate, "check", None))
    except Exception:  # noqa: BLE001 - the check will raise it again, and then it is reported
        return True


def _described(candidate: object) -> str:
    try:
        return one_line(repr(candidate), 200)
    except Exception:  # noqa: BLE001 - the type can still be named
        return f"an object of type {type(candidate).__name__}"
