"""Runs commands safely: no shell, a small environment, a time limit, no processes left behind."""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.cancellation import cancelled
from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.machine_strain import StrainClock, reason_of_strain

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
    """The command could not be started."""

    code = "command_not_found"


def command_not_found(name: str, next_step: str) -> CommandNotRunnableError:
    """The error for a program that was not found; a whole command line in one word gets a hint about shells."""
    if any(character.isspace() for character in name):
        next_step = "Commands are run without a shell. Give each word as an argument, or put the line into a script."
    return CommandNotRunnableError(f"The command {name!r} was not found.", next_step=next_step)


def split_command(text: str) -> tuple[str, ...]:
    """Split a command into words as a shell would. Raise UsageError for syntax that needs a shell."""
    if (operator := _shell_syntax(text)) is not None:
        raise UsageError(
            f"The command {text!r} uses {operator!r}, but commands are run without a shell.",
            next_step="Use a single command, or put the line into a script and run that.",
        )
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"The command {text!r} can't be parsed: {error}.") from error
    if not words:
        raise UsageError("The command is empty.")
    return words


def _shell_syntax(text: str) -> str | None:
    """The first piece of ``text`` that has a special meaning to a shell, apart from words and quotes."""
    quote = ""
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\" and quote != "'":
            escaped = text[position + 1 : position + 2]
            # shlex and a shell differ here: in line continuations, and in backslashes inside double quotes.
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
    """The result of a command. ``exit_code`` is negative if a signal ended it, as in :mod:`subprocess`."""

    argv: tuple[str, ...]
    ending: Ending
    exit_code: int
    output: str
    seconds: float
    strain: str = ""
    """Why it ran out of time, if the machine kept it from running (:mod:`donewhen.foundation.machine_strain`)."""

    @property
    def succeeded(self) -> bool:
        return self.ending == "exited" and self.exit_code == 0


def small_environment(pass_on: Sequence[str] = (), extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that a command needs to find its tools, those named in ``pass_on``, and ``extra``.

    Everything else is left out: keys and tokens, and variables such as ``LD_PRELOAD`` or ``PYTHONPATH``
    that change what a command does.
    """
    wanted = _PASSED_ON | set(pass_on)
    kept = {name: value for name, value in CALLER_VARIABLES.items() if name in wanted or name.startswith("LC_")}
    return kept | dict(extra or {})


def run_command(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout: float,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    time_to_end: float = _GRACE,
    on_output: Callable[[bytes], object] = lambda _: None,
) -> CommandResult:
    """Run ``argv`` in its own process group, and leave no process of that group behind.

    Standard output and error are returned as one text in the order written; of a long text, the beginning
    and the end are kept. The group is killed after ``timeout`` seconds, when the work is cancelled
    (:mod:`donewhen.foundation.cancellation`), and after the command itself has ended. Before it is killed, it is
    asked to end within ``time_to_end`` seconds. ``pass_fds`` are open files that it gets besides the standard streams.
    ``on_output`` gets the output while the command runs, all of it.
    """
    if sys.platform == "win32":
        raise CommandNotRunnableError("Commands can only be run on Linux and macOS; Windows is not supported.")
    argv = tuple(argv)
    if not argv:
        raise CommandNotRunnableError("There is no command to run: the argument list is empty.")
    started = time.monotonic()
    output = _Output()
    clock, strain = StrainClock(), ""
    process: subprocess.Popen[bytes] | None = None
    try:
        with _interrupts_deferred():
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=small_environment() if env is None else dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        ending = _wait(process, output, on_output, started + timeout)
        if ending == "timed_out":
            strain = reason_of_strain(clock.measure(process.pid))
    except (OSError, ValueError) as error:
        if process is not None:
            raise
        raise _not_runnable_error(argv, cwd, error) from error
    finally:
        if process is not None:
            _end_group(process, time_to_end)
    return CommandResult(argv, ending, process.returncode, output.text(), time.monotonic() - started, strain)


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C until the new process can be ended; an interrupt inside Popen would leave it running."""
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


def _wait(
    process: subprocess.Popen[bytes], output: _Output, on_output: Callable[[bytes], object], deadline: float
) -> Ending:
    pipe = process.stdout
    if pipe is None:  # pragma: no cover - stdout=PIPE always gives one
        raise AssertionError("the process has no output pipe")
    os.set_blocking(pipe.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        pipe_open = True
        while True:
            # The command ends when its leader exits, even if a child keeps the pipe open.
            finished = _has_ended(process)
            if pipe_open and selector.select(0 if finished else _POLL):
                pipe_open = _drain(pipe.fileno(), output, on_output)
            elif not pipe_open and not finished:
                time.sleep(_POLL / 10)
            if finished:
                return "exited"
            if cancelled():
                return "cancelled"
            if time.monotonic() >= deadline:
                return "timed_out"


def _drain(descriptor: int, output: _Output, on_output: Callable[[bytes], object] = lambda _: None) -> bool:
    """Read the available output, up to a limit so that a busy writer can't block; return False at the end."""
    with suppress(BlockingIOError):
        for _ in range(64):
            chunk = os.read(descriptor, 65536)
            if not chunk:
                return False
            output.add(chunk)
            on_output(chunk)
    return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the leader has exited, without reaping it, so that its group id can't be reused yet."""
    if process.returncode is not None:
        return True
    if not hasattr(os, "waitid"):  # pragma: no cover - macOS before Python 3.13
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        # SIGCHLD is ignored, or other code has reaped it: the exit status is lost, and that doesn't count as success.
        process.returncode = _STATUS_LOST
        return True


def _end_group(process: subprocess.Popen[bytes], time_to_end: float) -> None:
    try:
        if not _has_ended(process):
            _signal_group(process, signal.SIGTERM)
            deadline = time.monotonic() + time_to_end
            while not _has_ended(process) and time.monotonic() < deadline:
                time.sleep(_POLL / 5)
    finally:
        # Also if a second Ctrl-C interrupts the wait.
        _signal_group(process, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # macOS returns EPERM for a group of which only a zombie is left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _not_runnable_error(argv: Sequence[str], cwd: Path, error: Exception) -> CommandNotRunnableError:
    # os.path, because Path.is_dir raises if the folder can't be accessed.
    if not os.path.isdir(cwd):  # noqa: PTH112
        return CommandNotRunnableError(f"The working directory does not exist: {cwd}.")
    if not os.access(cwd, os.X_OK):
        return CommandNotRunnableError(f"No permission to enter the working directory: {cwd}.")
    name = argv[0] if argv else ""
    if isinstance(error, FileNotFoundError):
        return command_not_found(name, "Install it, or give its full path.")
    if isinstance(error, PermissionError):
        return CommandNotRunnableError(
            f"No permission to execute the command {name!r}.", next_step="Check its permissions."
        )
    return CommandNotRunnableError(f"The command {name!r} could not be started: {error}.")
