"""One process at a time, also when the holder dies: with real processes."""

from __future__ import annotations

import contextvars
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import donewhen.foundation.current_command as current_command_module
import donewhen.foundation.locks as locks_module
from donewhen.foundation.current_command import current_command, name_command
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.locks import LockedError, locked, locked_folder
from donewhen.foundation.notices import notices_to
from sentences import assert_sentences


@pytest.fixture(autouse=True)
def _no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that runs no verb, whatever this one has run before."""
    monkeypatch.setattr(current_command_module, "_command", contextvars.ContextVar("command", default=None))


HOLD = """
import sys
from pathlib import Path
from donewhen.foundation.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
print("free", flush=True)
"""


@contextmanager
def another_process(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A process that has said its first word; it goes on when it gets a line."""
    argv = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "held"
        try:
            yield process
        finally:
            process.kill()


def test_a_lock_is_taken_and_left_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "deep" / "one.lock"
    taken = []
    for _ in range(3):
        with locked(path, wait=0):
            taken.append(path.read_text())
    assert taken == [str(os.getpid())] * 3
    assert path.exists()


def test_two_locks_do_not_know_each_other(tmp_path: Path) -> None:
    with locked(tmp_path / "a", wait=0), locked(tmp_path / "b", wait=0):
        assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_a_lock_held_by_another_process_is_refused_with_its_process_id(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with another_process(HOLD, path) as holder:
        with pytest.raises(LockedError) as caught, locked(path, wait=0.05):
            pytest.fail("two have the lock")
        error = caught.value
        assert "0.05 seconds" in error.message
        assert str(holder.pid) in error.message
        assert_sentences(error.message)
        assert error.where == str(path)
        assert_sentences(error.next_step)
        assert (error.code, error.exit_code) == ("locked", ExitCode.INTERNAL)
        assert isinstance(error, DonewhenError)
        assert path.read_text() == str(holder.pid)


def test_a_lock_that_is_let_go_is_given_to_the_one_who_waits(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with another_process(HOLD, path) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        waiting = subprocess.Popen(
            [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with waiting:
            assert waiting.stdin is not None
            assert waiting.stdout is not None
            holder.stdin.write("\n")
            holder.stdin.flush()
            assert holder.stdout.readline().strip() == "free"
            assert waiting.stdout.readline().strip() == "held"
            assert path.read_text() == str(waiting.pid)
            waiting.stdin.write("\n")
            waiting.stdin.flush()
            assert waiting.stdout.readline().strip() == "free"
        with locked(path, wait=0):
            assert path.read_text() == str(os.getpid())


def test_a_holder_that_is_killed_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with another_process(HOLD, path) as holder:
        holder.send_signal(signal.SIGKILL)
        assert holder.wait() == -signal.SIGKILL
        with locked(path, wait=0):
            assert path.read_text() == str(os.getpid())


def test_a_program_started_by_the_holder_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    child = [sys.executable, "-c", "print('held', flush=True); import sys; sys.stdin.readline()"]
    with locked(path, wait=0):
        program = subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False, text=True)
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "held"
    try:
        with locked(path, wait=0):
            assert program.poll() is None
    finally:
        program.kill()
        program.communicate()


FORK = """
import os, sys
from pathlib import Path
from donewhen.foundation.locks import locked
with locked(Path(sys.argv[1])):
    if os.fork() == 0:
        sys.stdin.readline()
        os._exit(0)
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_forked_child_does_not_keep_the_lock_that_its_parent_has_let_go(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with another_process(FORK, path) as parent, locked(path, wait=0.05):
        assert parent.poll() is None


def test_threads_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(20):
            with locked(path):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 80
    assert set(most) == {1}


COUNT = """
import sys
from pathlib import Path
from donewhen.foundation.locks import locked
folder = Path(sys.argv[1])
for _ in range(25):
    with locked(folder / "one.lock"):
        count = folder / "count"
        count.write_text(str(int(count.read_text()) + 1))
"""


def test_processes_that_read_and_write_under_the_lock_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", COUNT, tmp_path]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert (tmp_path / "count").read_text() == "100"


def test_an_error_inside_passes_through_and_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with pytest.raises(ZeroDivisionError), locked(path, wait=0):
        raise ZeroDivisionError
    with locked(path, wait=0):
        assert path.read_text() == str(os.getpid())


def test_no_descriptor_is_left_over_also_when_the_lock_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    before = len(os.listdir("/dev/fd"))
    with locked(path, wait=0):
        for _ in range(3):
            with pytest.raises(LockedError), locked(path, wait=0):
                pytest.fail("two have the lock")
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("content", [b"", b"not a number", b"\xff\xfe", b"12 34"])
def test_a_holder_that_left_no_process_id_is_another_process(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "one.lock"
    with locked(path, wait=0):
        path.write_bytes(content)
        with pytest.raises(LockedError) as caught, locked(path, wait=0):
            pytest.fail("two have the lock")
    assert "0 seconds" in caught.value.message
    assert_sentences(caught.value.message)


def test_a_shorter_process_id_replaces_a_longer_one_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    path.write_text("123456789012345678")
    with locked(path, wait=0):
        assert path.read_text() == str(os.getpid())


def test_a_process_id_that_cannot_be_written_down_keeps_nobody_from_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    path = tmp_path / "one.lock"
    with locked(path, wait=0), pytest.raises(LockedError) as caught, locked(path, wait=0):
        pytest.fail("two have the lock")
    assert_sentences(caught.value)
    assert path.read_bytes() == b""


HOLD_FOLDER = HOLD.replace("locked(", "locked_folder(").replace("import locked", "import locked_folder")


def test_a_folder_can_carry_the_lock_itself_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    with another_process(HOLD_FOLDER, tmp_path) as holder:
        with (
            pytest.raises(LockedError) as caught,
            locked_folder(tmp_path, wait=0),
        ):
            pytest.fail("two have the lock")
        assert_sentences(caught.value)
        assert caught.value.where == str(tmp_path)
        holder.send_signal(signal.SIGKILL)
        assert holder.wait() == -signal.SIGKILL
        with locked_folder(tmp_path, wait=0):
            assert list(tmp_path.iterdir()) == []
    with locked_folder(tmp_path, wait=0), locked(tmp_path / "other", wait=0):
        assert (tmp_path / "other").read_text() == str(os.getpid())


class FakeTime:
    """A clock that only goes on while somebody sleeps."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += seconds


def test_waiting_asks_often_at_first_then_seldom_and_ends_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.lock"
    clock = FakeTime()
    with locked(path, wait=0):
        monkeypatch.setattr(locks_module, "time", clock)
        with pytest.raises(LockedError) as caught, locked(path):
            pytest.fail("two have the lock")
        assert "60 seconds" in str(caught.value)
        assert_sentences(caught.value)
    assert clock.pauses[0] < 0.01
    assert clock.pauses == sorted(clock.pauses)
    assert clock.pauses[-1] == 0.1
    assert 60 <= sum(clock.pauses) < 60.2


COMMAND = HOLD.replace(
    "with locked",
    "from donewhen.foundation.current_command import name_command\nname_command('complete', ['WI-12'])\nwith locked",
)


def refused(path: Path, wait: float = 0) -> LockedError:
    with pytest.raises(LockedError) as caught, locked(path, wait=wait):
        pytest.fail("two have the lock")
    return caught.value


def test_a_lock_that_is_not_released_names_the_process_and_the_command_of_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with another_process(COMMAND, path) as holder:
        error = refused(path)
        assert f"held by process {holder.pid} (donewhen complete WI-12)" in error.message
        assert_sentences(error)


def test_the_command_of_a_process_is_its_verb_and_the_ids_it_was_given() -> None:
    def named(*arguments: str) -> str | None:
        name_command("ask", arguments)
        return current_command()

    context = contextvars.copy_context()
    assert context.run(named, "WI-20260214-001-parser", "--key", "s3cret", "--text=WI-1", "token") == (
        "donewhen ask WI-20260214-001"
    )
    assert context.run(named, "WI-1", "PJ-2", "WS-20260214-003", "WI-4") == "donewhen ask WI-1 PJ-2 WS-20260214-003"
    assert current_command() is None


def test_a_waiter_is_given_one_notice_with_the_holder_after_two_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.lock"
    with another_process(COMMAND, path) as holder:
        clock = FakeTime()
        monkeypatch.setattr(locks_module, "time", clock)
        notices: list[tuple[float, str]] = []
        with notices_to(lambda message: notices.append((clock.at, message))):
            refused(path, wait=1.9)
            assert notices == []
            begun = clock.at
            refused(path, wait=60)
        assert len(notices) == 1
        at, message = notices[0]
        assert 2 <= at - begun < 2.2
        assert f"held by process {holder.pid} (donewhen complete WI-12)" in message
        assert str(path) in message
        assert_sentences(message)


def test_a_lock_that_is_free_at_once_gives_no_notice(tmp_path: Path) -> None:
    notices: list[str] = []
    with notices_to(notices.append), locked(tmp_path / "one.lock", wait=0):
        pass
    assert notices == []


def test_a_released_lock_does_not_name_its_last_holder(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with locked(path, wait=0):
        assert path.read_text() == str(os.getpid())
    assert path.read_text() == ""


def test_a_holder_that_does_not_run_any_more_is_not_named(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with locked(path, wait=0):
        path.write_text(f"{ended.pid}\ndonewhen complete WI-12\n")
        assert "another process" in refused(path).message


@pytest.mark.parametrize("text", ["0\nx", "99999999999999999999\nx", "-1\nx", "\u00b2\nx", "4294967297\nx"])
def test_what_is_not_a_process_id_is_not_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "one.lock"
    with locked(path, wait=0):
        path.write_text(text)
        assert "another process" in refused(path).message


def test_hostile_text_in_a_lock_file_is_made_plain_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    with locked(path, wait=0):
        path.write_bytes(f"{os.getpid()}\n\x1b[31mred\x07\u202e".encode() + b"\xff" + b"x" * 100_000 + b"\nmore")
        message = refused(path).message
    assert f"process {os.getpid()} (red\ufffdxxx" in message
    assert message.isprintable()
    assert len(message) < 200
    assert "more" not in message


def test_a_lock_file_that_is_a_symlink_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("kept")
    (tmp_path / "one.lock").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"), locked(tmp_path / "one.lock", wait=0):
        pytest.fail("a symlink was locked")
    assert target.read_text() == "kept"
