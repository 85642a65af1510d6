"""Putting our hooks into a settings file that belongs to somebody else, and taking out exactly those again."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.hook_files import BACKUP_SUFFIX, HookEntry, install_hooks, installed_hooks, uninstall_hooks
from donewhen.foundation.errors import ConfigError, ExitCode
from sentences import assert_sentences

STOP = HookEntry("Stop", "donewhen hook stop --runtime claude", 1800)
SUBAGENT = HookEntry("SubagentStop", "donewhen hook subagent-stop --runtime claude", 1800)
OUTPUT = HookEntry("PreToolUse", "donewhen hook pre-tool-use --runtime claude", 1800, "StructuredOutput")
OURS = (STOP, SUBAGENT, OUTPUT)

FOREIGN = """{
    "permissions": {"allow": ["Bash(ls:*)"],   "deny": []},
    "$schema": "https://json.schemastore.org/claude-code-settings.json",
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "audit", "timeout": 5, "x": [1, 2.50, null]}]},
            {"matcher": "StructuredOutput", "hooks": [{"type": "prompt", "prompt": "Is it \\u00e9?"}]}
        ],
        "Stop": [
            {"hooks": [{"type": "command", "command": "say"}, {"type": "command", "command": "beep"}], "note": "mine"}
        ],
        "SessionStart": []
    },
    "model": "opus"
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".claude" / "settings.json"


def written(path: Path, text: str | bytes) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(data)
    return data


def backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP_SUFFIX)


def without_ours(data: dict[str, Any]) -> dict[str, Any]:
    """What stands there besides our own groups, in order."""
    kept: dict[str, Any] = json.loads(json.dumps(data))
    for event, groups in list(kept.get("hooks", {}).items()):
        kept["hooks"][event] = [one for one in groups if "donewhen hook" not in json.dumps(one)]
    return kept


def one_group(entry: HookEntry, **more: object) -> dict[str, Any]:
    hook = {"type": "command", "command": entry.command, "timeout": entry.timeout, **more}
    return {"hooks": [hook]} if entry.matcher is None else {"matcher": entry.matcher, "hooks": [hook]}


# Installing


def test_a_file_that_is_not_there_is_made_with_its_folder(path: Path) -> None:
    change = install_hooks(path, OURS)
    assert (change.before, change.after) == (None, path.read_bytes())
    assert json.loads(path.read_bytes()) == {
        "hooks": {
            "Stop": [one_group(STOP)],
            "SubagentStop": [one_group(SUBAGENT)],
            "PreToolUse": [one_group(OUTPUT)],
        }
    }
    assert path.read_bytes().endswith(b"}\n")
    assert sorted(os.listdir(path.parent)) == ["settings.json"]
    assert sorted(installed_hooks(path), key=str) == sorted(OURS, key=str)


def test_foreign_hooks_and_unknown_keys_stay_in_their_order(path: Path) -> None:
    original = json.loads(written(path, FOREIGN))
    install_hooks(path, OURS)
    data = json.loads(path.read_bytes())
    assert list(data) == list(original)
    assert list(data["hooks"]) == ["PreToolUse", "Stop", "SessionStart", "SubagentStop"]
    for event in ("PreToolUse", "Stop", "SessionStart"):
        before = original["hooks"][event]
        assert data["hooks"][event][: len(before)] == before
        assert [list(one) for one in data["hooks"][event][: len(before)]] == [list(one) for one in before]
    assert data["hooks"]["Stop"][1:] == [one_group(STOP)]
    assert data["hooks"]["PreToolUse"][2:] == [one_group(OUTPUT)]


def test_installing_again_changes_no_byte(path: Path) -> None:
    written(path, FOREIGN)
    install_hooks(path, OURS)
    once = path.read_bytes()
    when = path.stat().st_mtime_ns, path.stat().st_ino
    assert install_hooks(path, OURS).nothing is True
    assert path.read_bytes() == once
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == when


def test_one_backup_with_the_original_bytes_is_kept_and_not_overwritten(path: Path) -> None:
    original = written(path, FOREIGN)
    install_hooks(path, OURS)
    assert backup(path).read_bytes() == original
    install_hooks(path, OURS)
    install_hooks(path, (HookEntry("Stop", "donewhen hook stop --runtime claude", 7),))
    assert backup(path).read_bytes() == original
    assert sorted(os.listdir(path.parent)) == ["settings.json", f"settings.json{BACKUP_SUFFIX}"]


