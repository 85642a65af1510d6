"""Gemini CLI and Copilot CLI: their events, their files, and their lines where donewhen is missing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.command_hooks import HookKind, respond_to_event
from donewhen.adapters.dialects import dialect_of
from donewhen.adapters.hook_files import install_hooks, uninstall_hooks
from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen.config.agent_runtimes import agent_runtime, files_with_switches, off_switches
from donewhen.config.hook_line import own_line
from donewhen.config.project_hooks import HookFiles, file_disabling_hooks

LIMIT = 5


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    return folder


def answer(project: Path, runtime: str, kind: HookKind = "stop", **event: object) -> dict[str, Any]:
    known = {"session_id": "s", "cwd": str(project), "stop_hook_active": False}
    return respond_to_event(kind, dialect_of(runtime), json.dumps(known | event), {}, project)


def rows(project: Path) -> list[dict[str, Any]]:
    path = project / ".donewhen" / "state" / "unverified.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# Gemini CLI


def test_gemini_is_counted_although_a_tool_makes_its_field_false_again(project: Path) -> None:
    answers = [answer(project, "gemini", prompt="Write it.", stop_hook_active=number == 2) for number in range(LIMIT)]
    assert {one["decision"] for one in answers} == {"block"}
    assert "UNVERIFIED" in answer(project, "gemini", prompt="Write it.")["systemMessage"]
    assert [row["status"] for row in rows(project)] == ["capped"]


def test_another_message_of_the_person_is_counted_anew_and_so_is_the_same_one_after_a_cap(project: Path) -> None:
    for _ in range(LIMIT + 1):
        answer(project, "gemini", prompt="continue")
    assert answer(project, "gemini", prompt="Write it.")["decision"] == "block"
    for _ in range(LIMIT):
        assert answer(project, "gemini", prompt="continue")["decision"] == "block"
    assert "decision" not in answer(project, "gemini", prompt="continue")


def test_geminis_other_events_are_not_checked(project: Path) -> None:
    assert answer(project, "gemini", "pre-tool-use", tool_name="StructuredOutput") == {}
    assert answer(project, "gemini", prompt=["no", "text"])["decision"] == "block"


def test_the_end_of_a_gemini_session_is_recorded(project: Path) -> None:
    assert answer(project, "gemini", "session-end", reason="exit") == {}
    (row,) = [row for row in rows(project) if row["status"] == "incomplete" and row.get("how")][-1:]
    assert row["how"] == "session-end: exit"


# Copilot CLI


def test_copilot_is_held_and_let_go_after_the_limit(project: Path) -> None:
    answers = [answer(project, "copilot", stop_hook_active=number > 0) for number in range(LIMIT)]
    assert {one["decision"] for one in answers} == {"block"}
    assert "decision" not in answer(project, "copilot", stop_hook_active=True)
    assert len(rows(project)) == 1


def test_the_names_of_both_forms_of_its_events_are_understood(project: Path) -> None:
    one = {"session_id": None, "sessionId": "a"}
    for _ in range(LIMIT + 1):
        answer(project, "copilot", **one, stop_hook_active=True)
    assert answer(project, "copilot", session_id=None, sessionId="b", stop_hook_active=True)["decision"] == "block"


def test_a_sub_agent_of_copilot_has_checks_of_its_own(project: Path) -> None:
    assert answer(project, "copilot", "subagent-stop") == {}
    (project / "donewhen.toml").write_text('[subagent_stop]\nfiles = ["sub.md"]\n')
    assert answer(project, "copilot", "subagent-stop")["decision"] == "block"
    assert answer(project, "copilot", "task-completed") == {}


# The files


def test_copilots_file_has_the_version_that_it_expects_and_goes_again(tmp_path: Path) -> None:
    target = HOOK_TARGETS["copilot"]
    path = target.path("project", tmp_path, {})
    entries = target.entries("project", tmp_path, {})
    install_hooks(path, entries, header=target.header)
    assert json.loads(path.read_text())["version"] == 1
    assert install_hooks(path, entries, header=target.header).nothing
    uninstall_hooks(path, header=target.header)
    assert not path.exists()


def test_a_file_that_was_there_is_restored_byte_for_byte(tmp_path: Path) -> None:
    target = HOOK_TARGETS["copilot"]
    path = target.path("project", tmp_path, {})
    path.parent.mkdir(parents=True)
    path.write_text('{"hooks":   {"sessionStart": []}}')
    install_hooks(path, target.entries("project", tmp_path, {}), header=target.header)
    uninstall_hooks(path, header=target.header)
    assert path.read_text() == '{"hooks":   {"sessionStart": []}}'


def test_a_timeout_in_milliseconds_is_the_same_time_in_the_terms(tmp_path: Path) -> None:
    target = HOOK_TARGETS["gemini"]
    install_hooks(target.path("project", tmp_path, {}), target.entries("project", tmp_path, {}))
    assert [hook.timeout for hook in HookFiles(tmp_path).hooks] == [1800, 60]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (".gemini/settings.json", {"hooksConfig": {"enabled": False}}),
        (".github/hooks/donewhen.json", {"disableAllHooks": True}),
        (".github/copilot/settings.json", {"disableAllHooks": True}),
        (".github/copilot/settings.local.json", {"disableAllHooks": True}),
        (".claude/settings.local.json", {"disableAllHooks": True}),
    ],
)
def test_every_file_that_switches_hooks_off_is_known(tmp_path: Path, name: str, data: dict[str, Any]) -> None:
    assert file_disabling_hooks(tmp_path) is None
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(data))
    assert file_disabling_hooks(tmp_path) == name


def test_settings_that_leave_hooks_on_are_no_switch() -> None:
    gemini = agent_runtime("gemini")
    for data in ({}, {"hooksConfig": {}}, {"hooksConfig": {"enabled": True}}, {"hooksConfig": "x"}):
        assert off_switches(data, gemini) == ()
    assert ".claude/settings.json" in files_with_switches(agent_runtime("copilot"))


# The lines


@pytest.mark.parametrize("name", HOOK_TARGETS)
def test_every_line_of_a_project_is_recognized(tmp_path: Path, name: str) -> None:
    for entry in HOOK_TARGETS[name].entries("project", tmp_path, {}):
        script = HOOK_TARGETS[name].script("project", Path(), {}).as_posix()
        line = own_line(entry.command, script, "donewhen")
        assert line is not None
        assert (line.meaning.runtime, line.meaning.program) == (name, "donewhen")
        assert own_line(f"{entry.command}; true", script, "donewhen") is None


def run_line(name: str, folder: Path, **event: object) -> subprocess.CompletedProcess[str]:
    line = next(entry.command for entry in HOOK_TARGETS[name].entries("project", folder, {}))
    environment = {
        "PATH": os.environ["PATH"],
        "TMPDIR": str(folder),
        "GEMINI_PROJECT_DIR": str(folder),
        "COPILOT_PROJECT_DIR": str(folder),
        "GEMINI_SESSION_ID": "abc",
    }
    return subprocess.run(
        ["bash", "-c", line],
        input=json.dumps(event),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


def write_script(name: str, folder: Path, line: str) -> None:
    path = HOOK_TARGETS[name].script("project", folder, {})
    path.parent.mkdir(parents=True)
    path.write_text(f"{line}\n")


@pytest.mark.parametrize("script", [None, "exit 2", "exit 127"])
def test_without_donewhen_geminis_line_refuses_once_in_a_session(tmp_path: Path, script: str | None) -> None:
    # Another status than 0 or 2 would block it for ever.
    if script is not None:
        write_script("gemini", tmp_path, script)
    assert [run_line("gemini", tmp_path).returncode for _ in range(3)] == [2, 0, 0]


@pytest.mark.parametrize("script", [None, "exit 2", "exit 127"])
def test_without_donewhen_copilots_line_answers_itself(tmp_path: Path, script: str | None) -> None:
    # It lets an agent go at status 2.
    if script is not None:
        write_script("copilot", tmp_path, script)
    done = run_line("copilot", tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["decision"] == "block"
    assert json.loads(done.stdout)["reason"]
