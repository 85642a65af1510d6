"""Running a command safely: no shell, a small environment, a time limit, nothing left behind."""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from donewhen.foundation.cancellation import cancelled
from donewhen.foundation.errors import DonewhenError, UsageError

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

_PASSED_ON = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "CI", "NO_COLOR",
        "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION", "CARGO_HOME", "RUSTUP_HOME", "GOPATH",
        "GOCACHE", "JAVA_HOME", "NVM_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
    }
)  # fmt: skip
_EXPANDS = tuple("({_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_HEAD = 16 * 1024
_TAIL = 112 * 1024
_POLL = 0.05
_GRACE = 1.0
_STATUS_LOST = 255

Ending = Literal["exited", "timed_out", "cancelled"]


class CommandNotRunnableError(DonewhenError):
    """The command could not be started at all."""

    code = "command_not_found"


def split_command(text: str) -> tuple[str, ...]:
    """Split a command as a shell would, for running without one; what only a shell can do is refused with a hint."""
    if (operator := _shell_syntax(text)) is not None:
        raise UsageError(
            f"The command {text!r} uses {operator!r}, but there is no shell to understand it.",
            next_step="Give one plain command, or put the line into a script and run that.",
        )
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"The command {text!r} can't be split: {error}.") from error
    if not words:
        raise UsageError("The command is empty.")
    return words


def _shell_syntax(text: str) -> str | None:
    """The first piece of ``text`` that would mean something to a shell beyond words and quotes."""
    quote = ""
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\" and quote != "'":
            escaped = text[position + 1 : position + 2]
            # shlex and a shell differ here: a line that goes on, and what a backslash means inside double quotes.
            if escaped == "\n" or (quote and escaped in ("$", "`")):
                return text[position : position + 2]
            position += 1
        elif quote:
            if character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in "|&;<>()\n":
            return character
        if quote != "'" and (character == "`" or (character == "$" and text[position + 1 : position + 2] in _EXPANDS)):
            return text[position : position + 2] if character == "$" else character
        position += 1
    return None


@dataclass(frozen=True)
class CommandResult:
    """What became of a command. ``exit_code`` is negative when a signal ended it, as in :mod:`subprocess`."""

    argv: tuple[str, ...]
    ending: Ending
    exit_code: int
    output: str
    seconds: float

    @property
    def succeeded(self) -> bool:
        return self.ending == "exited" and self.exit_code == 0


