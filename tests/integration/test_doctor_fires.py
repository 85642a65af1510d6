"""``donewhen doctor`` starts the real clients, and proves that an installed hook holds them or not."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_kit import bundled_cli

from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen_kit import run_main

CODEX = Path(sys.prefix) / "codex" / "node_modules" / ".bin" / "codex"


class Machine:
    """A person's project and home, and a PATH with the real client."""

    def __init__(self, folder: Path, name: str, client: Path) -> None:
        self.name = name
        self.root = folder / "project"
        self.home = folder / "home"
        self.temporary = folder / "tmp"
        programs = folder / "bin"
        for new in (self.root, self.home, self.temporary, programs):
            new.mkdir()
        (programs / name).symlink_to(client)
        node = shutil.which("node") or "/usr/bin/node"
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(programs), str(Path(node).parent), "/usr/bin", "/bin"]),
            "TMPDIR": str(self.temporary),
            "ANTHROPIC_API_KEY": "sk-ant-the-persons-own",
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/the-persons-own",
        }
        (self.root / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
        done = self.donewhen("hooks", "install", f"--{name}")
        assert done.returncode == 0, done.stderr

    def donewhen(self, *arguments: str) -> Any:
        return run_main(arguments, self.root, self.environment)

    def doctor(self) -> dict[str, dict[str, Any]]:
        data = json.loads(self.donewhen("doctor", "--json").stdout)
        return {one["name"]: one for one in data["data"]["diagnoses"] if one["name"].startswith(self.name)}

    @property
    def settings(self) -> Path:
        return HOOK_TARGETS[self.name].path("project", self.root, {})

    def edit(self, change: Callable[[dict[str, Any]], object]) -> None:
        data = json.loads(self.settings.read_text())
        change(data)
        self.settings.write_text(json.dumps(data))


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return _machine(tmp_path, monkeypatch, "claude", bundled_cli())


def _machine(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, client: Path) -> Machine:
    machine = Machine(folder, name, client)
    # The process of the tests has asked for this folder before.
    monkeypatch.setattr(tempfile, "tempdir", str(machine.temporary))
    return machine


@pytest.mark.claude
def test_claude_code_is_held_and_nothing_is_left_behind(claude: Machine) -> None:
    # Keys and addresses of the person's settings stay outside of the scratch home.
    claude.edit(lambda data: data.update(env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "own"}))
    before = sorted(claude.root.rglob("*")), sorted(claude.home.rglob("*"))
    found = claude.doctor()
    assert found["claude fired"]["health"] == "ok", found
    assert (sorted(claude.root.rglob("*")), sorted(claude.home.rglob("*"))) == before
    assert not list(claude.temporary.glob("donewhen-doctor-*"))


@pytest.mark.claude
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data["hooks"]["Stop"][0]["hooks"][0].update({"async": True}), "claude project async"),
        (lambda data: data["hooks"]["Stop"][0]["hooks"][0].update({"if": "Bash(x)"}), "claude project condition"),
        (lambda data: data.update(disableAllHooks=True), "claude project switched off"),
        (
            lambda data: data["hooks"]["Stop"].append(
                {"hooks": [{"type": "command", "command": "echo '{\"continue\": false}'"}]}
            ),
            "claude project other hook",
        ),
    ],
    ids=["async", "if", "disableAllHooks", "continue false"],
)
def test_a_dead_hook_of_claude_code_is_proven_dead_and_the_reason_is_found(
    claude: Machine, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    claude.edit(change)
    found = claude.doctor()
    assert found["claude fired"]["health"] == "broken"
    assert found[reason]["health"] == "broken"
    assert found[reason]["next"]


@pytest.mark.claude
@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(permissions={"allow": "Bash(ls)"}),
        lambda data: data["hooks"]["PreToolUse"].append({"matcher": 5, "hooks": []}),
        lambda data: data.update(env=["A=1"]),
    ],
    ids=["permissions", "another hook", "env"],
)
def test_a_mistake_for_which_the_client_ignores_the_whole_file_is_found(
    claude: Machine, change: Callable[[dict[str, Any]], object]
) -> None:
    claude.edit(change)
    found = claude.doctor()["claude project rejected"]
    assert found["health"] == "broken"
    assert str(claude.settings) in found["detail"]
    assert found["next"]


