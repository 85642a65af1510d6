"""Installing again repairs what donewhen owns in a settings file, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.hook_files import install_hooks, uninstall_hooks
from donewhen.adapters.hook_targets import HOOK_TARGETS

Json = dict[str, Any]
CLAUDE = HOOK_TARGETS["claude"]
FOREIGN = {"hooks": [{"type": "command", "command": "say finished", "async": True, "if": "x"}]}


def stop(data: Json) -> Json:
    hook: Json = data["hooks"]["Stop"][0]["hooks"][0]
    return hook


def misplace(data: Json) -> None:
    data["hooks"]["Stop"][0] = stop(data)


DEAD: dict[str, Callable[[Json], object]] = {
    "async": lambda data: stop(data).update({"async": True}),
    "a condition": lambda data: stop(data).update({"if": "Bash(x)"}),
    "an unknown key": lambda data: stop(data).update({"once": True, "shell": "fish"}),
    "another type": lambda data: stop(data).update(type="prompt"),
    "a timeout that is a text": lambda data: stop(data).update(timeout="1"),
    "a matcher": lambda data: data["hooks"]["Stop"][0].update(matcher="Bash"),
    "another event": lambda data: data["hooks"].update(Stopp=data["hooks"].pop("Stop")),
    "no group": misplace,
    "nothing": lambda data: None,
}


@pytest.mark.parametrize("name", DEAD)
def test_a_dead_entry_is_repaired(tmp_path: Path, name: str) -> None:
    path = tmp_path / "settings.json"
    entries = CLAUDE.entries("project", tmp_path, {})
    install_hooks(path, entries)
    good = json.loads(path.read_text())
    data = json.loads(path.read_text())
    DEAD[name](data)
    data["hooks"].setdefault("Stop", []).append(FOREIGN)
    path.write_text(json.dumps(data))
    install_hooks(path, entries)
    repaired = json.loads(path.read_text())
    assert FOREIGN in repaired["hooks"]["Stop"]
    repaired["hooks"]["Stop"].remove(FOREIGN)
    assert repaired == good
    uninstall_hooks(path)
    assert json.loads(path.read_text()) == {"hooks": {"Stop": [FOREIGN]}}


@pytest.mark.parametrize("version", [2, "1", None])
def test_the_format_of_the_file_is_repaired(tmp_path: Path, version: object) -> None:
    copilot = HOOK_TARGETS["copilot"]
    path = tmp_path / "donewhen.json"
    before = json.dumps({"version": version, "other": 1})
    path.write_text(before)
    install_hooks(path, copilot.entries("project", tmp_path, {}), header=copilot.header)
    assert json.loads(path.read_text())["version"] == 1
    assert json.loads(path.read_text())["other"] == 1
    uninstall_hooks(path, header=copilot.header)
    assert path.read_text() == before


def test_what_a_person_wrote_beside_an_entry_for_other_people_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    entries = CLAUDE.entries("project", tmp_path, {})
    install_hooks(path, entries)
    data = json.loads(path.read_text())
    stop(data).update(statusMessage="checking", timeout=1)
    path.write_text(json.dumps(data))
    install_hooks(path, entries)
    assert stop(json.loads(path.read_text()))["statusMessage"] == "checking"
    assert stop(json.loads(path.read_text()))["timeout"] == 1800
