"""Whatever happens to a command, no process of its group is left behind."""

from __future__ import annotations

import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import donewhen
from donewhen.foundation.cancellation import cancellable
from donewhen.foundation.process import CommandResult, run_command

GUARD = 60.0
"""Seconds; only a hang reaches it."""
SOURCE = Path(donewhen.__file__).parents[1]


def is_running(pid: int) -> bool:
    """Whether the process still does anything; one that is dead and only not reaped yet does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if Path("/proc/self/stat").exists():
        with suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def is_gone(pid: int) -> bool:
    """The kernel ends a killed process in its own time: wait for it, as long as it takes."""
    return eventually(lambda: not is_running(pid))


def eventually(holds: Callable[[], bool]) -> bool:
    give_up = time.monotonic() + GUARD / 4
    while not holds():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def watch() -> Iterator[Callable[[int | str], int]]:
    """Remembers process ids, so that a failing test leaves nothing running either."""
    seen: list[int] = []

    def remember(pid: int | str) -> int:
        seen.append(int(pid))
        return seen[-1]

    yield remember
    for pid in seen:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


def timed_out(script: str, cwd: Path, words: int) -> tuple[CommandResult, list[str]]:
    """Run ``script`` into its time limit, but not before it has printed that many words, however slow the machine."""
    for timeout in (0.4, 2.0, 10.0, 40.0):
        result = run_command(["/bin/sh", "-c", script], cwd=cwd, timeout=timeout)
        if len(printed := result.output.split()) >= words:
            return result, printed
    raise AssertionError(f"the script never got as far as it should: {result}")


def wait_for(path: Path) -> str:
    assert eventually(path.exists), f"{path.name} never appeared"
    return path.read_text().strip()


# --- time limit


def test_a_command_that_outlives_its_time_limit_is_killed(tmp_path: Path, watch: Callable[[int | str], int]) -> None:
    result, (pid,) = timed_out("echo $$; exec sleep 100", tmp_path, 1)
    assert (result.ending, result.succeeded) == ("timed_out", False)
    assert result.exit_code in (-signal.SIGTERM, -signal.SIGKILL)
    assert result.seconds < GUARD
    assert not is_running(watch(pid))


def test_the_time_limit_kills_children_and_grandchildren(tmp_path: Path, watch: Callable[[int | str], int]) -> None:
    script = "sh -c 'sleep 100 & echo $! $$; wait' & echo $$; wait"
    result, printed = timed_out(script, tmp_path, 3)
    pids = [watch(word) for word in printed]
    assert result.ending == "timed_out"
    assert len(set(pids)) == 3
    assert all(is_gone(pid) for pid in pids)


def test_a_command_that_ignores_the_request_to_end_is_killed(tmp_path: Path, watch: Callable[[int | str], int]) -> None:
    result, (pid,) = timed_out("trap '' TERM; echo $$; while :; do sleep 1; done", tmp_path, 1)
    assert (result.ending, result.exit_code) == ("timed_out", -signal.SIGKILL)
    assert not is_running(watch(pid))


def test_a_child_that_ignores_the_request_is_killed_although_its_parent_obeys(
    tmp_path: Path, watch: Callable[[int | str], int]
) -> None:
    script = "(trap '' TERM; echo deaf; while :; do sleep 1; done) & echo $!; wait"
    result, printed = timed_out(script, tmp_path, 2)
    (child,) = (watch(word) for word in printed if word != "deaf")
    assert result.ending == "timed_out"
    assert is_gone(child)


def test_a_stopped_command_is_killed(tmp_path: Path, watch: Callable[[int | str], int]) -> None:
    result, (pid,) = timed_out("echo $$; kill -STOP $$; sleep 100", tmp_path, 1)
    assert result.ending == "timed_out"
    assert not is_running(watch(pid))


def test_a_command_is_first_asked_to_end_so_that_it_can_tidy_up(tmp_path: Path) -> None:
    script = "trap ': > tidied; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    for _ in range(5):  # a machine may be too busy to let it react before it is killed; not five times
        result, _ = timed_out(script, tmp_path, 1)
        assert (result.ending, result.succeeded) == ("timed_out", False)
        if result.exit_code == 0:
            break
    assert (tmp_path / "tidied").exists()


def test_what_was_printed_before_the_time_limit_is_kept(tmp_path: Path) -> None:
    result, printed = timed_out("echo so far; sleep 100", tmp_path, 2)
    assert printed == ["so", "far"]
    assert result.ending == "timed_out"


def test_a_command_that_never_stops_printing_is_stopped_by_its_time_limit(tmp_path: Path) -> None:
    script = "echo y; cat /dev/zero & cat /dev/zero & cat /dev/zero & exec cat /dev/zero"
    result, printed = timed_out(script, tmp_path, 1)
    assert result.ending == "timed_out"
    assert printed[0] == "y"
    assert result.seconds < GUARD


def test_a_silent_command_that_closed_its_output_is_stopped_by_its_time_limit(tmp_path: Path) -> None:
    result = run_command(["/bin/sh", "-c", "exec >&- 2>&-; sleep 100"], cwd=tmp_path, timeout=0.3)
    assert result.ending == "timed_out"
    assert result.seconds < GUARD


# --- the command ends, something of it stays


def test_a_background_child_is_killed_when_the_command_has_ended(
    tmp_path: Path, watch: Callable[[int | str], int]
) -> None:
    result = run_command(["/bin/sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $!"], cwd=tmp_path, timeout=GUARD)
    assert result.succeeded
    assert is_gone(watch(result.output))


def test_a_background_child_that_ignores_requests_is_killed_when_the_command_has_ended(
    tmp_path: Path, watch: Callable[[int | str], int]
) -> None:
    script = "(trap '' TERM HUP INT; exec sleep 100) & echo $!"
    result = run_command(["/bin/sh", "-c", script], cwd=tmp_path, timeout=GUARD)
    assert is_gone(watch(result.output))


def test_a_child_that_was_daemonised_inside_the_group_is_killed(
    tmp_path: Path, watch: Callable[[int | str], int]
) -> None:
    # Forked twice, so that it is nobody's child any more when the command ends.
    result = run_command(["/bin/sh", "-c", "(sleep 100 & echo $!)"], cwd=tmp_path, timeout=GUARD)
    assert result.succeeded
    assert is_gone(watch(result.output))


def test_a_background_child_that_holds_the_output_open_does_not_prolong_the_command(
    tmp_path: Path, watch: Callable[[int | str], int]
) -> None:
    result = run_command(["/bin/sh", "-c", "sleep 100 & echo $!; exit 5"], cwd=tmp_path, timeout=90)
    assert (result.ending, result.exit_code) == ("exited", 5)
    assert result.seconds < GUARD
    assert is_gone(watch(result.output))


def test_a_background_child_that_never_stops_printing_does_not_prolong_the_command(tmp_path: Path) -> None:
    script = "(while :; do echo y; done) & exit 5"
    result = run_command(["/bin/sh", "-c", script], cwd=tmp_path, timeout=90)
    assert (result.ending, result.exit_code) == ("exited", 5)
    assert result.seconds < GUARD


def test_killing_the_group_does_not_touch_ourselves(tmp_path: Path) -> None:
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        result, _ = timed_out("echo x; sleep 100", tmp_path, 1)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert result.ending == "timed_out"
    assert received == []


# --- whoever waits gives up


def cancelled_while_running(script: str, folder: Path, levels: int = 1) -> CommandResult:
    """Run ``script``, and cancel it once it has made the file ``ready``."""
    surroundings = contextvars.copy_context()
    event = surroundings.run(cancellable)
    for _ in range(levels - 1):
        surroundings = surroundings.run(contextvars.copy_context)
        surroundings.run(cancellable)
    results: list[CommandResult] = []

    def work() -> None:
        results.append(run_command(["/bin/sh", "-c", script], cwd=folder, timeout=90))

    thread = threading.Thread(target=surroundings.run, args=(work,), daemon=True)
    thread.start()
    wait_for(folder / "ready")
    event.set()
    thread.join(GUARD)
    assert results, "the command was not stopped"
    return results[0]


@pytest.mark.parametrize("levels", [1, 3])
def test_a_cancelled_command_is_killed_with_its_children(
    tmp_path: Path, watch: Callable[[int | str], int], levels: int
) -> None:
    result = cancelled_while_running("sleep 100 & echo $$ $!; : > ready; wait", tmp_path, levels)
    assert (result.ending, result.succeeded) == ("cancelled", False)
    assert all(is_gone(watch(pid)) for pid in result.output.split())


def test_a_cancelled_command_that_prints_without_end_is_stopped(tmp_path: Path) -> None:
    assert cancelled_while_running(": > ready; while :; do echo y; done", tmp_path).ending == "cancelled"


def test_a_cancelled_command_that_closed_its_output_is_stopped(tmp_path: Path) -> None:
    assert cancelled_while_running("exec >&- 2>&-; : > ready; sleep 100", tmp_path).ending == "cancelled"


def test_cancelling_something_else_does_not_touch_the_command(tmp_path: Path) -> None:
    contextvars.copy_context().run(cancellable).set()
    assert run_command(["/bin/sh", "-c", "exit 0"], cwd=tmp_path, timeout=GUARD).succeeded


# --- the process that waits is interrupted


RUNNER = """
import signal, sys
from pathlib import Path
from donewhen.foundation.process import run_command

