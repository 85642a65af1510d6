"""The ledger when things go wrong: many writers, killed writers and a full disk, all of them real."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.ledger import Ledger

pytestmark = pytest.mark.timeout(3600 if "DONEWHEN_SOAK_ROUNDS" in os.environ else 600)

ROUNDS = int(os.environ.get("DONEWHEN_SOAK_ROUNDS", "40"))
ME = Actor("me")

APPEND = """
import sys
from pathlib import Path
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.ledger import Ledger
folder, name, count, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
ledger = Ledger(folder / "ledger", folder / "locks")
for number in range(count):
    entry = ledger.append("WI-1", "ran", {"who": name, "n": number, "text": "x" * size}, Actor(name))
    print(entry.hash, flush=True)
"""


def writer(folder: Path, name: str, count: int, size: int = 10) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", APPEND, str(folder), name, str(count), str(size)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ledger_in(folder: Path) -> Ledger:
    return Ledger(folder / "ledger", folder / "locks")


def test_eight_processes_append_to_one_chain_and_nothing_is_lost(tmp_path: Path) -> None:
    writers = [writer(tmp_path, f"w{number}", 25) for number in range(8)]
    ends = [process.communicate() for process in writers]
    assert [process.returncode for process in writers] == [0] * 8, ends
    reported = [line for out, _ in ends for line in out.split()]
    chain = ledger_in(tmp_path).read("WI-1")
    assert chain.breaks == ()
    assert [entry.seq for entry in chain.entries] == list(range(1, 201))
    assert sorted(reported) == sorted(entry.hash for entry in chain.entries)
    for number in range(8):
        assert [entry.data["n"] for entry in chain.entries if entry.by.name == f"w{number}"] == list(range(25))


def test_a_writer_killed_at_any_moment_loses_nothing_that_it_reported(tmp_path: Path) -> None:
    chance = random.Random(20260214)
    reported: list[str] = []
    ledger = ledger_in(tmp_path)
    path = tmp_path / "ledger" / "WI-1.jsonl"
    torn = b""
    for number in range(ROUNDS):
        process = writer(tmp_path, f"w{number}", 100_000, chance.choice([10, 3_000, 200_000]))
        assert process.stdout is not None
        reported.append(process.stdout.readline().strip())
        # By then it is in the midst of the next; how far decides nothing here, only what is tried.
        timer = threading.Timer(chance.random() * 0.02, process.send_signal, [signal.SIGKILL])
        timer.start()
        # Not communicate(): it would skip what readline() has buffered.
        reported += process.stdout.read().split()
        timer.join()
        assert process.wait() == -signal.SIGKILL
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        content = path.read_bytes()
        whole, tail = content[: content.rfind(b"\n") + 1], content[content.rfind(b"\n") + 1 :]
        chain = ledger.read("WI-1")
        assert [failure.line for failure in chain.breaks] == ([whole.count(b"\n") + 1] if tail else [])
        assert set(reported) <= {entry.hash for entry in chain.entries}
        reported.append(ledger.append("WI-1", "decided", {"round": number}, ME).hash)
        torn += tail + b"\n" if tail else b""
        assert ledger.read("WI-1").breaks == ()
    aside = path.with_suffix(".torn")
    assert (aside.read_bytes() if aside.exists() else b"") == torn
    hashes = [entry.hash for entry in ledger.read("WI-1").entries]
    # What was written but not yet reported may be there too: at most one a round.
    assert [entry_hash for entry_hash in hashes if entry_hash in set(reported)] == reported
    assert len(hashes) <= len(reported) + ROUNDS


HALF = """
import os, signal, sys
from pathlib import Path
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.ledger import Ledger
folder, many = Path(sys.argv[1]), int(sys.argv[2])
write = os.write
def half(descriptor, data):
    write(descriptor, data[:many])
    os.kill(os.getpid(), signal.SIGKILL)
os.write = half
Ledger(folder / "ledger", folder / "locks").append("WI-1", "ran", {"text": "lost"}, Actor("me"))
"""


@pytest.mark.parametrize("many", [0, 1, 50, 10_000], ids=["nothing", "a byte", "half", "all"])
@pytest.mark.parametrize("before", [0, 3])
def test_a_writer_killed_within_a_line_leaves_a_tail_that_is_set_aside(tmp_path: Path, many: int, before: int) -> None:
    ledger = ledger_in(tmp_path)
    entries = [ledger.append("WI-1", "ran", {"n": number}, ME) for number in range(before)]
    path = tmp_path / "ledger" / "WI-1.jsonl"
    size = path.stat().st_size if before else 0
    done = subprocess.run([sys.executable, "-c", HALF, str(tmp_path), str(many)], check=False)
    assert done.returncode == -signal.SIGKILL
    tail = path.read_bytes()[size:]
    if tail.endswith(b"\n"):
        entries.append(ledger.read("WI-1").entries[-1])
        tail = b""
    entries.append(ledger.append("WI-1", "ran", {"text": "kept"}, ME))
    chain = ledger.read("WI-1")
    assert (list(chain.entries), chain.breaks) == (entries, ())
    aside = path.with_suffix(".torn")
    assert (aside.read_bytes() if aside.exists() else b"") == (tail + b"\n" if tail else b"")


FULL = """
import resource, sys
from pathlib import Path
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.ledger import Ledger
folder, room = Path(sys.argv[1]), int(sys.argv[2])
path = folder / "ledger" / "WI-1.jsonl"
size = path.stat().st_size if path.exists() else 0
resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    Ledger(folder / "ledger", folder / "locks").append("WI-1", "ran", {"text": "x" * 5000}, Actor("me"))
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize("room", [0, 1, 300, 5000])
@pytest.mark.parametrize("before", [0, 3])
def test_a_disk_that_is_full_fails_loudly_and_leaves_the_chain_as_before(
    tmp_path: Path, room: int, before: int
) -> None:
    ledger = ledger_in(tmp_path)
    for number in range(before):
        ledger.append("WI-1", "ran", {"n": number}, ME)
    path = tmp_path / "ledger" / "WI-1.jsonl"
    content = path.read_bytes() if before else b""
    chain = ledger.read("WI-1")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), str(room)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == os.strerror(errno.EFBIG), done.stderr
    assert path.read_bytes() == content
    assert ledger.read("WI-1") == chain
    assert ledger.append("WI-1", "ran", {}, ME).seq == before + 1
    assert not path.with_suffix(".torn").exists()


def test_a_torn_tail_that_cannot_be_set_aside_is_not_thrown_away(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    ledger.append("WI-1", "ran", {}, ME)
    path = tmp_path / "ledger" / "WI-1.jsonl"
    with path.open("ab") as file:
        file.write(b"torn" * 10)
    path.with_suffix(".torn").mkdir()
    before = path.read_bytes()
    with pytest.raises(OSError, match="directory"):
        ledger.append("WI-1", "ran", {}, ME)
    assert path.read_bytes() == before
