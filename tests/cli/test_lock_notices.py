"""A command that waits for another says so on standard error, and its answer on standard output stays as it is."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import donewhen.foundation.locks as locks_module
from donewhen.cli import main
from donewhen.foundation.current_command import current_command
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen_kit import run_main
from sentences import assert_sentences

HOLD = """
import sys
from pathlib import Path
from donewhen.foundation.current_command import name_command
from donewhen.foundation.locks import locked
name_command("complete", ["WI-12"])
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


class FakeTime:
    """A clock that only goes on while somebody sleeps."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_command_that_waits_for_a_lock_names_its_holder_once_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    workspace = create_project(tmp_path, "Shop")
    job = add_job(workspace, "Parser")
    lock = workspace.folder / "state" / "locks" / f"{job.id}.lock"
    argv = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        monkeypatch.setattr(locks_module, "time", FakeTime())
        done = run_main(["block", job.id, "--reason", "no access", *options], cwd=tmp_path)
        holder.kill()
    named = f"held by process {holder.pid} (donewhen complete WI-12)"
    assert done.returncode == ExitCode.INTERNAL
    notices = [line for line in done.stderr.splitlines() if "Waiting for the lock" in line]
    assert len(notices) == 1
    assert named in notices[0]
    assert_sentences(done.stderr)
    if options:
        finding = json.loads(done.stdout)["findings"][0]
        assert finding["code"] == "locked"
        assert named in finding["message"]
    else:
        assert done.stdout == ""


def test_a_command_writes_its_verb_and_the_job_into_the_lock_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = create_project(tmp_path, "Shop")
    job = add_job(workspace, "Parser")
    texts: list[str] = []
    clear = locks_module._clear_holder

    def kept(descriptor: int, holder: int) -> None:
        texts.append(os.pread(descriptor, 1000, 0).decode())
        clear(descriptor, holder)

    monkeypatch.setattr(locks_module, "_clear_holder", kept)
    run_main(["block", job.id, "--reason", "the password is hunter2"], cwd=tmp_path)
    assert {text.split("\n", 1)[1] for text in texts} == {f"donewhen block {job.id}\n"}


def test_without_a_command_line_a_notice_is_not_written_to_stdout() -> None:
    script = "from donewhen.foundation.notices import notify; notify('Waiting.')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "Waiting.\n")


@pytest.mark.parametrize("arguments", [["status", "--json"], ["hook", "stop", "--runtime", "claude"]])
def test_a_program_that_goes_on_after_a_command_no_longer_runs_it(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    main(arguments)
    assert current_command() is None