def test_when_our_hooks_were_taken_out_by_hand_the_next_install_keeps_a_backup_of_that(path: Path) -> None:
    written(path, FOREIGN)
    install_hooks(path, OURS)
    later = written(path, '{"model": "sonnet"}')
    install_hooks(path, OURS)
    assert backup(path).read_bytes() == later


def test_an_outdated_hook_is_brought_up_to_date_in_its_place(path: Path) -> None:
    old = HookEntry("Stop", "/old/venv/bin/donewhen hook stop --runtime claude || exit 2", 60)
    shared = {"hooks": [{"type": "command", "command": "first"}, one_group(old, statusMessage="mine")["hooks"][0]]}
    last = {"hooks": [{"type": "command", "command": "last"}]}
    written(path, json.dumps({"hooks": {"Stop": [shared, last]}}))
    install_hooks(path, (STOP,))
    stop = json.loads(path.read_bytes())["hooks"]["Stop"]
    assert [[one["command"] for one in group["hooks"]] for group in stop] == [["first", STOP.command], ["last"]]
    assert stop[0]["hooks"][1] == {"type": "command", "command": STOP.command, "timeout": 1800, "statusMessage": "mine"}


def test_a_hook_that_stands_there_twice_is_there_once_afterwards(path: Path) -> None:
    mine = {"hooks": [{"type": "command", "command": "mine"}]}
    written(path, json.dumps({"hooks": {"Stop": [one_group(STOP), mine, one_group(STOP), one_group(STOP)]}}))
    install_hooks(path, (STOP,))
    assert json.loads(path.read_bytes())["hooks"]["Stop"] == [one_group(STOP), mine]


def test_a_hook_of_ours_for_an_event_that_is_no_longer_wanted_is_removed(path: Path) -> None:
    written(path, json.dumps({"hooks": {"Notification": [one_group(STOP)], "Stop": [one_group(STOP)]}}))
    install_hooks(path, (STOP,))
    assert json.loads(path.read_bytes()) == {"hooks": {"Stop": [one_group(STOP)]}}


@pytest.mark.parametrize(
    "command",
    [
        "audit --after 'donewhen hook'",
        "donewhen check --file report.md",
        "donewhen doctor",
        "echo done when hook stop --runtime claude",
        "mydonewhen hook stop --runtime claude",
        "donewhen; other hook stop --runtime claude",
    ],
)
def test_a_hook_that_only_looks_a_little_like_ours_is_foreign(path: Path, command: str) -> None:
    group = {"hooks": [{"type": "command", "command": command}]}
    written(path, json.dumps({"hooks": {"Stop": [group]}}))
    assert installed_hooks(path) == []
    install_hooks(path, (STOP,))
    assert json.loads(path.read_bytes())["hooks"]["Stop"] == [group, one_group(STOP)]


@pytest.mark.parametrize(
    "hooks",
    [
        {"Stop": ["a text", 7, None, {}, {"hooks": None}, {"hooks": "x"}, {"hooks": ["y", 3, {}]}, {"matcher": 1}]},
        {"Stop": [{"hooks": [{"type": "command"}, {"command": 7}, {"command": None}, {"command": ["donewhen"]}]}]},
    ],
    ids=["groups", "hooks"],
)
def test_what_makes_no_sense_inside_a_list_is_left_as_it_is(path: Path, hooks: dict[str, Any]) -> None:
    original = written(path, json.dumps({"hooks": hooks}))
    install_hooks(path, OURS)
    assert without_ours(json.loads(path.read_bytes()))["hooks"]["Stop"] == hooks["Stop"]
    uninstall_hooks(path)
    assert path.read_bytes() == original


@pytest.mark.parametrize("timeout", ['"60"', "null", "1.5", '"soon"', "[]", "true"])
def test_a_hook_of_ours_with_an_odd_timeout_is_still_known_as_ours_and_repaired(path: Path, timeout: str) -> None:
    command = json.dumps(STOP.command)
    written(path, f'{{"hooks": {{"Stop": [{{"hooks": [{{"command": {command}, "timeout": {timeout}}}]}}]}}}}')
    assert [hook.command for hook in installed_hooks(path)] == [STOP.command]
    install_hooks(path, (STOP,))
    assert installed_hooks(path) == [STOP]


