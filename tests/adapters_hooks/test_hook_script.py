"""The script that an installed hook starts, in the shells that are there, with a donewhen and without one."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.stop_record import RECORD, ends_by_record, unverified_ends
from donewhen.config.hook_script import NOT_RUN, is_current, program_of, script_for

HANG_GUARD = 100.0
FOLDER = ".codex"
SCRIPT = f"{FOLDER}/donewhen/hook"
SHELLS = [shell for shell in ("dash", "bash", "sh") if shutil.which(shell)]
ECHO = f"{sys.executable} -c 'import sys; sys.stdout.write(sys.stdin.read())'"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a project"
    (folder / SCRIPT).parent.mkdir(parents=True)
    return folder


def run(
    shell: str, project: Path, event: dict[str, Any] | str, kind: str = "stop", program: str = "false"
) -> subprocess.CompletedProcess[str]:
    (project / SCRIPT).write_text(script_for(program, FOLDER))
    return subprocess.run(
        [shell, str(project / SCRIPT), kind, "--runtime", "codex"],
        cwd=project,
        input=event if isinstance(event, str) else json.dumps(event),
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
    )


def waiting_bytes(pipe: int) -> int:
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


def active(**more: Any) -> dict[str, Any]:
    return {"session_id": "s-1", "stop_hook_active": True, **more}


def test_the_event_and_the_answer_pass_through(shell: str, project: Path) -> None:
    event = json.dumps({"text": 'Größe 会 %s \\n $HOME `x` "q" ' + "é" * 200_000}, ensure_ascii=False)
    done = run(shell, project, event, program=ECHO)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == event


def test_without_donewhen_it_refuses_once_and_says_so(shell: str, project: Path) -> None:
    first = run(shell, project, {"session_id": "s-1", "stop_hook_active": False})
    assert (first.returncode, first.stdout, first.stderr) == (2, "", f"{NOT_RUN}\n")
    assert unverified_ends(project / ".donewhen" / "state" / RECORD) == []
    second = run(shell, project, active())
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    (end,) = unverified_ends(project / ".donewhen" / "state" / RECORD)
    assert (end.session, end.status, end.how) == ("s-1", "unverified", "stop")


@pytest.mark.parametrize(
    "event",
    [
        {"last_assistant_message": 'Done. "stop_hook_active": true'},
        {"last_assistant_message": '\\"stop_hook_active": true'},
        {"last_assistant_message": '{"stop_hook_active": true}'},
        {"last_assistant_message": "stop_hook_active"},
        {"tool_input": {"stop_hook_active": True}},
        {"background_tasks": [{"stop_hook_active": True}]},
        {"a": ["}", {"stop_hook_active": True}]},
        {"a": "stop_hook_active", "b": True},
        {"stop_hook_active": "true"},
        {"xstop_hook_active": True},
    ],
    ids=json.dumps,
)
def test_only_the_field_of_the_event_itself_releases(shell: str, project: Path, event: dict[str, Any]) -> None:
    assert run(shell, project, event).returncode == 2


@pytest.mark.parametrize(
    "event",
    [
        json.dumps(active(), separators=(",", ":")),
        json.dumps(active(), indent=4),
        json.dumps({"a": {"b": ["]}", {"c": "\\"}]}} | active()),
        json.dumps({"a": 'x"y', **active()}),
    ],
)
def test_it_finds_the_field_wherever_it_stands(shell: str, project: Path, event: str) -> None:
    assert run(shell, project, event).returncode == 0


@pytest.mark.parametrize("kind", ["session-end", "stop-failure"])
def test_an_end_is_on_record_and_never_an_error(shell: str, project: Path, kind: str) -> None:
    done = run(shell, project, {"session_id": "s-1"}, kind)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [end.how for end in unverified_ends(project / ".donewhen" / "state" / RECORD)] == [kind]


def test_a_stop_and_the_end_of_one_session_are_one_record(shell: str, project: Path) -> None:
    run(shell, project, active())
    run(shell, project, {"session_id": "s-1"}, "session-end")
    assert len(unverified_ends(project / ".donewhen" / "state" / RECORD)) == 1


def test_the_script_of_a_person_or_a_plugin_writes_no_record(shell: str, project: Path) -> None:
    (project / SCRIPT).write_text(script_for("false"))
    command = [shell, str(project / SCRIPT), "session-end"]
    subprocess.run(command, input="{}", cwd=project, text=True, timeout=HANG_GUARD, check=True)
    assert os.listdir(project) == [FOLDER]


def test_where_the_folder_cannot_be_written_the_end_is_in_the_persons_record(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project, other = tmp_path / 'a "project" \\', tmp_path / "other"
    for folder in (project, other):
        (folder / SCRIPT).parent.mkdir(parents=True)
        (folder / ".donewhen").write_text("a file")
        assert run(shell, folder, active()).returncode == 0
    for folder in (project, other):
        ((path, ends),) = ends_by_record(folder).items()
        assert path == tmp_path / "state" / "donewhen" / "ends" / "not-run.jsonl"
        assert [(end.session, end.how) for end in ends] == [("s-1", "stop")]


LARGE = json.dumps({"session_id": "s-1", "last_assistant_message": "Größe {\\" * 30_000, "stop_hook_active": True})
PIECES = {
    "larger than a pipe": [LARGE],
    "in small pieces": ['{"session_id": "s-1", "text": "}', '"', ', "a": {}', ', "stop_hook_active"', ": true", "}"],
    "in pieces that end like an event": ['{"a": {"b": 1}', ', "c": "}"', ', "stop_hook_active": true}\n'],
}


@pytest.mark.parametrize("event", PIECES)
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "left open"])
def test_all_of_an_event_counts_however_it_is_written(
    shell: str, project: Path, event: str, is_closed: bool, tmp_path: Path
) -> None:
    read = tmp_path / "read"
    program = f"sh -c 'cat >{read}; exit 1'" if is_closed else "false"
    (project / SCRIPT).write_text(script_for(program, FOLDER))
    with subprocess.Popen(
        [shell, str(project / SCRIPT), "stop", "--runtime", "codex"], stdin=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        for piece in PIECES[event]:
            rest = piece.encode()
            while rest:
                rest = rest[process.stdin.write(rest) :]
            # The next piece comes when this one was taken.
            while waiting_bytes(process.stdin.fileno()) and process.poll() is None:
                time.sleep(0.001)
        if is_closed:
            process.stdin.close()
        assert process.wait(HANG_GUARD) == 0
    if is_closed:
        assert read.read_text() == "".join(PIECES[event])


@pytest.mark.parametrize("program", ["false", ECHO.replace("sys.stdin.read()", "sys.stdin.readline()")])
def test_it_answers_although_the_runtime_keeps_the_stream_open(shell: str, project: Path, program: str) -> None:
    (project / SCRIPT).write_text(script_for(program, FOLDER))
    with subprocess.Popen(
        [shell, str(project / SCRIPT), "stop", "--runtime", "codex"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"session_id": "s-1"}\n')
        process.stdin.flush()
        assert process.wait(HANG_GUARD) == (2 if program == "false" else 0)
        assert process.stdout.read() == ("" if program == "false" else '{"session_id": "s-1"}\n')


def test_a_stream_that_is_closed_without_an_event_is_refused(shell: str, project: Path) -> None:
    assert run(shell, project, "").returncode == 2


def test_what_donewhen_says_on_status_0_is_the_answer_and_any_other_status_is_a_refusal(project: Path) -> None:
    for status in (1, 2, 3, 137):
        program = f"sh -c 'cat >/dev/null; exit {status}'"
        assert run("sh", project, {}, program=program).returncode == 2


def test_the_program_of_a_changed_script_is_not_known() -> None:
    assert program_of(script_for("donewhen")) == "donewhen"
    assert program_of(script_for("donewhen").replace("exit 2", "exit 0")) is None
    assert program_of("") is None
    assert is_current(script_for("donewhen", ".claude"))
    assert not is_current(script_for("donewhen").replace("exit 2", "exit 0"))
    assert not is_current("")


def test_the_script_is_plain_shell(project: Path, tmp_path: Path) -> None:
    # Nothing but what POSIX has: the tools, and no features of bash.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("dd", "cat", "sed", "awk", "mkdir", "date", "sleep", "false", "sh"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    (project / SCRIPT).write_text(script_for("false", FOLDER))
    done = subprocess.run(
        ["/bin/sh", str(project / SCRIPT), "stop"],
        input=json.dumps(active()),
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(project / ".donewhen" / "state") == ["unverified.jsonl"]
