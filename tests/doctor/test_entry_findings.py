"""Each way in which an entry of a settings file is dead has a finding, and its honest neighbour has none."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen.config import load
from donewhen.doctor.altered import altered_hooks
from donewhen.doctor.entry_findings import ENTRY_CHECKS
from donewhen.doctor.hook_settings import read_runtime_settings
from donewhen.doctor.hooks import below_the_project, installed_twice, managed, switched_off, wrong_header

Json = dict[str, Any]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    return folder


def installed(name: str = "claude") -> Json:
    hooks: Json = {}
    for entry in HOOK_TARGETS[name].entries("project", Path("/project"), {}):
        hooks.setdefault(entry.event, []).append(entry.group())
    return {"hooks": hooks}


def write(root: Path, data: Json, name: str = "claude", file: str | None = None) -> None:
    path = HOOK_TARGETS[name].path("project", root, {})
    path = path if file is None else path.with_name(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))


def found(root: Path, name: str = "claude") -> dict[str, str]:
    """The names of the findings, each with its health."""
    runtime = read_runtime_settings(HOOK_TARGETS[name], root, {})
    settings = load(root)
    diagnoses = [one for file in runtime.files for check in ENTRY_CHECKS for one in check(runtime, file, settings)]
    assert all(one.next and one.detail for one in diagnoses)
    return {one.name: one.health for one in diagnoses}


def stop_group(data: Json) -> Json:
    group: Json = data["hooks"]["Stop"][0]
    return group


def stop_hook(data: Json) -> Json:
    hook: Json = stop_group(data)["hooks"][0]
    return hook


def misplace(data: Json) -> None:
    data["hooks"]["Stop"] = [stop_hook(data)]


def misspell_event(data: Json) -> None:
    data["hooks"]["Stopp"] = data["hooks"].pop("Stop")


def swap_event(data: Json) -> None:
    data["hooks"]["SessionStart"] = data["hooks"].pop("Stop")


def end_hook(data: Json, event: str = "SessionEnd") -> Json:
    hook: Json = data["hooks"][event][0]["hooks"][0]
    return hook


def outside(data: Json) -> None:
    data["Stop"] = data["hooks"].pop("Stop")


DEAD: dict[str, tuple[Callable[[Json], object], set[str]]] = {
    "no entry for a stop": (lambda data: data["hooks"].pop("Stop"), {"missing event"}),
    "a list without its group": (misplace, {"missing event", "misplaced"}),
    "an event that is misspelt": (misspell_event, {"missing event", "event"}),
    "the line of a stop at another event": (swap_event, {"missing event", "event"}),
    "outside of the hooks": (outside, {"missing event", "misplaced"}),
    "another type": (lambda data: stop_hook(data).update(type="Command"), {"type"}),
    "no type": (lambda data: stop_hook(data).pop("type"), {"type"}),
    "a timeout that is a text": (lambda data: stop_hook(data).update(timeout="1800"), {"type"}),
    "a timeout that is true": (lambda data: stop_hook(data).update(timeout=True), {"type"}),
    "no timeout": (lambda data: stop_hook(data).pop("timeout"), {"timeout"}),
    "a timeout below the checks": (lambda data: stop_hook(data).update(timeout=60), {"timeout"}),
    "a timeout of nothing": (lambda data: stop_hook(data).update(timeout=0), {"timeout"}),
    "no time for the record of an end": (lambda data: end_hook(data).update(timeout=1), {"timeout"}),
    "no timeout for the record of an end": (lambda data: end_hook(data).pop("timeout"), {"timeout"}),
    "no entry for the end of a session": (lambda data: data["hooks"].pop("SessionEnd"), {"missing event"}),
    "no entry for a failure": (lambda data: data["hooks"].pop("StopFailure"), {"missing event"}),
    "no entry for the output": (lambda data: data["hooks"].pop("PreToolUse"), {"missing event"}),
    "an event in small letters": (
        lambda data: data["hooks"].update(stop=data["hooks"].pop("Stop")),
        {"missing event", "event"},
    ),
    "only some ends": (lambda data: data["hooks"]["SessionEnd"][0].update(matcher="clear"), {"matcher"}),
    "only some sub-agents": (lambda data: data["hooks"]["SubagentStop"][0].update(matcher="Explore"), {"matcher"}),
    "arguments": (lambda data: stop_hook(data).update(args=[]), {"run"}),
    "another shell": (lambda data: end_hook(data).update({"shell": "powershell"}), {"run"}),
    "async": (lambda data: stop_hook(data).update({"async": True}), {"async"}),
    "async as a text": (lambda data: stop_hook(data).update({"async": "yes"}), {"async"}),
    "a condition": (lambda data: stop_hook(data).update({"if": "Bash(git *)"}), {"condition"}),
    "a condition on the output's guard": (
        lambda data: data["hooks"]["PreToolUse"][0]["hooks"][0].update({"if": "Bash(git *)"}),
        {"condition"},
    ),
    "a matcher for another tool": (
        lambda data: data["hooks"]["PreToolUse"][0].update(matcher="Bash"),
        {"matcher"},
    ),
    "a matcher that is no pattern": (lambda data: data["hooks"]["PreToolUse"][0].update(matcher="("), {"matcher"}),
    "a matcher that is a list": (
        lambda data: data["hooks"]["PreToolUse"][0].update(matcher=["StructuredOutput"]),
        {"matcher"},
    ),
    "a verb that is misspelt": (
        lambda data: stop_hook(data).update(command="donewhen hok stop --runtime claude"),
        {"missing event"},
    ),
    "a program that is misspelt": (
        lambda data: stop_hook(data).update(command="donewehn hook stop --runtime claude"),
        {"missing event"},
    ),
    "a kind that is misspelt": (
        lambda data: stop_hook(data).update(command="donewhen hook stopp --runtime claude"),
        {"missing event", "event"},
    ),
    "another runtime": (
        lambda data: stop_hook(data).update(command="donewhen hook stop --runtime codex"),
        {"runtime"},
    ),
}

ALIVE: dict[str, Callable[[Json], object]] = {
    "as installed": lambda data: None,
    "async that is off": lambda data: stop_hook(data).update({"async": False}),
    "a matcher for every stop": lambda data: stop_group(data).update(matcher="*"),
    "a matcher that a stop ignores": lambda data: stop_group(data).update(matcher="Bash"),
    "a matcher for every end": lambda data: data["hooks"]["SessionEnd"][0].update(matcher=".*"),
    "the usual shell": lambda data: stop_hook(data).update({"shell": "bash"}),
    "a longer timeout for an end": lambda data: end_hook(data).update(timeout=120),
    "a matcher for several tools": lambda data: data["hooks"]["PreToolUse"][0].update(matcher="Edit|StructuredOutput"),
    "a matcher for all tools": lambda data: data["hooks"]["PreToolUse"][0].update(matcher=".*"),
    "a longer timeout": lambda data: stop_hook(data).update(timeout=3600),
    "a message for the person": lambda data: stop_hook(data).update(statusMessage="checking"),
    "another hook beside it": lambda data: data["hooks"]["Stop"].append(
        {"hooks": [{"type": "command", "command": "say finished", "async": True, "if": "x"}]}
    ),
    "another hook that uses donewhen": lambda data: data["hooks"]["Stop"].append(
        {"hooks": [{"type": "command", "command": "donewhen status >> log"}]}
    ),
    "other settings that mention donewhen": lambda data: data.update(permissions={"allow": ["Bash(donewhen hook *)"]}),
}


@pytest.mark.parametrize("name", DEAD)
def test_a_dead_entry_is_found(root: Path, name: str) -> None:
    change, expected = DEAD[name]
    data = installed()
    change(data)
    write(root, data)
    broken = {one.removeprefix("claude project ") for one, health in found(root).items() if health == "broken"}
    assert broken == expected


@pytest.mark.parametrize("name", ALIVE)
def test_what_works_is_not_reported(root: Path, name: str) -> None:
    data = installed()
    ALIVE[name](data)
    write(root, data)
    assert found(root) == {}


def test_an_unknown_key_is_noted(root: Path) -> None:
    data = installed()
    stop_hook(data)["once"] = True
    write(root, data)
    assert found(root) == {"claude project keys": "note"}


def gemini_hook(data: Json, event: str) -> Json:
    hook: Json = data["hooks"][event][0]["hooks"][0]
    return hook


OTHERS_DEAD: dict[str, tuple[str, Callable[[Json], object], set[str]]] = {
    "seconds where milliseconds are meant": (
        "gemini",
        lambda data: gemini_hook(data, "AfterAgent").update(timeout=1800),
        {"timeout"},
    ),
    "a timer that is too long to run": (
        "gemini",
        lambda data: gemini_hook(data, "AfterAgent").update(timeout=2**31),
        {"timeout"},
    ),
    "a line on the list of disabled hooks": (
        "gemini",
        lambda data: data.update(hooksConfig={"disabled": [gemini_hook(data, "SessionEnd")["command"]]}),
        {"disabled"},
    ),
    "a name on the list of disabled hooks": (
        "gemini",
        lambda data: (
            gemini_hook(data, "SessionEnd").update(name="donewhen"),
            data.update(hooksConfig={"disabled": ["donewhen"]}),
        ),
        {"disabled"},
    ),
    "a matcher for some stops": (
        "gemini",
        lambda data: data["hooks"]["AfterAgent"][0].update(matcher="x"),
        {"matcher"},
    ),
    "variables": ("gemini", lambda data: gemini_hook(data, "SessionEnd").update(env={"PATH": "/"}), {"run"}),
    "another folder": ("copilot", lambda data: end_hook(data).update(cwd="src"), {"run"}),
    "another line for bash": ("copilot", lambda data: stop_hook(data).update(bash="true"), {"run"}),
    "only some ends": ("codex", lambda data: data["hooks"]["SessionEnd"][0].update(matcher="clear"), {"matcher"}),
}

OTHERS_ALIVE: dict[str, tuple[str, Callable[[Json], object]]] = {
    "gemini as installed": ("gemini", lambda data: None),
    "codex as installed": ("codex", lambda data: None),
    "copilot as installed": ("copilot", lambda data: None),
    "the longest timer": ("gemini", lambda data: gemini_hook(data, "AfterAgent").update(timeout=2**31 - 1)),
    "a list of other disabled hooks": ("gemini", lambda data: data.update(hooksConfig={"disabled": ["lint", 5]})),
    "no list of disabled hooks": ("gemini", lambda data: data.update(hooksConfig={"disabled": None})),
    "a matcher that an end ignores": ("copilot", lambda data: data["hooks"]["SessionEnd"][0].update(matcher="x")),
    "a matcher that a stop ignores": ("codex", lambda data: data["hooks"]["Stop"][0].update(matcher="x")),
}


@pytest.mark.parametrize("case", OTHERS_DEAD)
def test_a_dead_entry_of_another_runtime_is_found(root: Path, case: str) -> None:
    name, change, expected = OTHERS_DEAD[case]
    data = installed(name)
    change(data)
    write(root, data, name)
    assert {
        place.removeprefix(f"{name} project ") for place, health in found(root, name).items() if health == "broken"
    } == expected


@pytest.mark.parametrize("case", OTHERS_ALIVE)
def test_what_works_with_another_runtime_is_not_reported(root: Path, case: str) -> None:
    name, change = OTHERS_ALIVE[case]
    data = installed(name)
    change(data)
    write(root, data, name)
    assert found(root, name) == {}


def test_hooks_of_an_earlier_version_without_the_start_of_a_session_are_a_note(root: Path) -> None:
    data = installed()
    data["hooks"].pop("SessionStart")
    write(root, data)
    assert found(root) == {"claude project events": "note"}


def test_a_project_without_checks_for_a_stop_misses_no_ends(root: Path) -> None:
    data = installed()
    for event in ("SessionEnd", "StopFailure", "PreToolUse"):
        data["hooks"].pop(event)
    write(root, data)
    (root / "donewhen.toml").write_text("")
    assert found(root) == {"claude project events": "note"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"allowManagedHooksOnly": true}', ["broken"]),
        ('{"disableAllHooks": true}', ["broken"]),
        ('{"allowManagedHooksOnly": false, "model": "opus"}', []),
        ("not JSON", []),
    ],
)
@pytest.mark.parametrize("name", ["managed-settings.json", "managed-settings.d/10-hooks.json"])
def test_the_administrators_switches_are_found(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, expected: list[str]
) -> None:
    file = tmp_path / "etc" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    target = HOOK_TARGETS["claude"]
    patterns = [tmp_path / "etc" / Path(pattern).relative_to("/etc/claude-code") for pattern in MANAGED]
    about = target.about._replace(managed_files=tuple(map(str, patterns)))
    write(root, installed())
    runtime = read_runtime_settings(replace(target, about=about), root, {})
    diagnoses = list(managed(runtime))
    assert [diagnosis.health for diagnosis in diagnoses] == expected
    assert all(str(file) in diagnosis.detail and diagnosis.next for diagnosis in diagnoses)


MANAGED = [name for name in HOOK_TARGETS["claude"].about.managed_files if name.startswith("/etc/claude-code/")]


@pytest.mark.parametrize(("version", "health"), [(2, ["broken"]), ("1", ["broken"]), (1, []), (None, [])])
def test_a_file_of_another_format_is_found(root: Path, version: object, health: list[str]) -> None:
    data = installed("copilot") | ({} if version is None else {"version": version})
    write(root, data, "copilot")
    runtime = read_runtime_settings(HOOK_TARGETS["copilot"], root, {})
    assert [diagnosis.health for diagnosis in wrong_header(runtime)] == health


def test_a_line_and_a_script_that_donewhen_has_not_written_are_noted(root: Path) -> None:
    target = HOOK_TARGETS["claude"]
    data = installed()
    write(root, data)
    script = target.script("project", root, {})
    script.parent.mkdir(parents=True)
    script.write_bytes(target.script_content("project", root))

    def notes() -> list[str]:
        runtime = read_runtime_settings(target, root, {})
        diagnoses = [note for where in runtime.installed for note in altered_hooks(runtime, where, {})]
        assert {note.health for note in diagnoses} <= {"note"}
        return [note.name for note in diagnoses]

    assert notes() == []
    script.write_text(script.read_text().replace("exit 2", "exit 0"))
    assert notes() == ["claude project changed script"]
    script.unlink()
    stop_hook(data)["command"] = f"[ -e .skip ] || {stop_hook(data)['command']}"
    write(root, data)
    assert notes() == ["claude project changed"]


@pytest.mark.parametrize(
    "line", ["donewhen hook stop --runtime claude", "/opt/bin/donewhen hook stop --runtime claude"]
)
def test_the_line_of_an_earlier_version_is_one_that_donewhen_has_written(root: Path, line: str) -> None:
    data = installed()
    stop_hook(data)["command"] = line
    write(root, data)
    assert list(altered_hooks(read_runtime_settings(HOOK_TARGETS["claude"], root, {}), "project", {})) == []


def test_an_event_without_checks_that_is_missing_is_noted_and_one_with_checks_is_a_finding(root: Path) -> None:
    data = installed()
    data["hooks"].pop("SubagentStop")
    write(root, data)
    assert found(root) == {"claude project events": "note"}
    (root / "donewhen.toml").write_text('[stop]\nfiles = ["a"]\n[subagent_stop]\nfiles = ["b"]\n')
    assert found(root) == {"claude project missing event": "broken"}


def test_a_file_without_donewhen_has_no_findings(root: Path) -> None:
    write(root, {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say finished"}]}]}})
    assert found(root) == {}


def test_a_file_in_any_form_is_read(root: Path) -> None:
    for hooks in ([], None, {"Stop": None}, {"Stop": [None, {"hooks": None}, {"hooks": [None, 1]}]}, {"Stop": {}}):
        write(root, {"hooks": copy.deepcopy(hooks)})
        assert found(root) == {}


@pytest.mark.parametrize("file", ["settings.json", "settings.local.json"])
@pytest.mark.parametrize("value", [True, "true", 1])
def test_every_file_that_switches_the_hooks_off_is_found(root: Path, file: str, value: object) -> None:
    write(root, installed())
    data = installed() if file == "settings.json" else {}
    write(root, data | {"disableAllHooks": value}, file=file)
    runtime = read_runtime_settings(HOOK_TARGETS["claude"], root, {})
    (diagnosis,) = switched_off(runtime)
    assert diagnosis.health == "broken"
    assert diagnosis.next is not None
    assert file in diagnosis.next


def test_the_persons_own_file_is_looked_at_too(root: Path) -> None:
    write(root, installed())
    own = root.parent / "home" / ".claude"
    own.mkdir(parents=True)
    (own / "settings.json").write_text('{"disableAllHooks": true}')
    runtime = read_runtime_settings(HOOK_TARGETS["claude"], root, {})
    assert [one.name for one in switched_off(runtime)] == ["claude user switched off"]


def test_a_sub_folder_is_not_held_by_the_projects_hooks_unless_the_person_has_hooks_too(root: Path) -> None:
    write(root, installed())
    below = root / "src"
    below.mkdir()
    runtime = read_runtime_settings(HOOK_TARGETS["claude"], root, {})
    (at_root,) = below_the_project(runtime, root)
    (in_folder,) = below_the_project(runtime, below)
    assert (at_root.health, in_folder.health) == ("note", "broken")
    assert in_folder.next is not None
    assert "--user" in in_folder.next
    own = root.parent / "home" / ".claude"
    own.mkdir(parents=True)
    (own / "settings.json").write_text(json.dumps(installed()))
    runtime = read_runtime_settings(HOOK_TARGETS["claude"], root, {})
    assert list(below_the_project(runtime, below)) == []
    assert [one.health for one in installed_twice(runtime)] == ["note"]
