"""Asking a checker from an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from donewhen.completion import (
    AtLeast,
    CommandChecker,
    CompositeChecker,
    Not,
    ReasonCode,
    TaskCompletionContext,
    TaskCompletionResult,
    arun_check,
    checker,
    run_check,
)
from donewhen.completion.checking import is_checking
from donewhen.testing import make_context
from sentences import assert_sentences

HANG_GUARD = 300.0


class Says:
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


class _CustomBase(BaseException):
    pass


def raising(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main, HANG_GUARD))


KINDS = pytest.mark.parametrize("kind", [Says, SaysAsync], ids=["plain", "async"])
TIMEOUTS = pytest.mark.parametrize("timeout", [None, HANG_GUARD], ids=["waited for", "with a timeout"])


@TIMEOUTS
@KINDS
@pytest.mark.parametrize("result", [TaskCompletionResult.ok("Fine."), TaskCompletionResult.incomplete("Go on.")])
def test_the_answer_of_a_checker_comes_back_unchanged(
    kind: type[Says], timeout: float | None, result: TaskCompletionResult
) -> None:
    assert run(arun_check(kind(lambda: result), make_context(), timeout=timeout)) is result


@TIMEOUTS
@KINDS
@pytest.mark.parametrize(
    "error",
    [
        ValueError("no luck"),
        SystemExit(0),
        GeneratorExit(),
        asyncio.CancelledError(),
        TimeoutError("mine"),
        _CustomBase("panic"),
    ],
    ids=lambda value: repr(value).split(" at 0x")[0],
)
def test_a_checker_that_raises_is_incomplete_with_gate_error(
    kind: type[Says], timeout: float | None, error: BaseException
) -> None:
    async def main() -> TaskCompletionResult:
        # A task of its own, so that a leaking CancelledError is told apart from a cancelled test.
        asked = asyncio.ensure_future(arun_check(kind(raising(error)), make_context(), timeout=timeout))
        await asyncio.wait({asked})
        assert not asked.cancelled(), "the caller was cancelled by the checker it asked"
        return asked.result()

    result = run(main())
    assert result.complete is False
    assert result.code is ReasonCode.GATE_ERROR
    assert type(error).__name__ in (result.feedback or "")


@KINDS
def test_a_keyboard_interrupt_goes_through(kind: type[Says]) -> None:
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(arun_check(kind(raising(KeyboardInterrupt())), make_context()))


@KINDS
@pytest.mark.parametrize(
    "answer", [None, True, (True, "done"), Mock(spec=TaskCompletionResult.ok())], ids=lambda a: type(a)
)
def test_an_answer_of_another_type_is_a_gate_error(kind: type[Says], answer: object) -> None:
    result = run(arun_check(kind(lambda: answer), make_context()))
    assert result.complete is False
    assert result.code is ReasonCode.GATE_ERROR


def test_something_that_is_no_checker_and_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="is not a checker"):
        run(arun_check(object(), make_context()))  # type: ignore[arg-type]


def test_a_plain_function_is_a_checker() -> None:
    assert run(arun_check(lambda context: True, make_context())).complete is True
    assert run(arun_check(lambda context: False, make_context())).complete is False


def test_a_checker_whose_check_can_not_even_be_looked_up_is_a_gate_error() -> None:
    class Broken:
        @property
        def check(self) -> Any:
            raise RuntimeError("no check")

    assert run(arun_check(Broken(), make_context())).code is ReasonCode.GATE_ERROR


def test_the_loop_goes_on_while_a_plain_checker_works() -> None:
    proceed = threading.Event()

    @checker
    def waits_for_the_loop(context: TaskCompletionContext) -> TaskCompletionResult:
        # Can only be let go by the loop that is waiting for this very check.
        return TaskCompletionResult.ok() if proceed.wait(HANG_GUARD) else TaskCompletionResult.incomplete("blocked")

    async def main() -> TaskCompletionResult:
        asked = asyncio.ensure_future(arun_check(waits_for_the_loop, make_context()))
        await asyncio.sleep(0.01)
        assert not asked.done()
        proceed.set()
        return await asked

    assert run(main()).complete is True


def test_a_coroutine_check_is_awaited_on_the_callers_own_loop() -> None:
    async def main() -> tuple[object, object]:
        seen: list[object] = []
        await arun_check(SaysAsync(lambda: seen.append(asyncio.get_running_loop())), make_context())
        return seen[0], asyncio.get_running_loop()

    theirs, ours = run(main())
    assert theirs is ours


class Shared:
    """What belongs to one loop: a lock that refuses to be used on another."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.loops: list[object] = []

    async def use(self) -> bool:
        await asyncio.sleep(0)
        self.loops.append(asyncio.get_running_loop())
        return asyncio.get_running_loop() is self.loop


