"""Starts commands where user namespaces, or Landlock too, are really forbidden, as in a container."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

Level = Literal["namespaces", "landlock", "copy"]

_LANDLOCK_CALLS = (444, 445, 446)
_NO_SUCH_CALL = 0x00050000 | 38
_ALLOW = 0x7FFF0000


def landlock_filter() -> bytes:
    """A seccomp program that answers Landlock's system calls like a kernel that does not have them."""
    # struct sock_filter: code, jump if true, jump if false, value.
    rows = [(0x20, 0, 0, 0)]
    for position, number in enumerate(_LANDLOCK_CALLS):
        rows.append((0x15, len(_LANDLOCK_CALLS) - position, 0, number))
    rows += [(0x06, 0, 0, _ALLOW), (0x06, 0, 0, _NO_SUCH_CALL)]
    return b"".join(struct.pack("HBBI", *row) for row in rows)


@contextmanager
def landlock_denied() -> Iterator[tuple[tuple[str, ...], Mapping[str, object]]]:
    """The options of bubblewrap under which a command finds no Landlock, and what its process needs."""
    with tempfile.TemporaryFile() as file:
        file.write(landlock_filter())
        file.seek(0)
        yield ("--seccomp", str(file.fileno())), {"pass_fds": (file.fileno(),)}


@contextmanager
def only(level: Level) -> Iterator[tuple[tuple[str, ...], Mapping[str, object]]]:
    """The words before a command so that no better level works for it, and what its process needs."""
    words = (bubblewrap(), "--dev-bind", "/", "/", "--unshare-user", "--disable-userns", "--uid", str(os.getuid()))
    if level == "namespaces":
        yield (), {}
    elif level == "landlock":
        yield (*words, "--"), {}
    else:
        with landlock_denied() as (denied, options):
            yield (*words, *denied, "--"), options


def in_container(*writable: Path, options: Sequence[str] = ()) -> tuple[str, ...]:
    """The words before a command that runs it as an ordinary user where user namespaces are forbidden: everything is
    read-only but these folders, and no process outside is visible."""
    words = [bubblewrap(), "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"]
    words += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]
    words += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    for folder in writable:
        words += ["--bind", str(folder), str(folder)]
    return (*words, *options, "--")


def bubblewrap() -> str:
    """The program; skips the test if it is not installed."""
    program = shutil.which("bwrap")
    if program is None:
        pytest.skip("LOUD: bubblewrap is not installed; it is needed to forbid namespaces")
    return program
