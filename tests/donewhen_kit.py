"""``donewhen`` for tests: inside this process, which takes milliseconds, or as a process where that is the point.

:func:`run_main` gives a call of ``main()`` what a new process would have: its own folder, environment, standard
streams (without a terminal) and context, and nothing of it is left afterwards. What only a new interpreter can do (be
killed, race another one, have another encoding) needs :func:`run_process`.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import click

import donewhen.models.contrast
from donewhen.cli import main
from donewhen.config.agent_runtimes import AGENT_VARIABLES

# An interpreter reads these when it starts; setting them for a call changes nothing.
_READ_AT_THE_START = ("PYTHONIOENCODING", "PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED", "PYTHONWARNINGS")
_AT_THE_START = {name: os.environ.get(name) for name in _READ_AT_THE_START}
_ENTRY_POINT = str(Path(donewhen.__file__).with_name("__main__.py"))
_THREADS_END_WITHIN = 60.0


_T = TypeVar("_T")


def sampled(cases: Iterable[_T], keep: int) -> list[_T]:
    """The first, the last and others between them at equal distances; `make soak` goes through all of them."""
    every = list(cases)
    if os.environ.get("DONEWHEN_WHOLE_SWEEPS") or len(every) <= keep:
        return every
    return [every[round(at * (len(every) - 1) / (keep - 1))] for at in range(keep)]


def scaled(few: int, many: int) -> int:
    """``few``; in `make soak`, ``many``."""
    return many if os.environ.get("DONEWHEN_WHOLE_SWEEPS") else few


def examples(many: int) -> int:
    """How many examples hypothesis tries: a third of ``many``; `make soak` says how many itself."""
    return int(os.environ.get("DONEWHEN_EXAMPLES", max(1, many // 3)))


def quiet_environment(**extra: str) -> dict[str, str]:
    """The environment without the marks of an agent or of a CI system, as a person at home has it."""
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS", "DONEWHEN_PASSPHRASE", "NO_COLOR"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | {"NO_COLOR": "1"} | extra


def run_process(
    arguments: Sequence[str],
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,  # noqa: A002 - as subprocess.run calls it
) -> subprocess.CompletedProcess[str]:
    """Run ``donewhen`` without a terminal in a process of its own."""
    argv = [sys.executable, "-m", "donewhen", *arguments]
    environment = quiet_environment() if env is None else env
    source = {"stdin": subprocess.DEVNULL} if input is None else {"input": _bytes(input)}
    done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, **source)
    return subprocess.CompletedProcess(argv, done.returncode, _text(done.stdout), _text(done.stderr))


def run_main(
    arguments: Sequence[str],
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,  # noqa: A002 - as subprocess.run calls it
    *,
    merged: bool = False,
) -> subprocess.CompletedProcess[str]:
    """The same inside this process; ``merged``: all output is in one text.

    It is a process still where it must be: in a thread, which can't have a folder or standard streams for itself, in a
    running event loop, and with variables that an interpreter reads when it starts.
    """
    environment = dict(quiet_environment() if env is None else env)
    early = any(environment.get(name) not in (None, value) for name, value in _AT_THE_START.items())
    if early or _inside_a_loop() or threading.current_thread() is not threading.main_thread():
        return run_process(arguments, cwd, environment, input)
    _forget_what_is_cached()
    with (
        _streams(input, merged=merged) as printed,
        _environment(environment),
        _folder(cwd),
        _modules(),
        _signals(),
        _logging(),
        _threads(),
    ):
        status = contextvars.Context().run(_status_of, arguments)
    out, err = (_text(one.all()) for one in printed)
    return subprocess.CompletedProcess([sys.executable, "-m", "donewhen", *arguments], status, out, err)


def _inside_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _status_of(arguments: Sequence[str]) -> int:
    """What the interpreter would make of ``sys.exit(main())``."""
    try:
        try:
            code: object = main(arguments)
        finally:
            with suppress(OSError):
                sys.stdout.flush()
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:
        traceback.print_exc()
        return 1
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    print(code, file=sys.stderr)
    return 1


def _bytes(given: str | bytes) -> bytes:
    return given.encode() if isinstance(given, str) else given


def _text(printed: bytes) -> str:
    return printed.decode().replace("\r\n", "\n").replace("\r", "\n")


class _Reader(threading.Thread):
    """Takes what comes out of a pipe until nobody can write to it any more."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._source, self.sink = os.pipe()
        self._chunks: list[bytes] = []

    def run(self) -> None:
        while chunk := os.read(self._source, 65536):
            self._chunks.append(chunk)
        os.close(self._source)

    def all(self) -> bytes:
        self.join()
        return b"".join(self._chunks)


