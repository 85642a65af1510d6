"""Records the plain arguments with which tests call a module's functions, and calls them with arguments near those.

Functions are only called in a process of their own, in a room from which nothing else can be reached.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import inspect
import os
import re
import signal
import sys
import time
import types
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from .near_inputs import Arguments, is_plain, large_arguments, near_arguments

Calls = dict[tuple[str, str], list[Arguments]]
"""The arguments by file and name of the function."""
_MOST_CALLS = 8
_LONGEST = 2000
_SECONDS_A_CALL = 0.1
_SECONDS_A_LARGE_CALL = 0.3
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class TimeIsUp(BaseException):
    """A call took too long. No handler of the called code should catch it."""


class RecordingFinder(importlib.abc.MetaPathFinder):
    """Has the functions of some files record their arguments."""

    def __init__(self, files: Collection[str], calls: Calls) -> None:
        self._files, self._calls = frozenset(files), calls

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: importlib.machinery.ModuleSpec | None = find(name, path, target)
            if spec is not None:
                if spec.loader is not None and spec.origin and os.path.realpath(spec.origin) in self._files:
                    self._record(spec.loader, os.path.realpath(spec.origin))
                return spec
        return None

    def _record(self, loader: Any, file: str) -> None:
        execute: Callable[[types.ModuleType], None] = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            record_calls(module, file, self._calls)

        loader.exec_module = exec_module


def record_calls(module: types.ModuleType, file: str, calls: Calls) -> None:
    """Replace the plain functions of a module by ones that record their arguments."""
    for name, function in list(vars(module).items()):
        if is_plain_function(function) and function.__module__ == module.__name__:
            setattr(module, name, _recording(function, calls.setdefault((file, name), [])))


def is_plain_function(function: object) -> bool:
    """Whether it is a function that answers when it is called."""
    return isinstance(function, types.FunctionType) and not (
        inspect.iscoroutinefunction(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    )


def _recording(function: Callable[..., Any], found: list[Arguments]) -> Callable[..., Any]:
    @functools.wraps(function)
    def recording(*arguments: Any, **named: Any) -> Any:
        if len(found) < _MOST_CALLS and not named and is_plain(arguments) and len(repr(arguments)) <= _LONGEST:
            copy = deepcopy(arguments)
            if copy not in found:
                found.append(copy)
        return function(*arguments, **named)

    return recording


def near_answers(function: Callable[..., Any], calls: Sequence[Arguments], seconds: float) -> list[str]:
    """What a function answers to arguments near those of its calls, as text; fewer if the time is up."""
    end = time.monotonic() + seconds
    answers: list[str] = []
    for arguments in near_arguments(calls):
        if time.monotonic() > end:
            break
        answers.append(answer(function, arguments, _SECONDS_A_CALL))
    return answers


def large_failures(function: Callable[..., Any], calls: Sequence[Arguments]) -> tuple[int, int]:
    """How many much larger arguments there are, and with how many of them the function fails."""
    answers = [answer(function, arguments, _SECONDS_A_LARGE_CALL) for arguments in large_arguments(calls)]
    return len(answers), sum(text.startswith("!") and text != "!time" for text in answers)


def answer(function: Callable[..., Any], arguments: Arguments, seconds: float) -> str:
    """What a call returns, as text; an exclamation mark and the name of the error if it raises one."""
    try:
        copy = deepcopy(arguments)
        with _limited(seconds):
            return _ADDRESS.sub("", repr(function(*copy)))[:500]
    except TimeIsUp:
        return "!time"
    except MemoryError:
        return "!time"
    except BaseException as error:
        return "!" + type(error).__name__


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: object) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
