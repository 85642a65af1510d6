"""Words before a command that forbid isolation to it for real, as containers and agents do to their children."""

from __future__ import annotations

import os
import shutil
import struct
import sys

import pytest

from isolation.isolation_kit import need

_SYSCALLS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
LANDLOCK_CALLS = (444, 445, 446)
_REFUSE = """
import ctypes, os, sys
program = (ctypes.c_char * len(FILTER)).from_buffer_copy(FILTER)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
filter = Program(len(FILTER) // 8, ctypes.addressof(program))
assert libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"""


def refusing(calls: tuple[int, ...], error: int) -> list[str]:
    """Words before a command that let the kernel refuse system calls to it, as containers do."""
    machine = _SYSCALLS.get(os.uname().machine)
    if machine is None:
        pytest.skip("LOUD: the filter for system calls is not written for this processor; refusals are NOT tested")
    load, equal, give = 0x20, 0x15, 0x06
    rows = [(load, 0, 0, 4), (equal, 0, len(calls) + 1, machine), (load, 0, 0, 0)]
    rows += [(equal, len(calls) - at, 0, call) for at, call in enumerate(calls)]
    rows += [(give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x00050000 | error)]
    code = b"".join(struct.pack("=HBBI", *row) for row in rows)
    return [sys.executable, "-c", f"FILTER = {code!r}\n{_REFUSE}"]


def without_namespaces() -> list[str]:
    """Words before a command that forbid namespaces to it, as an agent can do to its own children."""
    need("namespaces")
    if shutil.which("unshare") is None:
        pytest.skip("LOUD: there is no unshare here; that forbidden namespaces are noticed is NOT tested")
    return ["unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh"]