@contextmanager
def _streams(given: str | bytes | None, *, merged: bool) -> Iterator[tuple[_Reader, _Reader]]:
    """Standard streams down to the descriptors, because what donewhen starts inherits those.

    Pipes and no files: donewhen sees the difference.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    kept = [os.dup(number) for number in range(3)]
    out, err = _Reader(), _Reader()
    feeder: threading.Thread | None = None
    if given is None:
        source = os.open(os.devnull, os.O_RDONLY)
    else:
        source, sink = os.pipe()
        feeder = threading.Thread(target=_feed, args=(sink, _bytes(given)), daemon=True)
    try:
        for number, descriptor in enumerate((source, out.sink, (out if merged else err).sink)):
            os.dup2(descriptor, number)
        for descriptor in (source, out.sink, err.sink):
            os.close(descriptor)
        for thread in (out, err, feeder):
            if thread is not None:
                thread.start()
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
        try:
            yield out, err
        finally:
            for stream in (sys.stdin, sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.close()
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)
        if feeder is not None:
            feeder.join()


def _feed(sink: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(sink, "wb") as pipe:
        pipe.write(data)


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    _become(wanted)
    try:
        yield
    finally:
        _become(before)


def _become(wanted: Mapping[str, str]) -> None:
    zone = os.environ.get("TZ")
    os.environ.clear()
    os.environ.update(wanted)
    if wanted.get("TZ") != zone:
        time.tzset()


@contextmanager
def _folder(cwd: Path | str | None) -> Iterator[None]:
    umask = os.umask(0)
    os.umask(umask)
    try:
        before = os.open(".", os.O_RDONLY)
    except OSError:
        before = None
    if cwd is not None:
        os.chdir(cwd)
    try:
        yield
    finally:
        os.umask(umask)
        if before is not None:
            os.fchdir(before)
            os.close(before)


@contextmanager
def _modules() -> Iterator[None]:
    """The command's own arguments; modules come from its folder, too, and are forgotten."""
    arguments, path, known = sys.argv, list(sys.path), set(sys.modules)
    sys.argv = [_ENTRY_POINT]
    sys.path.insert(0, str(Path.cwd()) if _has_folder() else "")
    try:
        yield
    finally:
        sys.argv, sys.path[:] = arguments, path
        installed = tuple({sys.prefix, sys.base_prefix, str(Path(donewhen.__file__).parent)})
        for name in set(sys.modules) - known:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and not file.startswith(installed):
                del sys.modules[name]


def _has_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


@contextmanager
def _signals() -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGCHLD)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, disabled = list(root.handlers), root.level, logging.root.manager.disable
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.disable(disabled)


@contextmanager
def _threads() -> Iterator[None]:
    """No thread of a call lives on with the next call's folder and streams."""
    before = set(threading.enumerate())
    yield
    give_up = time.monotonic() + _THREADS_END_WITHIN
    for one in set(threading.enumerate()) - before:
        one.join(max(0.0, give_up - time.monotonic()))
        if one.is_alive():
            raise RuntimeError(f"the thread {one.name!r} is left over: use run_process (donewhen_process)")


_kept_between_calls: tuple[int, list[Any], list[click.Command]] = (0, [], [])


def _forget_what_is_cached() -> None:
    """A new process has read nothing yet, and click has not yet kept a command's help option as others asked for it.

    What the judge makes of a sentence is kept: it depends on the sentence alone.
    """
    global _kept_between_calls
    ours = [name for name in sys.modules if name.startswith("donewhen.")]
    if _kept_between_calls[0] != len(ours):
        pure = donewhen.models.contrast.__name__
        found = [var for name in ours if not name.startswith(pure) for var in vars(sys.modules[name]).values()]
        commands = [one for one in found if isinstance(one, click.Command)]
        _kept_between_calls = len(ours), [one for one in found if hasattr(one, "cache_clear")], commands
    for one in _kept_between_calls[1]:
        one.cache_clear()
    for command in _kept_between_calls[2]:
        command._help_option = None


def git_command(folder: Path, *arguments: str) -> str:
    """Run git with an identity, and give back what it says."""
    identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout
