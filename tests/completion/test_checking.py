"""Asking a checker: whatever it does, only a result that says so is a pass."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from donewhen.completion import (
    AsyncTaskCompletionChecker,
    CommandChecker,
    CompositeChecker,
    ReasonCode,
    TaskCompletionContext,
    TaskCompletionResult,
    checker,
    run_check,
)
from donewhen.completion.checking import checker_name, is_checking
from donewhen.foundation.cancellation import cancelled
from donewhen.testing import make_context
from sentences import assert_sentences

HANG_GUARD = 300.0


class Says:
    """A checker that does what it is told."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def check(self, context: TaskCompletionContext) -> Any:
        return self.act()


class SaysAsync:
    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    async def check(self, context: TaskCompletionContext) -> Any:
        await asyncio.sleep(0)
        return self.act()


def raising(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


class _CustomBase(BaseException):
    """As the panic of an extension module, or the outcome of a test framework, may be."""


TIMEOUTS = pytest.mark.parametrize("timeout", [None, HANG_GUARD], ids=["waited for", "with a timeout"])
KINDS = pytest.mark.parametrize("kind", [Says, SaysAsync], ids=["plain", "async"])


@TIMEOUTS
@KINDS
@pytest.mark.parametrize("result", [TaskCompletionResult.ok("Fine."), TaskCompletionResult.incomplete("Go on.")])
def test_the_answer_of_a_checker_comes_back_unchanged(
    kind: type[Says], timeout: float | None, result: TaskCompletionResult
) -> None:
    assert run_check(kind(lambda: result), make_context(), timeout=timeout) is result


@TIMEOUTS
@KINDS
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no luck"), "raised ValueError: no luck."),
        (RuntimeError(), "raised RuntimeError."),
        (RuntimeError("ends with a stop..."), "raised RuntimeError: ends with a stop."),
        (RuntimeError("two\nlines \x1b[31mred"), "raised RuntimeError: two lines red."),
        (SystemExit(0), "raised SystemExit: 0."),
        (SystemExit(), "raised SystemExit."),
        (GeneratorExit(), "raised GeneratorExit."),
        (asyncio.CancelledError(), "raised CancelledError."),
        (TimeoutError("mine"), "raised TimeoutError: mine."),
        (ExceptionGroup("several", [ValueError("a")]), "raised ExceptionGroup: several (1 sub-exception)."),
        (_CustomBase("panic"), "raised _CustomBase: panic."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_a_checker_that_raises_is_incomplete_with_gate_error(
    kind: type[Says], timeout: float | None, error: BaseException, said: str
) -> None:
    result = run_check(kind(raising(error)), make_context(), timeout=timeout)
    assert result.complete is False
    assert result.code is ReasonCode.GATE_ERROR
    assert str(kind.__name__) in result.feedback
    assert_sentences(result.feedback)


@TIMEOUTS
def test_a_keyboard_interrupt_is_the_persons_and_goes_through(timeout: float | None) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_check(Says(raising(KeyboardInterrupt())), make_context(), timeout=timeout)


class LookAlike:
    complete = True
    feedback = None
    code = None


@TIMEOUTS
@KINDS
@pytest.mark.parametrize(
    "answer",
    [
        None,
        True,
        False,
        1,
        "ok",
        (True, "done"),
        {"complete": True},
        LookAlike(),
        SimpleNamespace(complete=True, feedback=None, code=None),
        TaskCompletionResult,
        TaskCompletionResult.ok,
    ],
    ids=lambda value: repr(value).split(" at 0x")[0],
)
def test_an_answer_of_another_type_is_a_gate_error(kind: type[Says], timeout: float | None, answer: object) -> None:
    result = run_check(kind(lambda: answer), make_context(), timeout=timeout)
    assert result.complete is False
    assert result.code is ReasonCode.GATE_ERROR
    assert str(kind.__name__) in (result.feedback or "")
    assert_sentences(result.feedback or "")


def test_the_feedback_shows_the_wrong_answer_cut_and_without_control_characters() -> None:
    feedback = run_check(Says(lambda: ["\x1b[31mred", "x" * 500]), make_context()).feedback or ""
    assert "\x1b" not in feedback
    assert_sentences(feedback)
    assert len(feedback) < 300


def test_an_object_that_pretends_to_be_a_result_is_a_gate_error() -> None:
    pretender = Mock(spec=TaskCompletionResult.incomplete("Go on."))
    assert isinstance(pretender, TaskCompletionResult)
    assert pretender.complete
    assert run_check(Says(lambda: pretender), make_context()).code is ReasonCode.GATE_ERROR


def test_a_result_whose_complete_was_forced_to_something_else_is_a_gate_error() -> None:
    forced = TaskCompletionResult.incomplete("Go on.")
    object.__setattr__(forced, "complete", "no")
    result = run_check(Says(lambda: forced), make_context())
    assert result.complete is False
    assert result.code is ReasonCode.GATE_ERROR


def test_a_subclass_of_the_result_is_a_result() -> None:
    class Detailed(TaskCompletionResult):
        pass

    mine = Detailed(complete=True, feedback="Fine.")
    assert run_check(Says(lambda: mine), make_context()) is mine


@TIMEOUTS
@pytest.mark.parametrize(
    "thing",
    [object(), SimpleNamespace(check="not callable"), 7, None],
    ids=lambda value: repr(value).split(" at 0x")[0],
)
def test_something_that_is_no_checker_and_no_function_is_refused(timeout: float | None, thing: Any) -> None:
    with pytest.raises(TypeError) as caught:
        run_check(thing, make_context(), timeout=timeout)
    assert "is not a checker" in str(caught.value)


@TIMEOUTS
def test_a_class_instead_of_an_instance_is_refused(timeout: float | None) -> None:
    with pytest.raises(TypeError, match="pass an instance"):
        run_check(Says, make_context(), timeout=timeout)  # type: ignore[arg-type]


@TIMEOUTS
def test_a_plain_function_is_a_checker(timeout: float | None) -> None:
    def is_there(context: TaskCompletionContext) -> bool:
        """The output is there."""
        return context.tentative_output == "there"

    async def is_there_later(context: TaskCompletionContext) -> bool:
        return is_there(context)

    for function in (is_there, is_there_later):
        assert run_check(function, make_context(output="there"), timeout=timeout).complete is True
    result = run_check(is_there, make_context(output=None), timeout=timeout)
    assert (result.complete, result.feedback) == (False, "is_there is not met: The output is there.")


@TIMEOUTS
def test_a_function_that_forgets_to_answer_is_a_gate_error(timeout: float | None) -> None:
    assert run_check(lambda context: None, make_context(), timeout=timeout).code is ReasonCode.GATE_ERROR  # type: ignore[arg-type, return-value]


class _BrokenRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_what_is_refused_need_not_have_a_description() -> None:
    with pytest.raises(TypeError, match="an object of type _BrokenRepr is not a checker"):
        run_check(_BrokenRepr(), make_context())  # type: ignore[arg-type]


class _UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no str")


class _BrokenName:
    @property
    def name(self) -> str:
        raise RuntimeError("no name")

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        raise ValueError("broken")


class _BrokenCheck:
    @property
    def check(self) -> Any:
        raise RuntimeError("no check")


@TIMEOUTS
@pytest.mark.parametrize(
    "broken",
    [Says(_BrokenRepr), Says(raising(_UnspeakableError())), _BrokenName(), _BrokenCheck()],
    ids=["the answer has no repr", "the error has no text", "the name raises", "looking up check raises"],
)
def test_even_a_checker_that_can_not_be_described_is_a_gate_error(timeout: float | None, broken: Any) -> None:
    result = run_check(broken, make_context(), timeout=timeout)
    assert result.complete is False
    assert result.code is ReasonCode.GATE_ERROR


class TestNames:
    def test_a_checker_is_called_by_its_name_or_by_its_class(self) -> None:
        assert checker_name(SimpleNamespace(name="unit tests")) == "unit tests"
        assert checker_name(SimpleNamespace(name="")) == "SimpleNamespace"
        assert checker_name(SimpleNamespace(name=7)) == "SimpleNamespace"
        assert checker_name(Says(int)) == "Says"
        assert checker_name("PlanBasedChecker") == "PlanBasedChecker"
        assert checker_name("") == "str"

    def test_the_feedback_calls_a_named_checker_by_its_name(self) -> None:
        named = Says(raising(ValueError("x")))
        named.name = "unit tests"  # type: ignore[attr-defined]
        assert "the completion check unit tests raised" in (run_check(named, make_context()).feedback or "")


class Hanging:
    """Waits for an event that the test owns, so that nothing is left behind at the end of the test."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()
        self.left = threading.Event()

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        self.entered.set()
        self.release.wait(HANG_GUARD)
        self.left.set()
        return TaskCompletionResult.ok("Too late.")


class TestTimeout:
    def test_a_check_that_hangs_is_abandoned_and_incomplete(self) -> None:
        hanging = Hanging()
        result = run_check(hanging, make_context(), timeout=0.05)
        assert not hanging.left.is_set()
        hanging.release.set()
        assert (result.complete, result.code) == (False, ReasonCode.CHECK_TIMEOUT)
        assert "0.05 seconds" in (result.feedback or "")
        assert_sentences(result.feedback)

    def test_an_async_check_that_hangs_is_abandoned_and_incomplete(self) -> None:
        release = threading.Event()

        @checker
        async def hangs(context: TaskCompletionContext) -> TaskCompletionResult:
            while not release.is_set():
                await asyncio.sleep(0.01)
            return TaskCompletionResult.ok()

        result = run_check(hangs, make_context(), timeout=0.05)
        release.set()
        assert result.code is ReasonCode.CHECK_TIMEOUT
        assert_sentences(result.feedback or "")

    def test_the_answer_that_comes_after_the_timeout_changes_nothing(self) -> None:
        hanging = Hanging()
        result = run_check(hanging, make_context(), timeout=0.01)
        hanging.release.set()
        assert hanging.left.wait(HANG_GUARD)
        assert result.code is ReasonCode.CHECK_TIMEOUT

    @KINDS
    def test_without_a_timeout_the_check_is_made_in_the_callers_own_thread(self, kind: type[Says]) -> None:
        seen: list[int] = []
        run_check(kind(lambda: seen.append(threading.get_ident())), make_context())
        assert seen == [threading.get_ident()]

    def test_with_a_timeout_the_check_is_made_in_a_daemon_thread_that_names_it(self) -> None:
        seen: list[threading.Thread] = []
        run_check(Says(lambda: seen.append(threading.current_thread())), make_context(), timeout=HANG_GUARD)
        assert seen[0].daemon is True
        assert seen[0].name == "check Says"

    def test_a_command_of_an_abandoned_check_is_killed(self, tmp_path: Path) -> None:
        pid_file = tmp_path / "pid"
        # The shell writes its own id and then becomes the command that hangs.
        script = f"echo $$ > {pid_file}.part; mv {pid_file}.part {pid_file}; exec sleep 600"
        hanging = CommandChecker(["sh", "-c", script])
        # A machine may be too busy to start a shell in the first, short time: then a longer one is given.
        for timeout in (0.3, 2.0, HANG_GUARD):
            result = run_check(hanging, make_context(), timeout=timeout)
            assert result.code is ReasonCode.CHECK_TIMEOUT
            if pid_file.exists():
                break
        pid = int(pid_file.read_text())
        assert wait_until(lambda: not alive(pid))

    def test_a_person_who_interrupts_the_waiting_abandons_the_check(self) -> None:
        abandoned = threading.Event()

        class Interrupted:
            def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
                os.kill(os.getpid(), signal.SIGINT)
                if wait_until(cancelled):
                    abandoned.set()
                return TaskCompletionResult.ok()

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                run_check(Interrupted(), make_context(), timeout=HANG_GUARD)
        finally:
            signal.signal(signal.SIGINT, before)
        assert abandoned.wait(HANG_GUARD)

    def test_members_of_a_composite_are_not_asked_any_more_once_it_was_abandoned(self) -> None:
        asked: list[str] = []

        def first(context: TaskCompletionContext) -> bool:
            asked.append("first")
            return wait_until(cancelled)

        def second(context: TaskCompletionContext) -> bool:
            asked.append("second")
            return True

        # A machine may be too busy to ask the first in the first, short time: then a longer one is given.
        for timeout in (0.05, 2.0, HANG_GUARD / 2):
            result = run_check(CompositeChecker((first, second)), make_context(), timeout=timeout)
            assert result.code is ReasonCode.CHECK_TIMEOUT
            for worker in threading.enumerate():
                if worker.name == "check CompositeChecker":
                    worker.join(HANG_GUARD)
            if asked:
                break
        assert asked == ["first"]


SETTING: contextvars.ContextVar[str] = contextvars.ContextVar("SETTING", default="unset")


class TestSurroundings:
    @TIMEOUTS
    @KINDS
    def test_context_variables_of_the_caller_are_visible_in_the_check(
        self, kind: type[Says], timeout: float | None
    ) -> None:
        seen: list[str] = []
        token = SETTING.set("from the caller")
        try:
            run_check(kind(lambda: seen.append(SETTING.get())), make_context(), timeout=timeout)
        finally:
            SETTING.reset(token)
        assert seen == ["from the caller"]

    @TIMEOUTS
    @KINDS
    def test_what_a_check_sets_stays_in_the_check(self, kind: type[Says], timeout: float | None) -> None:
        run_check(kind(lambda: SETTING.set("from the check")), make_context(), timeout=timeout)
        assert SETTING.get() == "unset"

    @TIMEOUTS
    @KINDS
    def test_code_inside_a_check_can_tell_that_it_is(self, kind: type[Says], timeout: float | None) -> None:
        seen: list[bool] = []
        assert is_checking() is False
        run_check(kind(lambda: seen.append(is_checking())), make_context(), timeout=timeout)
        assert seen == [True]
        assert is_checking() is False


class TestAsyncCheckers:
    def test_a_checker_with_a_coroutine_method_is_an_async_checker(self) -> None:
        assert isinstance(SaysAsync(int), AsyncTaskCompletionChecker)

    @TIMEOUTS
    def test_an_async_check_can_be_asked_while_a_loop_is_running_in_this_thread(self, timeout: float | None) -> None:
        async def main() -> TaskCompletionResult:
            return run_check(SaysAsync(lambda: TaskCompletionResult.ok("Awaited.")), make_context(), timeout=timeout)

        assert asyncio.run(main()) == TaskCompletionResult.ok("Awaited.")

    @pytest.mark.parametrize(
        "error",
        [ValueError("x"), SystemExit(0), asyncio.CancelledError()],
        ids=lambda value: repr(value).split(" at 0x")[0],
    )
    def test_an_async_check_that_raises_while_a_loop_is_running_is_a_gate_error(self, error: BaseException) -> None:
        async def main() -> TaskCompletionResult:
            return run_check(SaysAsync(raising(error)), make_context())

        result = asyncio.run(main())
        assert result.code is ReasonCode.GATE_ERROR
        assert type(error).__name__ in (result.feedback or "")

    def test_a_keyboard_interrupt_of_an_async_check_goes_through_a_running_loop(self) -> None:
        async def main() -> TaskCompletionResult:
            return run_check(SaysAsync(raising(KeyboardInterrupt())), make_context())

        with pytest.raises(KeyboardInterrupt):
            asyncio.run(main())

    def test_context_variables_reach_an_async_check_while_a_loop_is_running(self) -> None:
        async def main() -> list[object]:
            SETTING.set("outer")
            seen: list[object] = []
            run_check(SaysAsync(lambda: seen.append((SETTING.get(), is_checking()))), make_context())
            return seen

        assert asyncio.run(main()) == [("outer", True)]

    def test_an_awaitable_that_is_no_coroutine_is_awaited_too(self) -> None:
        class Later:
            def __await__(self) -> Any:
                yield from asyncio.sleep(0).__await__()
                return TaskCompletionResult.ok("Later.")

        assert run_check(Says(Later), make_context()) == TaskCompletionResult.ok("Later.")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return state.rsplit(")", 1)[1].split()[0] != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = HANG_GUARD) -> bool:
    patience = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return True
        patience.wait(0.02)
    return condition()
