"""Whether a command that ran out of time was kept from running by the machine.

A time limit that is exceeded counts against the work unless this is plain: the machine was suspended meanwhile, or the
command wanted to run and others had the processors. A command that sleeps, waits or loops by itself shows neither.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SUSPENDED = 1.0
"""Seconds of suspension from which connections and clocks of a command may have suffered."""
_WAITED = 0.5
"""The share of the time that a thread of the command was ready to run and did not get a processor."""
_USED = 0.25
"""The share of all processors that the command itself used at most: with more, it was its own load."""


@dataclass(frozen=True)
class MachineStrain:
    """What the machine did while a command ran."""

    seconds: float
    """How long the command ran, without suspension."""
    suspended: float
    """How long the machine was suspended meanwhile."""
    waited: float
    """How long the command's thread that waited longest was ready to run and did not."""
    used: float
    """The processor time of the command with everything that it started."""
    processors: int


def reason_of_strain(strain: MachineStrain) -> str:
    """Why the machine kept a command from running; empty if it did not."""
    if strain.suspended >= _SUSPENDED:
        return f"the machine was suspended for {strain.suspended:.0f} seconds meanwhile"
    if strain.seconds <= 0:
        return ""
    starved = strain.waited >= _WAITED * strain.seconds
    if starved and strain.used <= _USED * strain.seconds * strain.processors:
        share = round(100 * min(1.0, strain.waited / strain.seconds))
        return f"the machine was overloaded: the command waited {share} % of the time for a processor that others had"
    return ""


class StrainClock:
    """Measures from the start of a command on."""

    def __init__(self) -> None:
        self._awake = time.monotonic()
        self._asleep = _suspended_so_far()

    def measure(self, process: int) -> MachineStrain:
        """What happened since, to a process and everything below it that still runs."""
        waited, used = 0.0, 0.0
        for each in _tree(process):
            waited = max(waited, _waited(each))
            used += _used(each)
        suspended = max(0.0, _suspended_so_far() - self._asleep)
        return MachineStrain(time.monotonic() - self._awake, suspended, waited, used, os.cpu_count() or 1)


def _suspended_so_far() -> float:
    """The seconds of suspension since the machine was started; 0 on systems that don't say it."""
    if sys.platform != "linux":
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def _tree(process: int) -> list[int]:
    """A process and its descendants; empty on systems without ``/proc``."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208
            if name.isdecimal() and (fields := _stat(int(name))):
                children.setdefault(int(fields[1]), []).append(int(name))
    found, left = [], [process]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found if children else []


def _stat(process: int) -> list[str]:
    """The fields behind the name in `/proc/PID/stat`: state, parent, …"""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _used(process: int) -> float:
    """The processor time of a process and of its ended children."""
    fields = _stat(process)
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if len(fields) > 14 else 0.0


def _waited(process: int) -> float:
    """How long the thread of a process that waited longest was ready to run and did not."""
    longest = 0.0
    with suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208
            # Time on a processor, time waited for one (both in nanoseconds), number of turns.
            waited = Path(f"/proc/{process}/task/{thread}/schedstat").read_text(encoding="ascii").split()[1]
            longest = max(longest, int(waited) / 1e9)
    return longest