def small_environment(pass_on: Sequence[str] = (), extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The few variables a command needs to find its tools, those named in ``pass_on``, and ``extra``.

    Everything else stays out: keys and tokens, and variables such as ``LD_PRELOAD`` or ``PYTHONPATH``
    that change what a command is.
    """
    wanted = _PASSED_ON | set(pass_on)
    kept = {name: value for name, value in os.environ.items() if name in wanted or name.startswith("LC_")}
    return kept | dict(extra or {})


def run_command(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout: float,
    env: Mapping[str, str] | None = None,
) -> CommandResult:
    """Run ``argv`` in a process group of its own, and leave no member of that group behind.

    Standard output and error come back as one text in the order written; of a long one the beginning and
    the end are kept. The group is killed when ``timeout`` seconds have passed, when the caller that is
    waiting has given up (:mod:`donewhen.foundation.cancellation`), and after the command itself has ended.
    """
    if sys.platform == "win32":
        raise CommandNotRunnableError("Commands can be checked on Linux and macOS; Windows is not supported.")
    argv = tuple(argv)
    if not argv:
        raise CommandNotRunnableError("There is no command to run: the list of its words is empty.")
    started = time.monotonic()
    output = _Output()
    process: subprocess.Popen[bytes] | None = None
    try:
        with _interrupts_put_off():
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=small_environment() if env is None else dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        ending = _wait(process, output, started + timeout)
    except (OSError, ValueError) as error:
        if process is not None:
            raise
        raise _not_runnable(argv, cwd, error) from error
    finally:
        if process is not None:
            _end_group(process)
    return CommandResult(argv, ending, process.returncode, output.text(), time.monotonic() - started)


@contextmanager
def _interrupts_put_off() -> Iterator[None]:
    """Let a Ctrl-C wait until the process that is being started can be ended: inside Popen it would leave it behind."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            before(*held[0])


class _Output:
    """The first and the last bytes of a stream of any length."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, chunk: bytes) -> None:
        room = _HEAD - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Cutting at twice the size keeps the cost of a long stream linear.
        if len(self._tail) > 2 * _TAIL:
            self._cut()

    def _cut(self) -> None:
        surplus = len(self._tail) - _TAIL
        if surplus > 0:
            self._left_out += surplus
            del self._tail[:surplus]

    def text(self) -> str:
        self._cut()
        gap = f"\n[… {self._left_out} bytes left out …]\n".encode() if self._left_out else b""
        return bytes(self._head + gap + self._tail).decode("utf-8", errors="replace")


def _wait(process: subprocess.Popen[bytes], output: _Output, deadline: float) -> Ending:
    pipe = process.stdout
    if pipe is None:  # pragma: no cover - stdout=PIPE always gives one
        raise AssertionError("the process has no output pipe")
    os.set_blocking(pipe.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        open_ended = True
        while True:
            # The leader's own exit ends the command: a child that kept the pipe open does not prolong it.
            finished = _has_ended(process)
            if open_ended and selector.select(0 if finished else _POLL):
                open_ended = _drain(pipe.fileno(), output)
            elif not open_ended and not finished:
                time.sleep(_POLL / 10)
            if finished:
                return "exited"
            if cancelled():
                return "cancelled"
            if time.monotonic() >= deadline:
                return "timed_out"


def _drain(descriptor: int, output: _Output) -> bool:
    """Read what is there now, up to a bound that no busy writer can stretch; false once the stream has ended."""
    with suppress(BlockingIOError):
        for _ in range(64):
            chunk = os.read(descriptor, 65536)
            if not chunk:
                return False
            output.add(chunk)
    return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the leader has exited, without reaping it: its group id stays ours until the group is killed."""
    if process.returncode is not None:
        return True
    if not hasattr(os, "waitid"):  # pragma: no cover - macOS before Python 3.13
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        # SIGCHLD is ignored, or somebody else has reaped it: its exit status is lost, and what is lost is no success.
        process.returncode = _STATUS_LOST
        return True


def _end_group(process: subprocess.Popen[bytes]) -> None:
    try:
        if not _has_ended(process):
            _signal_group(process, signal.SIGTERM)
            give_up = time.monotonic() + _GRACE
            while not _has_ended(process) and time.monotonic() < give_up:
                time.sleep(_POLL / 5)
    finally:
        # Also when a second Ctrl-C cuts the waiting short.
        _signal_group(process, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # macOS answers EPERM for a group of which only a zombie is left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _not_runnable(argv: Sequence[str], cwd: Path, error: Exception) -> CommandNotRunnableError:
    # os.path, because Path.is_dir raises where the folder can't be looked at.
    if not os.path.isdir(cwd):  # noqa: PTH112
        return CommandNotRunnableError(f"The folder to run it in does not exist: {cwd}.")
    if not os.access(cwd, os.X_OK):
        return CommandNotRunnableError(f"The folder to run it in may not be entered: {cwd}.")
    name = argv[0] if argv else ""
    if isinstance(error, FileNotFoundError):
        return CommandNotRunnableError(
            f"The command {name!r} was not found.", next_step="Install it, or give its full path."
        )
    if isinstance(error, PermissionError):
        return CommandNotRunnableError(f"The command {name!r} may not be executed.", next_step="Check its permissions.")
    return CommandNotRunnableError(f"The command {name!r} could not be started: {error}.")
