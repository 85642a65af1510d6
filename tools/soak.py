"""Run the race and kill suites with large counts, and whole sweeps: python -m tools.soak [--rounds N] [--jobs N]

`make test` runs the same tests with small counts. This runs them with eight writers times 200 jobs and several hundred
killed processes, one test after the other, and prints the counts. Then it runs every case of the tests that `make test`
only samples (`sampled` in tests/donewhen_kit.py). It takes minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

WRITERS = 8
ROOT = Path(__file__).resolve().parent.parent
SUITES = (
    "tests/jobs/test_many_processes.py",
    "tests/jobs/test_killed.py",
    "tests/jobs/test_ledger_crash.py",
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--rounds", type=_count, default=500, metavar="N", help="Processes to kill (default: 500).")
    parser.add_argument("--jobs", type=_count, default=200, metavar="N", help="Jobs to rewrite (default: 200).")
    parser.add_argument("--added", type=_count, default=25, metavar="N", help="Jobs that each writer adds.")
    parser.add_argument("--examples", type=_count, default=300, metavar="N", help="Examples per property.")
    given = parser.parse_args(arguments)
    counts = {
        "DONEWHEN_SOAK_ROUNDS": str(given.rounds),
        "DONEWHEN_SOAK_JOBS": str(given.jobs),
        "DONEWHEN_SOAK_ADDED": str(given.added),
    }
    argv = [sys.executable, "-m", "pytest", "-n", "0", "--no-cov", "-v", "--timeout=3600"]
    started = time.monotonic()
    status = subprocess.run([*argv, *SUITES], cwd=ROOT, env=os.environ | counts, check=False).returncode
    sweeps = _sweeps()
    whole = os.environ | {"DONEWHEN_WHOLE_SWEEPS": "1", "DONEWHEN_EXAMPLES": str(given.examples)}
    status = subprocess.run([*argv, *sweeps], cwd=ROOT, env=whole, check=False).returncode or status
    minutes = (time.monotonic() - started) / 60
    print(f"{WRITERS} writers x {given.jobs} jobs: {WRITERS * given.jobs} rewrites, each with an entry in the ledger")
    print(f"{WRITERS} writers x {given.added} jobs added at once: {WRITERS * given.added} ids")
    print(f"{given.rounds} writers of jobs and {given.rounds} writers of the ledger killed at random moments")
    print(f"every case of {len(sweeps)} suites that `make test` only samples")
    print(f"{'Passed' if status == 0 else 'FAILED'} ({minutes:.1f} minutes).")
    return status


def _sweeps() -> list[str]:
    """Return the suites that `make test` only samples."""
    marks = ("sampled(", "examples(", "DONEWHEN_EXAMPLES")
    suites = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(suite.relative_to(ROOT)) for suite in suites if any(mark in suite.read_text("utf-8") for mark in marks)]


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