# The shape of the file


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n\t"model": "x"\n}\n', b'{\n\t"model": "x",\n\t"hooks": {\n\t\t"Stop"'),
        ('{\n    "model": "x"\n}\n', b'{\n    "model": "x",\n    "hooks": {\n        "Stop"'),
        ('{\n "model": "x"\n}\n', b'{\n "model": "x",\n "hooks": {\n  "Stop"'),
        ('{\r\n  "model": "x"\r\n}\r\n', b'{\r\n  "model": "x",\r\n  "hooks": {\r\n    "Stop"'),
        ('{\r\n\t"model": "x"\r\n}\r\n', b'{\r\n\t"model": "x",\r\n\t"hooks": {\r\n\t\t"Stop"'),
        ('\n\n{\n\n   "model": "x"\n}', b'{\n   "model": "x",\n   "hooks": {\n      "Stop"'),
    ],
    ids=["tabs", "four", "one", "CRLF", "CRLF and tabs", "three, after empty lines"],
)
def test_indentation_and_line_ends_are_kept(path: Path, text: str, expected: bytes) -> None:
    original = written(path, text)
    install_hooks(path, (STOP,))
    content = path.read_bytes()
    assert content.startswith(expected)
    assert content.endswith(b"\n") is original.endswith(b"\n")
    assert (b"\r\n" in content) is (b"\r\n" in original)
    assert content.count(b"\n") == content.count(b"\r\n") or b"\r" not in content
    uninstall_hooks(path)
    assert path.read_bytes() == original


def test_text_in_any_script_stays_readable(path: Path) -> None:
    written(path, '{"note": "Grüße 会 \U0001f600"}')
    install_hooks(path, (STOP,))
    assert "Grüße 会 \U0001f600".encode() in path.read_bytes()


def test_half_a_character_in_a_foreign_text_is_no_obstacle(path: Path) -> None:
    original = written(path, '{"note": "cut in half: \\ud83d"}')
    install_hooks(path, (STOP,))
    assert json.loads(path.read_bytes())["note"] == "cut in half: \ud83d"
    uninstall_hooks(path)
    assert path.read_bytes() == original


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_that_python_cannot_hold_does_not_become_a_word_that_is_no_json(path: Path, number: str) -> None:
    original = written(path, f'{{"limit": {number}}}')
    try:
        install_hooks(path, (STOP,))
    except ConfigError:
        assert path.read_bytes() == original
    else:
        assert b"Infinity" not in path.read_bytes()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_permissions_are_kept(path: Path, mode: int) -> None:
    written(path, FOREIGN)
    path.chmod(mode)
    install_hooks(path, OURS)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    uninstall_hooks(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_backup_is_not_readable_by_more_people_than_the_file(path: Path) -> None:
    # Settings hold tokens ("env": {"ANTHROPIC_API_KEY": …}).
    written(path, FOREIGN)
    path.chmod(0o600)
    install_hooks(path, OURS)
    assert stat.S_IMODE(backup(path).stat().st_mode) == 0o600


# Refusals


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"a": 1,}',
        b'// settings\n{"a": 1}',
        b"{'a': 1}",
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a": "caf\xe9"}',
        b'{"a": 1} {"b": 2}',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1, "b": 2, "a": 3}',
        b'{"hooks": {"Stop": [], "Stop": []}}',
        b"[]",
        b'"text"',
        b"null",
        b'{"hooks": []}',
        b'{"hooks": null}',
        b'{"hooks": {"Stop": {}}}',
        b'{"hooks": {"Other": "x"}}',
        b'{"hooks": {"Stop": null}}',
    ],
    ids=lambda value: value.decode("latin-1") if isinstance(value, bytes) else "",
)
def test_a_file_that_is_not_understood_is_refused_and_left_untouched(path: Path, content: bytes) -> None:
    written(path, content)
    with pytest.raises(ConfigError) as caught:
        install_hooks(path, OURS)
    assert_sentences(caught.value.message)
    assert caught.value.where == str(path)
    assert caught.value.exit_code is ExitCode.USAGE
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == ["settings.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"a": 1, "a": 2}', b'{"hooks": []}', b'{"hooks": {"Stop": "donewhen hook stop --runtime x"}}'],
)
def test_nothing_is_taken_out_of_a_file_that_is_not_understood(path: Path, content: bytes) -> None:
    written(path, content)
    written(backup(path), b"{}")
    with pytest.raises(ConfigError):
        uninstall_hooks(path)
    assert path.read_bytes() == content
    assert backup(path).read_bytes() == b"{}"


