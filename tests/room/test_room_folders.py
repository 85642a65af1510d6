"""The folders of rooms: shared by processes, left by killed ones, on disks that are full."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.jobs.evidence.room_session import room_session
from donewhen.jobs.plan.job import Job
from donewhen.jobs.room.own_folders import RoomError, kept_folder, own_folder, sweep, temporary_folder
from donewhen.jobs.room.surroundings import Surroundings
from donewhen_kit import quiet_environment
from room.checkout_kit import Checkout, outcome

_PATIENCE = 40.0


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all rooms, for this test alone."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return own_folder()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "shop")


def started(checkout: Checkout, *arguments: str, before: str = "") -> subprocess.Popen[str]:
    """Start donewhen in a process of its own."""
    command = f"{before}exec {shlex.join([sys.executable, '-m', 'donewhen', *arguments])}"
    return subprocess.Popen(
        ["sh", "-c", command],
        cwd=checkout.root,
        env=quiet_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def temporary(base: Path) -> list[str]:
    """The folders that are not kept for the next time."""
    return [path.name for path in base.glob("tmp-*")]


def types(checkout: Checkout, job: Job) -> list[str]:
    return [entry.type for entry in checkout.workspace.ledger.read(job.id).entries]


def test_two_jobs_complete_at_once_in_one_project(checkout: Checkout, base: Path) -> None:
    # Each check waits until the other one runs, too. It sees nothing but its room, so it is told there.
    script = "touch src/running\nwhile ! test -e src/go; do sleep 0.05; done\necho written > left.txt"
    first = checkout.add(script)
    second = checkout.add(script)
    checkout.agree(first)
    checkout.agree(second)
    checkout.write("src/done.txt", "The parser reads every line of the log.\n")
    processes = [started(checkout, "complete", job.id) for job in (first, second)]
    until(lambda: len([*base.glob("*/*/src/running")]) == 2)
    for running in base.glob("*/*/src/running"):
        running.with_name("go").touch()
    outputs = [process.communicate(timeout=_PATIENCE)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert types(checkout, first)[-1] == types(checkout, second)[-1] == "completed"
    assert temporary(base) == []


def test_what_a_killed_complete_leaves_disturbs_no_other(checkout: Checkout, base: Path) -> None:
    check = """\
test ! -e src/late.txt
test -e src/slow || exit 0
mkfifo src/alive
exec 3> src/alive
while true; do sleep 0.02; done
"""
    job = checkout.add(check)
    checkout.agree(job)
    checkout.write("src/slow", "")
    checkout.write("src/done.txt", "The parser reads every line of the log.\n")
    process = started(checkout, "complete", job.id)
    until(lambda: [*base.glob("*/*/src/alive")] != [])
    (alive,) = base.glob("*/*/src/alive")
    with alive.open("rb") as pipe:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if sys.platform == "linux":
            # Nobody has it open for writing any more: the check has ended with the process that has started it.
            assert pipe.read() == b""
    assert types(checkout, job) == ["agreed", "started"]
    (checkout.root / "src/slow").unlink()
    with room_session(checkout.workspace, job) as session:
        assert session is not None
        assert session.run_first(("sh", "check.sh"), Surroundings(quiet_environment()), _PATIENCE).passed
        assert not alive.parent.exists()
        # Where nothing ends the processes of a check, they may still write to where their room was.
        alive.parent.mkdir(parents=True, exist_ok=True)
        (alive.parent / "late.txt").write_text("late")
        assert session.run_first(("sh", "check.sh"), Surroundings(quiet_environment()), _PATIENCE).passed
    assert outcome(checkout, job) == (True, "", [])


def test_a_folder_is_used_again_unless_its_process_was_killed(base: Path, tmp_path: Path) -> None:
    with kept_folder("first", tmp_path) as folder:
        (folder / "a.txt").touch()
    with kept_folder("first", tmp_path) as again:
        assert (again / "a.txt").exists()
        # Somebody else gets another one meanwhile.
        with kept_folder("first", tmp_path) as other:
            assert other != again
    assert not other.exists()
    program = (
        "import os, sys, pathlib\nfrom donewhen.jobs.room.own_folders import kept_folder\n"
        "with kept_folder('first', pathlib.Path(sys.argv[1])):\n    os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, env=quiet_environment())
    with kept_folder("first", tmp_path) as new:
        assert not (new / "a.txt").exists()


def test_folders_of_killed_processes_and_of_projects_that_are_gone_are_removed(base: Path, tmp_path: Path) -> None:
    gone, still = tmp_path / "gone", tmp_path / "still"
    for project in (gone, still):
        project.mkdir()
        with kept_folder(project.name, project) as folder:
            (folder / "a.txt").touch()
    program = (
        "import os\nfrom donewhen.jobs.room.own_folders import temporary_folder\n"
        "with temporary_folder('forms'):\n    os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=quiet_environment())
    gone.rmdir()
    with temporary_folder("used") as used:
        sweep(base)
        left = {path.name.partition("still-")[0] or "still" for path in base.iterdir() if path.is_dir()}
        assert left == {"still", used.name}
    old = time.time() - 15 * 24 * 3600
    os.utime(base / "still.lock", (old, old))
    sweep(base)
    assert [*base.iterdir()] == []


@pytest.mark.parametrize("size", ["committed", "work"])
def test_a_full_disk_is_an_error_that_records_nothing(checkout: Checkout, base: Path, size: str) -> None:
    content = os.urandom(3 << 20)
    if size == "committed":
        checkout.write("data/large.bin", content)
    job = checkout.add("true")
    checkout.agree(job)
    checkout.write("src/done.txt", "The parser reads every line of the log.\n")
    if size == "work":
        checkout.write("src/large.bin", content)
    before = types(checkout, job)
    # No file can get larger than a megabyte, as if there was no space for it.
    process = started(checkout, "complete", job.id, before="ulimit -f 2048; ")
    output = process.communicate(timeout=_PATIENCE)[0]
    assert process.returncode not in (0, 70), output
    assert "TMPDIR" in output
    assert "Traceback" not in output
    assert types(checkout, job) == before
    assert outcome(checkout, job) == (True, "", [])


def test_a_folder_that_can_not_be_written_is_an_error_that_records_nothing(checkout: Checkout, base: Path) -> None:
    job = checkout.add("true")
    checkout.agree(job)
    before = types(checkout, job)
    base.rename(base.with_name("moved"))
    base.write_text("no folder")
    with pytest.raises(RoomError):
        checkout.finish(job)
    assert types(checkout, job) == before
    base.unlink()
    assert outcome(checkout, job) == (True, "", [])
