"""Which processes this one was started by, and whether a process from earlier still runs. From ``/proc``; on systems
without it nothing is known."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MAX_ANCESTORS = 64
# Of the fields of `/proc/PID/stat` after the name: the parent, and when the process started, in ticks since the boot.
_PARENT, _START = 1, 19


class RunningProcess(NamedTuple):
    """A process, by what the kernel says about it."""

    pid: int
    parent: int
    name: str
    identity: str
    """Names the process on this machine until the next boot: no other process ever has the same."""


def read_process(pid: int) -> RunningProcess | None:
    """A process that runs now; None if there is none, or it can't be known."""
    scope = _scope()
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # `pid (name) state parent …`; the name may hold brackets and spaces itself.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    if not scope or len(fields) <= _START or fields[0] in "ZX":
        return None
    return RunningProcess(pid, int(fields[_PARENT]), name, f"{scope}:{pid}:{fields[_START]}")


def ancestors_of(pid: int) -> Iterator[RunningProcess]:
    """The processes that a process was started by, nearest first."""
    process = read_process(pid)
    for _ in range(_MAX_ANCESTORS):
        process = None if process is None or process.parent <= 1 else read_process(process.parent)
        if process is None:
            return
        yield process


def running_process(identity: str) -> RunningProcess | None:
    """The process with this identity, if it still runs."""
    _, _, rest = identity.partition(":")
    pid = rest.partition(":")[0]
    process = read_process(int(pid)) if pid.isdecimal() else None
    return process if process is not None and process.identity == identity else None


def _scope() -> str:
    """Names the boot of the machine and the namespace in which process ids count; empty if they are not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - a hook must start fast
    except OSError:
        return ""
    return hashlib.sha256(boot + os.fsencode(namespace)).hexdigest()[:12]