def test_a_file_that_is_nested_too_deeply_is_refused_and_left_untouched(path: Path) -> None:
    content = written(path, '{"a": ' + "[" * 50_000 + "]" * 50_000 + "}")
    with pytest.raises(ConfigError):
        install_hooks(path, OURS)
    assert path.read_bytes() == content


def test_a_folder_in_the_files_place_is_refused(path: Path) -> None:
    path.mkdir(parents=True)
    for act in (lambda: install_hooks(path, OURS), lambda: uninstall_hooks(path), lambda: installed_hooks(path)):
        with pytest.raises(ConfigError) as caught:
            act()
        assert_sentences(caught.value)


def test_a_file_in_the_folders_place_is_refused(path: Path) -> None:
    path.parent.write_text("a file")
    with pytest.raises(ConfigError):
        install_hooks(path, OURS)
    assert path.parent.read_text() == "a file"


def run_unprivileged(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    prelude = (
        "import sys\nfrom pathlib import Path\nfrom donewhen.adapters.hook_files import *\n"
        "from donewhen.adapters.hook_files import HookEntry, install_hooks, uninstall_hooks\n"
        f"path = Path(sys.argv[1])\nours = ({STOP!r},)\n"
    )
    return subprocess.run(
        [*without_privileges(), sys.executable, "-c", prelude + code, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_folder_that_may_not_be_written_to_is_refused_and_nothing_is_left_behind(path: Path) -> None:
    content = written(path, FOREIGN)
    path.parent.chmod(0o555)
    try:
        done = run_unprivileged("install_hooks(path, ours)", path)
    finally:
        path.parent.chmod(0o755)
    assert done.returncode == 1
    assert "Permission denied" in done.stderr
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == ["settings.json"]


def test_a_file_that_may_not_be_read_is_refused(path: Path) -> None:
    content = written(path, FOREIGN)
    path.chmod(0)
    done = run_unprivileged("install_hooks(path, ours)", path)
    path.chmod(0o644)
    assert str(path) in done.stderr.splitlines()[-1]
    assert_sentences(done.stderr.splitlines()[-1])
    assert path.read_bytes() == content


def test_a_file_that_is_marked_read_only_keeps_its_mark(path: Path) -> None:
    # Who may write to the folder may replace the file; what must not happen is that it becomes writable for others.
    written(path, FOREIGN)
    path.chmod(0o444)
    done = run_unprivileged("install_hooks(path, ours)", path)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert installed_hooks(path) == [STOP]


# Links


def test_a_linked_file_stays_a_link_and_its_target_is_changed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    original = written(target, FOREIGN)
    path.parent.mkdir(parents=True)
    path.symlink_to(Path("..") / "dotfiles" / "claude.json")
    install_hooks(path, OURS)
    assert path.is_symlink()
    assert set(installed_hooks(target)) == set(OURS)
    assert os.listdir(target.parent) == ["claude.json"]
    uninstall_hooks(path)
    assert path.is_symlink()
    assert target.read_bytes() == original


def test_a_link_that_leads_nowhere_is_filled_and_leads_nowhere_again_afterwards(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    install_hooks(path, OURS)
    assert path.is_symlink()
    assert set(installed_hooks(target)) == set(OURS)
    uninstall_hooks(path)
    assert not target.exists()
    assert path.is_symlink()


def test_a_linked_folder_works_like_any_other(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    original = written(real / "settings.json", FOREIGN)
    path.parent.symlink_to(real)
    install_hooks(path, OURS)
    uninstall_hooks(path)
    assert (real / "settings.json").read_bytes() == original
    assert os.listdir(real) == ["settings.json"]


# Uninstalling


@pytest.mark.parametrize(
    "text",
    [
        FOREIGN,
        "{}",
        "{ }\n\n",
        '{"a":1}',
        '{\r\n\t"a" : [ 1 ,2 ]\r\n}',
        '{"hooks": {"Other": [{"hooks": [{"type": "command", "command": "x"}]}]}}',
        '{"hooks": {}}',
        '{"hooks": {"Stop": []}}',
        '{"hooks": {"Stop": [{"hooks": []}]}}',
        '{"hooks": {"Stop": [{"hooks": []}, {"hooks": [{"type": "command", "command": "x"}]}]}}',
        '{"hooks": {"PreToolUse": [{"matcher": "StructuredOutput", "hooks": []}]}}',
        '{"hooks": {"Stop": [], "SubagentStop": [], "PreToolUse": []}, "z": 1e2, "a": "\\u0041"}',
    ],
)
@pytest.mark.parametrize("keep_places", [False, True])
def test_uninstalling_puts_back_the_very_bytes(path: Path, text: str, keep_places: bool) -> None:
    original = written(path, text)
    install_hooks(path, OURS)
    assert path.read_bytes() != original
    uninstall_hooks(path, keep_places=keep_places)
    assert path.read_bytes() == original
    assert os.listdir(path.parent) == ["settings.json"]


def test_a_file_that_was_not_there_is_gone_again(path: Path) -> None:
    install_hooks(path, OURS)
    change = uninstall_hooks(path)
    assert change.after is None
    assert os.listdir(path.parent) == []


def test_uninstalling_twice_or_where_nothing_is_installed_changes_nothing(path: Path) -> None:
    assert uninstall_hooks(path).nothing is True
    original = written(path, FOREIGN)
    assert uninstall_hooks(path).nothing is True
    install_hooks(path, OURS)
    uninstall_hooks(path)
    assert uninstall_hooks(path).nothing is True
    assert path.read_bytes() == original


def test_after_an_upgrade_the_very_bytes_are_put_back_too(path: Path) -> None:
    original = written(path, FOREIGN)
    install_hooks(path, (HookEntry("Stop", "/old/donewhen hook stop --runtime claude", 60),))
    install_hooks(path, OURS)
    uninstall_hooks(path)
    assert path.read_bytes() == original


EDITS: dict[str, tuple[str, dict[str, Any]]] = {
    "a new key": ('{"a": 1}', {"b": 2}),
    "a changed value": ('{"a": 1}', {"a": 2}),
    "0 made false": ('{"a": 0}', {"a": False}),
    "1 made true": ('{"a": 1}', {"a": True}),
    "true made 1": ('{"a": true}', {"a": 1}),
    "1 made 1.0": ('{"a": 1}', {"a": 1.0}),
}


@pytest.mark.parametrize(("text", "edit"), EDITS.values(), ids=EDITS)
def test_what_a_person_changed_in_between_is_kept(path: Path, text: str, edit: dict[str, Any]) -> None:
    written(path, text)
    install_hooks(path, OURS)
    data = json.loads(path.read_bytes())
    path.write_text(json.dumps(data | edit, indent=2))
    uninstall_hooks(path)
    assert json.dumps(json.loads(path.read_bytes())) == json.dumps(json.loads(text) | edit)


def test_an_order_that_a_person_changed_in_between_is_kept(path: Path) -> None:
    written(path, '{"a": 1, "b": 2}')
    install_hooks(path, OURS)
    data = json.loads(path.read_bytes())
    path.write_text(json.dumps({name: data[name] for name in ("b", "hooks", "a")}, indent=2))
    uninstall_hooks(path)
    assert list(json.loads(path.read_bytes())) == ["b", "a"]


def test_a_hook_that_a_person_added_in_between_is_kept(path: Path) -> None:
    written(path, FOREIGN)
    install_hooks(path, OURS)
    data = json.loads(path.read_bytes())
    theirs = {"type": "command", "command": "theirs"}
    data["hooks"]["Stop"][1]["hooks"].append(theirs)
    data["hooks"]["SubagentStop"].append({"hooks": [theirs]})
    path.write_text(json.dumps(data))
    uninstall_hooks(path)
    after = json.loads(path.read_bytes())["hooks"]
    assert after["Stop"][1:] == [{"hooks": [theirs]}]
    assert after["SubagentStop"] == [{"hooks": [theirs]}]
    assert after["PreToolUse"] == json.loads(FOREIGN)["hooks"]["PreToolUse"]


def test_without_a_backup_our_hooks_are_taken_out_and_the_rest_stays(path: Path) -> None:
    # The settings of a project are shared; the backup of whoever installed the hooks is not.
    written(path, FOREIGN)
    install_hooks(path, OURS)
    backup(path).unlink()
    uninstall_hooks(path)
    assert json.loads(path.read_bytes()) == json.loads(FOREIGN)


def test_a_backup_of_a_file_that_was_deleted_since_is_not_mistaken_for_the_one_before(path: Path) -> None:
    written(path, FOREIGN)
    install_hooks(path, OURS)
    path.unlink()
    install_hooks(path, OURS)
    uninstall_hooks(path)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"\xff", b"{", b"[]", b'{"hooks": []}', b"7"])
def test_a_broken_backup_does_not_stand_in_the_way(path: Path, content: bytes) -> None:
    written(path, FOREIGN)
    install_hooks(path, OURS)
    backup(path).write_bytes(content)
    uninstall_hooks(path)
    assert json.loads(path.read_bytes()) == json.loads(FOREIGN)


# Runtimes that know a hook by its position


def group(name: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": name}]}


def test_foreign_groups_stay_where_they_were(path: Path) -> None:
    written(path, json.dumps({"hooks": {"Stop": [group("first"), group("second")]}}))
    install_hooks(path, (STOP,))
    data = json.loads(path.read_bytes())
    data["hooks"]["Stop"] += [group("third"), group("fourth")]
    path.write_text(json.dumps(data))
    uninstall_hooks(path, keep_places=True)
    stop = json.loads(path.read_bytes())["hooks"]["Stop"]
    assert stop == [group("first"), group("second"), {"hooks": []}, group("third"), group("fourth")]


def test_an_empty_group_is_left_only_where_a_foreign_one_follows(path: Path) -> None:
    mixed = [one_group(STOP), group("mine"), one_group(STOP)]
    written(path, json.dumps({"hooks": {"Stop": mixed, "SubagentStop": [one_group(SUBAGENT)]}}))
    uninstall_hooks(path, keep_places=True)
    assert json.loads(path.read_bytes()) == {"hooks": {"Stop": [{"hooks": []}, group("mine")]}}


def test_installing_again_after_that_appends_and_moves_nobody(path: Path) -> None:
    written(path, json.dumps({"hooks": {"Stop": [{"hooks": []}, group("mine")]}}))
    install_hooks(path, (STOP,))
    assert json.loads(path.read_bytes())["hooks"]["Stop"] == [{"hooks": []}, group("mine"), one_group(STOP)]


def test_without_positions_nothing_is_left_behind(path: Path) -> None:
    written(path, json.dumps({"hooks": {"Stop": [one_group(STOP), group("mine")]}}))
    uninstall_hooks(path)
    assert json.loads(path.read_bytes()) == {"hooks": {"Stop": [group("mine")]}}


# Trying


def test_a_dry_run_says_what_would_change_and_changes_nothing(path: Path) -> None:
    change = install_hooks(path, OURS, dry_run=True)
    assert change.nothing is False
    assert not path.parent.exists()
    original = written(path, FOREIGN)
    trial = install_hooks(path, OURS, dry_run=True)
    assert path.read_bytes() == original
    assert os.listdir(path.parent) == ["settings.json"]
    assert install_hooks(path, OURS).after == trial.after
    trial = uninstall_hooks(path, dry_run=True)
    assert trial.after == original
    assert path.read_bytes() == trial.before
    assert backup(path).exists()


def test_a_dry_run_refuses_what_the_real_one_would_refuse(path: Path) -> None:
    written(path, "{")
    with pytest.raises(ConfigError):
        install_hooks(path, OURS, dry_run=True)


def without_privileges() -> list[str]:
    """How to run something that permissions apply to, even when the tests run as root."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("runs as root, and setpriv is not here to drop its privileges")
    return [setpriv, "--bounding-set=-all", "--inh-caps=-all"]