@pytest.mark.claude
def test_settings_that_the_client_accepts_are_not_reported_and_nothing_of_them_is_run(claude: Machine) -> None:
    ran = claude.home / "ran"
    line = f"touch {ran}; echo key"
    claude.edit(
        lambda data: data.update(
            permissions={"allow": ["Bash(ls)"], "defaultMode": "acceptEdits"},
            apiKeyHelper=line,
            statusLine={"type": "command", "command": line},
            enabledPlugins={"a@b": True},
            env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "A": 1},
        )
    )
    claude.edit(lambda data: data["hooks"].update(SessionStart=[{"hooks": [{"type": "command", "command": line}]}]))
    claude.edit(lambda data: data["hooks"].update(Nonsense=[{"hooks": []}]))
    found = claude.doctor()
    assert not {name: one for name, one in found.items() if one["health"] == "broken"}
    assert not ran.exists()


@pytest.mark.claude
@pytest.mark.parametrize("place", ["the environment", "the settings"])
def test_a_variable_of_the_client_that_disarms_hooks_is_named(claude: Machine, place: str) -> None:
    variable = {"CLAUDE_CODE_SHELL_PREFIX": shutil.which("true") or "/bin/true"}
    if place == "the settings":
        claude.edit(lambda data: data.update(env=variable))
    else:
        claude.environment |= variable
    found = claude.doctor()["claude environment"]
    assert found["health"] == "broken"
    assert "CLAUDE_CODE_SHELL_PREFIX" in found["detail"]
    assert place in found["detail"]


@pytest.mark.claude
def test_a_hook_of_others_that_says_nothing_is_not_blamed(claude: Machine) -> None:
    claude.edit(lambda data: data["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "true"}]}))
    found = claude.doctor()
    assert found["claude fired"]["health"] == "ok"
    assert "claude project other hook" not in found


@pytest.mark.claude
def test_clients_are_not_started_when_the_person_says_so(claude: Machine) -> None:
    data = json.loads(claude.donewhen("doctor", "--json", "--no-clients").stdout)
    assert not [one for one in data["data"]["diagnoses"] if one["name"].endswith("fired")]


@pytest.mark.codex
def test_codex_is_held_and_a_line_that_does_nothing_is_proven_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not CODEX.exists():
        pytest.skip("LOUD: the Codex CLI is not installed, so doctor is NOT tested with it (make test does it)")
    codex = _machine(tmp_path, monkeypatch, "codex", CODEX.resolve())
    assert codex.doctor()["codex fired"]["health"] == "ok"
    codex.edit(lambda data: data["hooks"]["Stop"][0]["hooks"][0].update(command=": donewhen hook stop --runtime codex"))
    assert codex.doctor()["codex fired"]["health"] == "broken"


def test_without_the_client_nothing_is_fired_and_that_is_said(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "codex", Path("/nowhere/codex"))
    found = machine.doctor()["codex fired"]
    assert found["health"] == "note"
    assert found["detail"].startswith("not fired: codex is not installed")


@pytest.mark.parametrize(
    "name", [pytest.param("gemini", marks=pytest.mark.gemini), pytest.param("copilot", marks=pytest.mark.copilot)]
)
def test_the_other_clients_are_held_and_a_switch_that_is_off_is_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    program = Path(sys.prefix) / "node-clients" / "node_modules" / ".bin" / name
    if not program.exists():
        pytest.skip(f"LOUD: {name} is not installed, so doctor is NOT tested with it (make test does it)")
    machine = _machine(tmp_path, monkeypatch, name, program.resolve())
    assert machine.doctor()[f"{name} fired"]["health"] == "ok"
    off = {"gemini": {"hooksConfig": {"enabled": False}}, "copilot": {"disableAllHooks": True}}[name]
    machine.edit(lambda data: data.update(off))
    found = machine.doctor()
    assert found[f"{name} fired"]["health"] == "broken"
    assert found[f"{name} project switched off"]["health"] == "broken"
