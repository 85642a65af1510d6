"""The test event through a command line, and what is found to disarm it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from donewhen.adapters.hook_files import HookEntry
from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen.config.hook_script import script_for
from donewhen.doctor.canary import canaries, program_on_path, smallest
from donewhen.doctor.hook_settings import RuntimeSettings, read_runtime_settings
from donewhen.doctor.hooks import foreign_hooks
from donewhen.doctor.scratch import folders_used

PROGRAM = str(Path(sys.executable).parent / "donewhen")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    return folder


def install(root: Path, name: str, program: str = PROGRAM, **more: object) -> RuntimeSettings:
    target = HOOK_TARGETS[name]
    hooks: dict[str, list[object]] = {}
    for event, kind, matcher in target.events:
        # As written by earlier versions; the lines of this one start a script.
        entry = HookEntry(event, f"{program} hook {kind} --runtime {name}", 1800, matcher)
        hooks.setdefault(event, []).append(entry.group())
    path = target.path("project", root, {})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": hooks, **more}))
    return read_runtime_settings(target, root, {})


def environment(root: Path, **more: str) -> dict[str, str]:
    path = f"{Path(PROGRAM).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(root.parent / "home"), **more}


def test_the_variables_that_disarm_are_found_among_many() -> None:
    names = [f"V{number}" for number in range(20)]

    def works(left_out: Sequence[str]) -> bool:
        return "V13" in left_out

    assert list(smallest(names, works)) == ["V13"]
    assert set(smallest(names, lambda left_out: {"V2", "V17"} <= set(left_out))) == set(names)


@pytest.mark.parametrize("value", ["PATH", "PYTHONHOME"])
def test_a_variable_of_the_settings_file_that_disarms_the_line_is_named(root: Path, value: str) -> None:
    runtime = install(root, "claude", "donewhen", env={"HARMLESS": "1", value: "/nowhere", "OTHER": "2"})
    by_name = {one.name: one for one in canaries(runtime, "project", environment(root))}
    assert by_name["claude project"].health == "broken"
    assert by_name["claude environment"].detail.startswith(f"{value} in the `env` block")
    assert by_name["claude environment"].next is not None


def test_an_env_block_that_does_no_harm_is_not_reported(root: Path) -> None:
    runtime = install(root, "claude", env={"EDITOR": "vi", "A=B": "bad name", "NUMBER": 1})
    assert [one.health for one in canaries(runtime, "project", environment(root))] == ["ok"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash on this machine")
@pytest.mark.parametrize("line", ["exit 0", "exec true"])
def test_a_start_file_of_the_shell_that_disarms_the_line_is_named(root: Path, line: str) -> None:
    start = root.parent / "start.sh"
    start.write_text(f"{line}\n")
    runtime = install(root, "codex")
    bash = {"SHELL": str(shutil.which("bash")), "HARMLESS": "1"}
    found = list(canaries(runtime, "project", environment(root, BASH_ENV=str(start), **bash)))
    assert [one.health for one in found] == ["broken", "broken"]
    assert found[0].next == "unset BASH_ENV"
    start.write_text("HARMLESS=2\n")
    found = list(canaries(runtime, "project", environment(root, BASH_ENV=str(start), **bash)))
    assert [one.health for one in found] == ["ok"]


def program(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "donewhen").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "donewhen").chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("text", "health"),
    [("echo hello", "broken"), ("exit 1", "broken"), ("echo donewhen 0.0.1", "note")],
)
def test_another_donewhen_first_on_the_path_is_found(root: Path, text: str, health: str) -> None:
    runtime = install(root, "claude", "donewhen")
    path = f"{program(root.parent / 'bin', text)}{os.pathsep}{Path(PROGRAM).parent}{os.pathsep}/usr/bin:/bin"
    (diagnosis,) = program_on_path(runtime, "project", environment(root, PATH=path))
    assert diagnosis.health == health
    assert str(root.parent / "bin" / "donewhen") in diagnosis.detail


def test_this_donewhen_on_the_path_is_not_reported_and_none_is(root: Path) -> None:
    runtime = install(root, "claude", "donewhen")
    here = environment(root, PATH=f"{Path(PROGRAM).parent}{os.pathsep}/usr/bin:/bin")
    assert list(program_on_path(runtime, "project", here)) == []
    if shutil.which("donewhen", path="/usr/bin:/bin") is None:
        (diagnosis,) = program_on_path(runtime, "project", environment(root, PATH="/usr/bin:/bin"))
        assert diagnosis.health == "broken"
    by_path = install(root, "claude", PROGRAM)
    assert list(program_on_path(by_path, "project", environment(root, PATH="/usr/bin:/bin"))) == []


def test_the_program_that_a_script_starts_by_its_name_is_looked_at(root: Path) -> None:
    target = HOOK_TARGETS["claude"]
    install(root, "claude", 'sh "$CLAUDE_PROJECT_DIR"/.claude/donewhen/hook stop --runtime claude || exit 2 #')
    script = target.script("project", root, {})
    script.parent.mkdir()
    script.write_text(script_for("donewhen", ".claude"))
    runtime = read_runtime_settings(target, root, {})
    path = f"{program(root.parent / 'bin', 'echo hello')}{os.pathsep}/usr/bin:/bin"
    (diagnosis,) = program_on_path(runtime, "project", environment(root, PATH=path))
    assert diagnosis.health == "broken"
    script.write_text(script_for(PROGRAM, ".claude"))
    assert list(program_on_path(runtime, "project", environment(root, PATH=path))) == []


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('"$CLAUDE_PROJECT_DIR"/.venv/bin/donewhen hook stop', [".venv"]),
        ("${CLAUDE_PROJECT_DIR}/tools/dw hook stop", ["tools"]),
        ('program() { "$root"/\'my env\'/bin/donewhen "$@"; }', ["my env"]),
        ("/usr/bin/donewhen hook stop", []),
        ("$CLAUDE_PROJECT_DIR/.. hook stop", []),
    ],
)
def test_what_a_line_needs_below_the_project(line: str, names: list[str]) -> None:
    assert folders_used(line, "CLAUDE_PROJECT_DIR") == names


OTHERS = {
    "echo '{\"continue\": false}'": 1,
    'sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/end.sh': 1,
    "echo '{\"continue\": true}'": 0,
    "echo finished; exit 1": 0,
    "cat": 0,
    "exec /nowhere/program": 0,
}


@pytest.mark.parametrize("command", OTHERS)
def test_a_hook_of_others_that_ends_the_turn_is_found_by_running_it_in_a_scratch_project(
    root: Path, command: str
) -> None:
    target = HOOK_TARGETS["claude"]
    path = target.path("project", root, {})
    install(root, "claude")
    data = json.loads(path.read_text())
    data["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": f"touch here; {command}"}]})
    path.write_text(json.dumps(data))
    (path.parent / "hooks").mkdir()
    (path.parent / "hooks" / "end.sh").write_text('echo \'{"continue": false, "stopReason": "x"}\'\n')
    before = sorted(root.rglob("*"))
    found = list(foreign_hooks(read_runtime_settings(target, root, {}), environment(root)))
    assert [one.health for one in found] == ["broken"] * OTHERS[command]
    assert sorted(root.rglob("*")) == before
