"""A pipe, a device, a folder or a link in any place that a hook reads never hangs it, and releases no agent."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gate_kit import Shop

from donewhen.adapters import command_hooks
from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect
from donewhen.adapters.command_hooks import respond_to_event
from donewhen.completion import job_checker
from donewhen.foundation.deadline import DeadlineError, within
from donewhen.jobs.plan.job import Job

pytestmark = pytest.mark.scenes

LIMIT = 25.0
"""Seconds within which a hook has answered on a loaded machine, far below its time limits and those of git."""
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@localhost")
# Reads the hook's event like a runtime's process would get it, notes every file that is opened, and answers.
_NOTING = """
import sys, json, os
root = os.path.realpath(sys.argv[1])
opened = set()
def note(event, given):
    if event == "open" and isinstance(given[0], (str, bytes)):
        opened.add(os.path.realpath(os.fsdecode(given[0])))
sys.addaudithook(note)
from donewhen.cli import main
main(["hook", "stop", "--runtime", "claude"])
sys.stderr.write(json.dumps(sorted(name for name in opened if os.path.isfile(name))))
"""


class Project(Shop):
    """A project in git with a job in progress that has run once, and a stop hook that looks after it."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
        super().__init__(root)
        self.write("donewhen.toml", "[stop]\njobs = true\n")
        self.write("pyproject.toml", "[tool.other]\n")
        subprocess.run(["git", "add", "-A"], cwd=root, check=True)
        subprocess.run(["git", *IDENTITY, "commit", "-qm", "all"], cwd=root, check=True)
        self.open: Job = self.job()
        self.run("run", self.open.id)

    def event(self) -> str:
        return json.dumps({"session_id": "s", "cwd": str(self.root), "hook_event_name": "Stop"})

    def reads(self) -> list[str]:
        """The files in the project and in the state folder of the person that a stop hook opens."""
        done = subprocess.run(
            [sys.executable, "-c", _NOTING, str(self.root)],
            cwd=self.root,
            input=self.event(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert json.loads(done.stdout)["decision"] == "block", done.stderr
        state = os.path.realpath(os.environ["XDG_STATE_HOME"])
        names = json.loads(done.stderr)
        return [name for name in names if name.startswith((os.path.realpath(self.root) + "/", state + "/"))]

    def hook(self) -> tuple[bool, float]:
        """Whether a stop hook refuses, and how long it takes."""
        start = time.monotonic()
        answer = respond_to_event("stop", ClaudeCodeDialect(), self.event(), {}, self.root)
        return answer.get("decision") == "block", time.monotonic() - start


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "shop")


@contextlib.contextmanager
def replaced(path: Path, kind: str) -> Iterator[None]:
    """Something else in the place of a file."""
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("nowhere")
    try:
        yield
    finally:
        path.rmdir() if kind == "folder" and path.is_dir() else path.unlink(missing_ok=True)
        aside.rename(path)


def test_a_pipe_in_each_place_that_a_hook_reads_neither_hangs_it_nor_releases_the_agent(project: Project) -> None:
    names = project.reads()
    read = {Path(name).name for name in names}
    assert {"donewhen.toml", "plan.md", f"{project.open.id}.jsonl", "HEAD"} <= read
    assert any("heads" in name for name in names)
    for name in names:
        with replaced(Path(name), "pipe"):
            held, seconds = project.hook()
            assert held, name
            assert seconds < LIMIT, name
    assert project.hook()[0]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link"])
def test_a_chain_that_is_no_regular_file_is_an_error_of_the_gate_at_once(project: Project, kind: str) -> None:
    with replaced(project.ledger(project.open), kind):
        answer = respond_to_event("stop", ClaudeCodeDialect(), project.event(), {}, project.root)
        assert answer["decision"] == "block"
        assert str(answer["reason"]).startswith("gate_error")
        checked = project.run("check", "--json")
        assert (checked.returncode, '"gate_error"' in checked.stdout) == (3, True)
        done = project.run("complete", project.open.id)
        assert done.returncode != 0
        assert "<promise>" not in done.stdout


@pytest.mark.parametrize("name", ["state", "state/locks", "ledger", "evidence"])
def test_a_pipe_instead_of_a_folder_hangs_nothing(project: Project, name: str) -> None:
    with replaced(project.workspace.folder / name, "pipe"):
        held, seconds = project.hook()
    assert held
    assert seconds < LIMIT


def test_git_files_that_would_hang_git_hang_no_hook(project: Project) -> None:
    for name in ("config", "index", "HEAD"):
        with replaced(project.root / ".git" / name, "pipe"):
            held, seconds = project.hook()
            assert held, name
            assert seconds < LIMIT, name


def test_a_file_system_that_does_not_answer_ends_in_a_refusal(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A pipe whose writer never writes, opened without any of the precautions, as a file on such a mount is.
    os.mkfifo(tmp_path / "mount")
    writer = os.open(tmp_path / "mount", os.O_RDWR)
    monkeypatch.setattr(job_checker, "READING", 0.5)
    monkeypatch.setattr(job_checker.JobChecker, "_check", lambda *_: (tmp_path / "mount").read_bytes())
    try:
        answer = respond_to_event("stop", ClaudeCodeDialect(), project.event(), {}, project.root)
    finally:
        os.close(writer)
    assert answer["decision"] == "block"
    assert "gate_error" in str(answer["reason"])
    assert "did not end within 0.5 seconds" in str(answer["reason"])


def test_settings_that_do_not_answer_end_in_a_refusal(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "mount")
    writer = os.open(tmp_path / "mount", os.O_RDWR)
    monkeypatch.setattr(command_hooks, "READING", 0.5)
    monkeypatch.setattr(command_hooks, "load", lambda _: (tmp_path / "mount").read_bytes())
    try:
        answer = respond_to_event("stop", ClaudeCodeDialect(), project.event(), {}, project.root)
    finally:
        os.close(writer)
    assert answer["decision"] == "block"


def test_attempts_that_can_not_be_counted_hold_the_agent_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "mount")
    writer = os.open(tmp_path / "mount", os.O_RDWR)
    monkeypatch.setattr(command_hooks, "COUNTING", 0.5)
    monkeypatch.setattr(command_hooks, "has_settings", lambda _: (tmp_path / "mount").read_bytes())
    monkeypatch.setattr(command_hooks, "_decided", lambda *_: (tmp_path / "mount").read_bytes())
    event = json.loads(project.event())
    try:
        first = respond_to_event("stop", ClaudeCodeDialect(), json.dumps(event), {}, project.root)
        again = json.dumps(event | {"stop_hook_active": True})
        second = respond_to_event("stop", ClaudeCodeDialect(), again, {}, project.root)
    finally:
        os.close(writer)
    assert first["decision"] == "block"
    assert "UNVERIFIED" in second["systemMessage"]


def test_an_event_that_never_comes_ends_in_a_refusal_and_the_process_ends(project: Project) -> None:
    program = (
        "import sys; import donewhen.cli.hook as h; h.EVENT = 0.5; sys.exit(h.main(['stop', '--runtime', 'claude']))"
    )
    reader, writer = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=project.root, stdin=reader, capture_output=True, text=True, timeout=120
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert done.returncode == 0, done.stderr
    assert "sent no event" in json.loads(done.stdout)["reason"]
    assert "Fatal" not in done.stderr


def test_a_lock_that_is_waited_for_names_its_holder_once_on_standard_error(project: Project, tmp_path: Path) -> None:
    locks = project.workspace.folder / "state" / "locks"
    lock = locks / f"{project.open.id}.lock"
    holding = (
        "import sys, time; from pathlib import Path; from donewhen.foundation.locks import locked\n"
        "from donewhen.foundation.current_command import name_command\n"
        "name_command('complete', ['WI-20260101-001'])\n"
        "with locked(Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", holding, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    waiting = subprocess.Popen(
        [sys.executable, "-m", "donewhen", "block", project.open.id, "--reason", "It waits."],
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stderr is not None
    line = waiting.stderr.readline()
    holder.communicate("")
    _, rest = waiting.communicate(timeout=60)
    assert f"process {holder.pid} (donewhen complete WI-20260101-001)" in line
    assert "Waiting for the lock" in line
    assert "Waiting for the lock" not in rest


def test_work_within_a_deadline_gives_its_value_its_error_or_the_end_of_waiting() -> None:
    assert within(60, lambda: 7, what="counting") == 7
    with pytest.raises(KeyError):
        within(60, lambda: {}["missing"], what="looking")
    with pytest.raises(DeadlineError, match=r"Waiting for nothing did not end within 0\.05 seconds"):
        within(0.05, time.sleep, 2, what="waiting for nothing")
