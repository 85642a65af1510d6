"""A command that runs out of time: by its own fault, unless the machine plainly kept it from running."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from donewhen.foundation.machine_strain import MachineStrain, StrainClock, reason_of_strain
from donewhen.foundation.process import run_command

QUIET = MachineStrain(seconds=100.0, suspended=0.0, waited=0.5, used=0.1, processors=4)
CASES = {
    "an endless sleep": (QUIET, ""),
    "an endless loop on a free machine": (MachineStrain(100.0, 0.0, 2.0, 98.0, 4), ""),
    "its own hundred threads": (MachineStrain(100.0, 0.0, 96.0, 390.0, 4), ""),
    "a wait for a network": (MachineStrain(100.0, 0.0, 0.0, 0.0, 1), ""),
    "some load of others": (MachineStrain(100.0, 0.0, 40.0, 60.0, 4), ""),
    "a loop beside the load of others": (MachineStrain(100.0, 0.0, 90.0, 10.0, 4), "overloaded"),
    "nearly no turn on one processor": (MachineStrain(100.0, 0.0, 97.0, 3.0, 1), "overloaded"),
    "half of the time on one processor": (MachineStrain(100.0, 0.0, 50.0, 50.0, 1), ""),
    "a closed lid": (MachineStrain(100.0, 3600.0, 0.0, 0.0, 4), "suspended"),
    "a blink of the clock": (MachineStrain(100.0, 0.3, 0.0, 0.0, 4), ""),
    "no time at all": (MachineStrain(0.0, 0.0, 0.0, 0.0, 1), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_only_suspension_or_the_load_of_others_is_the_machines_fault(case: str) -> None:
    strain, expected = CASES[case]
    reason = reason_of_strain(strain)
    assert (expected in reason) if expected else reason == ""


def test_a_command_that_sleeps_too_long_has_itself_to_blame(tmp_path: Path) -> None:
    result = run_command(["sleep", "600"], cwd=tmp_path, timeout=1.0)
    assert (result.ending, result.strain) == ("timed_out", "")


def test_a_command_that_ends_in_time_is_not_measured(tmp_path: Path) -> None:
    result = run_command(["true"], cwd=tmp_path, timeout=60.0)
    assert (result.ending, result.strain) == ("exited", "")


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs Linux")
def test_what_a_child_used_is_measured_with_its_parent(tmp_path: Path) -> None:
    busy = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {busy!r}])\nprint('x', flush=True)\ninput()"
    clock = StrainClock()
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    strain = clock.measure(process.pid)
    process.communicate(b"\n")
    assert strain.used >= 0.25
    assert strain.suspended < 1.0
    assert 0 <= strain.waited <= strain.seconds + 1.0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_a_command_that_others_leave_no_processor_is_not_to_blame(tmp_path: Path) -> None:
    loop = "while True: pass"
    cpu = min(os.sched_getaffinity(0))
    pin = f"import os; os.sched_setaffinity(0, [{cpu}]); os.nice(%d)\n{loop}"
    others = [subprocess.Popen([sys.executable, "-c", pin % 0]) for _ in range(4)]
    try:
        time.sleep(0.5)
        clock = StrainClock()
        process = subprocess.Popen([sys.executable, "-c", pin % 15])
        while not reason_of_strain(clock.measure(process.pid)):
            assert process.poll() is None
            time.sleep(0.2)
        process.kill()
        process.wait()
    finally:
        for other in others:
            other.kill()
            other.wait()