signal.signal(signal.SIGINT, signal.default_int_handler)
run_command(["/bin/sh", "-c", sys.argv[1]], cwd=Path.cwd(), timeout=90)
"""


def start_runner(script: str, folder: Path, program: str = RUNNER) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", program, script],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def test_ctrl_c_leaves_no_child_behind(tmp_path: Path, watch: Callable[[int | str], int]) -> None:
    with start_runner("sleep 100 & echo $$ $! > pids.new; mv pids.new pids; wait", tmp_path) as runner:
        watch(runner.pid)
        pids = [watch(pid) for pid in wait_for(tmp_path / "pids").split()]
        assert len(pids) == 2
        runner.send_signal(signal.SIGINT)
        assert runner.wait(GUARD) == -signal.SIGINT
    assert all(is_gone(pid) for pid in pids)


STARTING = """
import os, signal, subprocess, sys, time
from pathlib import Path
from donewhen.foundation.process import run_command

signal.signal(signal.SIGINT, signal.default_int_handler)
start = subprocess.Popen._execute_child

def interrupted_start(*arguments, **options):
    start(*arguments, **options)
    while not Path("pid").exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

subprocess.Popen._execute_child = interrupted_start
run_command(["/bin/sh", "-c", sys.argv[1]], cwd=Path.cwd(), timeout=90)
"""


def test_ctrl_c_at_the_moment_the_command_starts_leaves_no_child_behind(
    tmp_path: Path, watch: Callable[[int | str], int]
) -> None:
    # The child runs already, and the standard library has not yet said so.
    with start_runner("echo $$ > pid.new; mv pid.new pid; exec sleep 100", tmp_path, STARTING) as runner:
        watch(runner.pid)
        assert runner.wait(GUARD) == -signal.SIGINT
    assert is_gone(watch(wait_for(tmp_path / "pid")))


def test_an_impatient_second_ctrl_c_leaves_no_child_behind(tmp_path: Path, watch: Callable[[int | str], int]) -> None:
    # The child hears the request to end and stays; the second interrupt comes while we wait for it to go.
    script = "trap ': > heard' TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.05; done"
    with start_runner(script, tmp_path) as runner:
        watch(runner.pid)
        pid = watch(wait_for(tmp_path / "pid"))
        runner.send_signal(signal.SIGINT)
        wait_for(tmp_path / "heard")
        runner.send_signal(signal.SIGINT)
        assert runner.wait(GUARD) == -signal.SIGINT
    assert is_gone(pid)


LOST_STATUS = """
import signal, sys
from pathlib import Path
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.process import run_command

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
try:
    print(run_command(["/bin/sh", "-c", sys.argv[1]], cwd=Path.cwd(), timeout=90).succeeded)
except DonewhenError:
    print("refused")
"""


# Where SIGCHLD is ignored (some supervisors pass that on to what they start), the system throws exit statuses away.


def answer_with_lost_status(script: str, folder: Path) -> str:
    with start_runner(script, folder, LOST_STATUS) as runner:
        try:
            answer, _ = runner.communicate(timeout=GUARD)
        finally:
            runner.kill()
    return answer.decode().strip()


@pytest.mark.parametrize("status", [0, 3])
def test_a_command_whose_exit_status_is_lost_has_not_succeeded(tmp_path: Path, status: int) -> None:
    assert answer_with_lost_status(f"exit {status}", tmp_path) in ("False", "refused")


def test_a_command_whose_exit_status_is_lost_leaves_nothing_behind(
    tmp_path: Path, watch: Callable[[int | str], int]
) -> None:
    answer_with_lost_status("sleep 100 & echo $! > pid.new; mv pid.new pid", tmp_path)
    assert is_gone(watch(wait_for(tmp_path / "pid")))