def by_decorator(shared: Shared) -> Any:
    @checker
    async def uses_it(context: TaskCompletionContext) -> bool:
        return await shared.use()

    return uses_it


def by_method(shared: Shared) -> Any:
    class Uses:
        async def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
            return TaskCompletionResult(await shared.use())

    return Uses()


def by_function(shared: Shared) -> Any:
    async def uses_it(context: TaskCompletionContext) -> bool:
        return await shared.use()

    return uses_it


def by_awaitable(shared: Shared) -> Any:
    return Says(lambda: _as_result(shared))


async def _as_result(shared: Shared) -> TaskCompletionResult:
    return TaskCompletionResult(await shared.use())


@TIMEOUTS
@pytest.mark.parametrize("make", [by_decorator, by_method, by_function, by_awaitable])
@pytest.mark.parametrize(
    "around",
    [
        lambda one: one,
        lambda one: CompositeChecker((one, one)),
        lambda one: CompositeChecker((CompositeChecker((one,), all_must_pass=False), one), collect_all=True),
        lambda one: AtLeast(1, [one]),
        lambda one: Not(Not(one)),
    ],
    ids=["alone", "all of", "nested", "at least", "not"],
)
def test_whatever_is_async_runs_on_the_callers_loop(
    make: Callable[[Shared], Any], around: Callable[[Any], Any], timeout: float | None
) -> None:
    async def main() -> tuple[TaskCompletionResult, Shared]:
        shared = Shared()
        return await arun_check(around(make(shared)), make_context(), timeout=timeout), shared

    result, shared = run(main())
    assert result.complete is True, result.feedback
    assert shared.loops
    assert set(shared.loops) == {shared.loop}


def test_a_lock_can_be_shared_by_checks_and_the_program() -> None:
    async def main() -> list[TaskCompletionResult]:
        lock = asyncio.Lock()

        @checker
        async def takes_it(context: TaskCompletionContext) -> bool:
            async with lock:
                await asyncio.sleep(0)
                return True

        async with lock:
            asked = [asyncio.ensure_future(arun_check(CompositeChecker((takes_it,)), make_context())) for _ in range(4)]
            await asyncio.sleep(0.01)
            assert not any(one.done() for one in asked)
        return [await one for one in asked]

    assert [one.complete for one in run(main())] == [True] * 4


def test_an_async_check_that_asks_another_one_and_blocks_its_loop_does_not_deadlock() -> None:
    @checker
    async def inner(context: TaskCompletionContext) -> bool:
        await asyncio.sleep(0)
        return True

    class Outer:
        async def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
            for timeout in (None, HANG_GUARD):
                assert run_check(CompositeChecker((inner,)), context, timeout=timeout).complete
            return CompositeChecker((inner,)).check(context)

    for checked in (Outer(), CompositeChecker((Outer(),))):
        assert run(arun_check(checked, make_context())).complete is True


@pytest.mark.parametrize("error", [SystemExit(0), _CustomBase("panic"), ValueError("no luck"), TimeoutError("mine")])
def test_an_error_on_the_callers_loop_is_a_gate_error_and_ends_no_loop(error: BaseException) -> None:
    @checker
    async def raises(context: TaskCompletionContext) -> bool:
        await asyncio.sleep(0)
        raise error

    async def main() -> list[TaskCompletionResult]:
        return [await arun_check(CompositeChecker((raises,)), make_context()) for _ in range(2)]

    assert [one.code for one in run(main())] == [ReasonCode.GATE_ERROR] * 2


def test_an_abandoned_check_is_cancelled_on_the_callers_loop() -> None:
    cancelled: list[bool] = []

    @checker
    async def hangs(context: TaskCompletionContext) -> bool:
        try:
            await asyncio.sleep(HANG_GUARD)
        finally:
            cancelled.append(True)
        return True

    async def main() -> TaskCompletionResult:
        result = await arun_check(CompositeChecker((hangs,)), make_context(), timeout=0.05)
        while not cancelled:
            await asyncio.sleep(0.01)
        return result

    assert run(main()).code is ReasonCode.CHECK_TIMEOUT


def test_a_function_that_returns_a_coroutine_is_awaited_too() -> None:
    @checker
    async def later(context: TaskCompletionContext) -> bool:
        """Something is missing."""
        await asyncio.sleep(0)
        return False

    assert run(arun_check(later, make_context())).feedback == "later is not met: Something is missing."


