"""Tickets do not pile up: the memory of real processes, with some tickets and with many more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from donewhen_kit import sampled, scaled

# A process starts with the peak of the one that it was forked from, and a test process has a large one: this is small.
MEASURED = """
import os, subprocess, sys
source = open(sys.argv[1], "rb")
if sys.argv[2] == "pipe":
    source = subprocess.Popen(["cat"], stdin=source, stdout=subprocess.PIPE).stdout
process = subprocess.Popen(sys.argv[3:], stdin=source, stdout=subprocess.DEVNULL)
source.close()
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""

# A model that answers at once, remembers nothing, and may be one that has to be paid.
SCRIPTED = """
import sys
import donewhen.models.executors as executors
from donewhen.cli import main
from donewhen.models.roles import Completion

class Scripted:
    name = "scripted/1"
    free = sys.argv[1] == "free"
    async def roll(self, request):
        return Completion("Verdict: pass\\nReason: it says " + request.evidence["text"][:100])

executors.open_model = lambda choice: Scripted()
sys.exit(main(sys.argv[2:]))
"""


def mission_in(folder: Path, count: int, size: int) -> Path:
    folder.mkdir()
    (folder / "mission.toml").write_text('mission = "m"\nsampler = [{ temperature = 0.1 }]\n')
    (folder / "initial_guidance.json").write_text('{"G0": "The order must have gone through."}')
    with (folder / "tickets.jsonl").open("w") as file:
        for at in range(count):
            row = {"group_id": f"A{at}", "mission": "m", "label": "pass", "text": f"order {at} " + "x" * size}
            file.write(json.dumps(row) + "\n")
    return folder


def memory(mission: Path, how: str, *command: str, price: str = "free") -> int:
    tickets = str(mission / "tickets.jsonl")
    start = [sys.executable, "-c", MEASURED, tickets, how, sys.executable, "-c", SCRIPTED, price, *command, "--quiet"]
    done = subprocess.run(start, cwd=mission, capture_output=True, text=True, timeout=300, check=True)
    status, peak = map(int, done.stdout.split())
    assert status == 0, done.stderr
    return peak


@pytest.mark.parametrize(("how", "price"), sampled([("file", "free"), ("pipe", "free"), ("file", "paid")], 2))
def test_judging_takes_no_more_memory_for_ten_times_the_tickets(tmp_path: Path, how: str, price: str) -> None:
    files = ["tickets.jsonl"] if how == "file" else []
    some, many = (
        memory(mission_in(tmp_path / str(count), count, 100), how, "judge", *files, price=price)
        for count in (2000, scaled(10_000, 20_000))
    )
    # Where tickets or verdicts were kept, it would be a thousand bytes for each, and more.
    assert many - some < scaled(8000, 18_000) * 600


def test_an_audit_keeps_where_tickets_stand_and_not_what_they_say(tmp_path: Path) -> None:
    """Texts of 8 kB. Some are at hand, and word counts learn from some thousands: both are as many in either case."""
    some, many = (
        memory(mission_in(tmp_path / str(count), count, 8000), "file", "audit-mission")
        for count in (5000, scaled(8000, 12_000))
    )
    assert many - some < scaled(3000, 7000) * 1500 + 4_000_000
