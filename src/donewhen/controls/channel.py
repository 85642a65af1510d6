"""The stream from a test run to the gate: an open socket that the command inherits, and what it needs to use it.

What was sent can't be taken back or overwritten, and the gate reads while the command runs.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from donewhen.controls.sent_lines import SentLines, process_key, read_lines, read_lines_of_processes

_INJECTED = Path(__file__).with_name("injected")
_UNITTEST_RUNNER = Path(__file__).parents[1] / "test_reports" / "unittest_report.py"
"""The gate's runner of unittest, which takes controls and also writes reports. It imports nothing of donewhen."""
_FIRST_DESCRIPTOR = 60
"""Tests that count or use the first descriptors find what they would find without the stream."""
_MOST_BYTES = 64 << 20
_TIME_TO_READ = 10.0
_PAUSE = 0.005
_KEYS_AT_ONCE = 256


@dataclass
class ControlChannel:
    """A run that is to have controls, and what it has said so far."""

    folder: Path
    """The folder that Python programs read first; it has to be in reach of the command."""
    descriptor: int
    """The end of the stream for the command, which has to inherit it."""
    of_processes: bool
    """Whether each of many processes takes a key of its own."""
    _key: bytes = field(repr=False)
    _ours: socket.socket = field(repr=False)
    _theirs: socket.socket = field(repr=False)
    _unsent: bytes = field(default=b"", repr=False)
    _keys: int = 0
    _received: bytearray = field(default_factory=bytearray, repr=False)
    _reader: threading.Thread | None = field(default=None, repr=False)

    def python_path(self, environment: Mapping[str, str]) -> str:
        """The search path for modules that brings the controls into Python programs."""
        before = environment.get("PYTHONPATH")
        return f"{self.folder}{os.pathsep}{before}" if before else str(self.folder)

    @property
    def script(self) -> Path:
        """What a Python interpreter runs to run a script; the script's own name follows it."""
        return self.folder / "script_run.py"

    @property
    def node_module(self) -> Path:
        """What Node loads before everything else. Its coverage leaves out such folders."""
        return self.folder / "node_modules" / "node_controls.cjs"

    def node_options(self, environment: Mapping[str, str]) -> str:
        """The options that bring the controls into programs of Node which another program starts."""
        return f"--require {self.node_module} {environment.get('NODE_OPTIONS', '')}".strip()

    def finish(self) -> SentLines:
        """What the run has said; to be called when the command has ended."""
        self._theirs.close()
        if self._reader is not None:
            self._reader.join(_TIME_TO_READ)
            # Whoever still holds the other end is none of the command's processes.
            with suppress(OSError):
                self._ours.shutdown(socket.SHUT_RD)
            self._reader.join(_TIME_TO_READ)
        read = read_lines_of_processes if self.of_processes else read_lines
        return read(bytes(self._received), self._key)

    def _send_keys(self) -> None:
        """Have a key ready for each process that is started next."""
        with suppress(BlockingIOError):
            while True:
                if not self._unsent:
                    numbers = range(self._keys, self._keys + _KEYS_AT_ONCE)
                    self._unsent = b"".join(process_key(self._key, number) for number in numbers)
                    self._keys += _KEYS_AT_ONCE
                self._unsent = self._unsent[self._ours.send(self._unsent, socket.MSG_DONTWAIT) :]

    def _read(self) -> None:
        with suppress(OSError):
            while chunk := self._ours.recv(1 << 16):
                if len(self._received) < _MOST_BYTES:
                    self._received += chunk
                if self.of_processes:
                    self._send_keys()
                # Reading each line at once would take processor time from the tests.
                time.sleep(_PAUSE)


@cache
def _compiled() -> Mapping[str, bytes]:
    """The code of the parts for interpreters of this version, which need not compile them."""
    found = {}
    for path in (*_INJECTED.glob("*.py"), _UNITTEST_RUNNER):
        code = compile(path.read_text(encoding="utf-8"), "<string>", "exec", dont_inherit=True)
        found[f"{path.stem}.{MAGIC_NUMBER.hex()}"] = marshal.dumps(code)
    return found


@contextmanager
def control_channel(*, of_processes: bool = False) -> Iterator[ControlChannel]:
    """Open a stream for one run of a command, in which one process has controls, or each of many."""
    ours, theirs = socket.socketpair()
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="donewhen-")))
    try:
        with suppress(OSError, ValueError):
            descriptor = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
            theirs.close()
            theirs = socket.socket(fileno=descriptor)
        for path in (*_INJECTED.glob("*.py"), _UNITTEST_RUNNER):
            shutil.copyfile(path, folder / path.name)
        for name, code in _compiled().items():
            (folder / name).write_bytes(code)
        (folder / "node_modules").mkdir()
        shutil.copyfile(_INJECTED / "node_controls.cjs", folder / "node_modules" / "node_controls.cjs")
        inode = os.fstat(theirs.fileno()).st_ino
        text = f"{theirs.fileno()} {inode} _{secrets.token_hex(4)} {'many' if of_processes else 'one'}"
        (folder / "channel.txt").write_text(text, encoding="utf-8")
        key = secrets.token_bytes(32)
        channel = ControlChannel(folder, theirs.fileno(), of_processes, key, ours, theirs)
        if of_processes:
            # Whoever finds no key goes on without.
            theirs.setblocking(False)
            channel._send_keys()
        else:
            ours.sendall(key)
        channel._reader = threading.Thread(target=channel._read, name="donewhen-controls", daemon=True)
        channel._reader.start()
        yield channel
    finally:
        theirs.close()
        with suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)
        ours.close()
        shutil.rmtree(folder, ignore_errors=True)