def test_a_plain_check_that_hangs_is_abandoned_and_incomplete() -> None:
    release = threading.Event()
    hanging = Says(lambda: release.wait(HANG_GUARD))
    result = run(arun_check(hanging, make_context(), timeout=0.05))
    release.set()
    assert (result.complete, result.code) == (False, ReasonCode.CHECK_TIMEOUT)
    assert "0.05 seconds" in (result.feedback or "")
    assert_sentences(result.feedback)


def test_a_coroutine_check_that_hangs_is_cancelled_and_incomplete() -> None:
    cancelled: list[bool] = []

    class Hanging:
        async def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
            try:
                await asyncio.sleep(HANG_GUARD)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise
            return TaskCompletionResult.ok()

    async def main() -> TaskCompletionResult:
        result = await arun_check(Hanging(), make_context(), timeout=0.05)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert cancelled == [True]
        return result

    result = run(main())
    assert result.code is ReasonCode.CHECK_TIMEOUT
    assert "0.05 seconds" in (result.feedback or "")
    assert_sentences(result.feedback or "")


def test_cancelling_the_caller_cancels_a_coroutine_check() -> None:
    cancelled: list[bool] = []
    started: list[bool] = []

    class Hanging:
        async def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
            started.append(True)
            try:
                await asyncio.sleep(HANG_GUARD)
            finally:
                cancelled.append(True)
            return TaskCompletionResult.ok()

    async def main() -> None:
        asked = asyncio.ensure_future(arun_check(Hanging(), make_context()))
        while not started:
            await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        # Here and not later: the end of the loop would cancel it anyway.
        assert cancelled == [True]

    run(main())


def hanging_command(pid_file: Path) -> CommandChecker:
    return CommandChecker(["sh", "-c", f"echo $$ > {pid_file}.part; mv {pid_file}.part {pid_file}; exec sleep 600"])


def test_a_command_is_killed_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    async def main() -> None:
        asked = asyncio.ensure_future(arun_check(hanging_command(pid_file), make_context()))
        while not pid_file.exists():
            await asyncio.sleep(0.01)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    run(main())
    pid = int(pid_file.read_text())
    assert wait_until(lambda: not alive(pid))


def test_a_command_is_killed_when_its_check_times_out(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    # A machine may be too busy to start a shell in the first, short time: then a longer one is given.
    for timeout in (0.3, 2.0, HANG_GUARD / 2):
        result = run(arun_check(hanging_command(pid_file), make_context(), timeout=timeout))
        assert result.code is ReasonCode.CHECK_TIMEOUT
        if pid_file.exists():
            break
    pid = int(pid_file.read_text())
    assert wait_until(lambda: not alive(pid))


def test_a_check_that_ends_after_its_loop_was_closed_harms_nobody() -> None:
    release = threading.Event()
    workers: list[threading.Thread] = []

    def hang() -> TaskCompletionResult:
        workers.append(threading.current_thread())
        release.wait(HANG_GUARD)
        return TaskCompletionResult.ok()

    assert run(arun_check(Says(hang), make_context(), timeout=0.05)).code is ReasonCode.CHECK_TIMEOUT
    release.set()
    # An exception in the thread would fail this test: warnings are errors here.
    workers[0].join(HANG_GUARD)
    assert not workers[0].is_alive()


SETTING: contextvars.ContextVar[str] = contextvars.ContextVar("SETTING_ASYNC", default="unset")


@KINDS
def test_context_variables_of_the_caller_are_visible_and_those_of_the_check_stay_in_it(kind: type[Says]) -> None:
    async def main() -> list[object]:
        SETTING.set("from the caller")
        seen: list[object] = []

        def act() -> TaskCompletionResult:
            seen.append((SETTING.get(), is_checking()))
            SETTING.set("from the check")
            return TaskCompletionResult.ok()

        await arun_check(kind(act), make_context())
        seen.append((SETTING.get(), is_checking()))
        return seen

    assert run(main()) == [("from the caller", True), ("from the caller", False)]


def test_many_checks_can_be_asked_at_once() -> None:
    gate = threading.Barrier(5)

    def meet() -> TaskCompletionResult:
        gate.wait(HANG_GUARD)
        return TaskCompletionResult.ok()

    async def main() -> list[TaskCompletionResult]:
        return await asyncio.gather(*(arun_check(Says(meet), make_context()) for _ in range(5)))

    assert [one.complete for one in run(main())] == [True] * 5


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


def wait_until(condition: Callable[[], bool]) -> bool:
    patience = threading.Event()
    for _ in range(int(HANG_GUARD / 0.02)):
        if condition():
            return True
        patience.wait(0.02)
    return condition()
