"""``donewhen hooks``: real processes, real settings files, a home of their own."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from donewhen_kit import run_main
from sentences import assert_sentences

DONEWHEN = [sys.executable, "-m", "donewhen"]
PROGRAMS = str(Path(sys.executable).parent)
HANG_GUARD = 100.0
FOREIGN = {"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}
EVENTS = {
    "claude": ["Stop", "SubagentStop", "TaskCompleted", "PreToolUse", "StopFailure", "SessionEnd", "SessionStart"],
    "codex": ["Stop", "SubagentStop", "SessionEnd"],
    "gemini": ["AfterAgent", "SessionEnd"],
    "copilot": ["Stop", "SubagentStop", "SessionEnd"],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    (tmp_path / "home").mkdir()
    return folder


def environment(project: Path, env: dict[str, str]) -> dict[str, str]:
    own = {"HOME": str(project.parent / "home"), "PATH": f"{PROGRAMS}:/usr/bin:/bin", "LANG": "C.UTF-8"}
    return own | env


def hooks(
    project: Path, *arguments: str, prefix: Sequence[str] = (), cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    if not prefix:
        return run_main(["hooks", *arguments], cwd or project, environment(project, env))
    return subprocess.run(
        [*prefix, *DONEWHEN, "hooks", *arguments],
        cwd=cwd or project,
        env=environment(project, env),
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
    )


def done(project: Path, *arguments: str, **env: str) -> str:
    """What it said, when all went well."""
    ran = hooks(project, *arguments, **env)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    return ran.stdout


def envelope(project: Path, *arguments: str, **env: str) -> dict[str, Any]:
    ran = hooks(project, *arguments, "--json", **env)
    data: dict[str, Any] = json.loads(ran.stdout)
    assert set(data) == {"schema", "command", "ok", "data", "findings"}
    assert data["ok"] is (ran.returncode == 0)
    assert ran.stderr == ""
    return data


def claude_file(project: Path) -> Path:
    return project / ".claude" / "settings.json"


def codex_file(project: Path) -> Path:
    return project / ".codex" / "hooks.json"


def ours(path: Path) -> dict[str, list[str]]:
    data = json.loads(path.read_bytes())
    found = {
        event: [one["command"] for group in groups for one in group["hooks"] if "donewhen/hook" in one["command"]]
        for event, groups in data["hooks"].items()
    }
    return {event: commands for event, commands in found.items() if commands}


# What it does


def test_install_status_and_uninstall_go_together(project: Path) -> None:
    assert_sentences(done(project, "status"))
    said = done(project, "install", "--claude", "--codex")
    assert f"Claude Code: installed in {claude_file(project)}" in said
    assert f"Codex: installed in {codex_file(project)}" in said
    assert list(ours(claude_file(project))) == EVENTS["claude"]
    assert list(ours(codex_file(project))) == EVENTS["codex"]
    rows = {(one["runtime"], one["scope"]): one["state"] for one in envelope(project, "status")["data"]["hooks"]}
    assert rows == {
        ("claude", "project"): "installed",
        ("claude", "user"): "not installed",
        ("codex", "project"): "installed",
        ("codex", "user"): "not installed",
        ("gemini", "project"): "not installed",
        ("gemini", "user"): "not installed",
        ("copilot", "project"): "not installed",
        ("copilot", "user"): "not installed",
    }
    assert_sentences(done(project, "uninstall", "--claude", "--codex"))
    assert not claude_file(project).exists()
    assert not codex_file(project).exists()
    assert {one["state"] for one in envelope(project, "status")["data"]["hooks"]} == {"not installed"}


def test_only_the_runtime_that_was_named_is_touched(project: Path) -> None:
    done(project, "install", "--codex")
    assert not claude_file(project).parent.exists()
    done(project, "install", "--claude")
    done(project, "uninstall", "--codex")
    assert list(ours(claude_file(project))) == EVENTS["claude"]


def test_installing_again_says_that_there_is_nothing_to_do_and_changes_no_byte(project: Path) -> None:
    claude_file(project).parent.mkdir()
    claude_file(project).write_text(json.dumps(FOREIGN))
    done(project, "install", "--claude")
    once = claude_file(project).read_bytes()
    text = done(project, "install", "--claude")
    assert str(claude_file(project)) in text
    assert_sentences(text)
    assert claude_file(project).read_bytes() == once
    assert envelope(project, "install", "--claude")["data"]["changes"][0]["changed"] is False


def test_from_a_subfolder_the_projects_own_files_are_meant(project: Path) -> None:
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    assert hooks(project, "install", "--claude", cwd=below).returncode == 0
    assert claude_file(project).is_file()
    assert os.listdir(below) == []


def test_codexs_trust_is_explained(project: Path) -> None:
    said = " ".join(done(project, "install", "--codex").split())
    assert_sentences(said)
    findings = envelope(project, "install", "--codex")["findings"]
    assert [finding["code"] for finding in findings] == ["codex_trust"]
    assert_sentences(done(project, "install", "--codex", "--user"))
    assert_sentences(done(project, "install", "--claude"))
    assert envelope(project, "install", "--claude")["findings"] == []


def test_a_project_without_checks_is_told_so(project: Path) -> None:
    (project / "donewhen.toml").unlink()
    said = done(project, "install", "--claude")
    assert str(project) in said
    assert_sentences(said)
    assert [one["code"] for one in envelope(project, "install", "--claude")["findings"]] == ["no_checks"]


def test_status_knows_an_outdated_hook_and_install_brings_it_up_to_date(project: Path) -> None:
    done(project, "install", "--claude")
    text = claude_file(project).read_text()
    assert ".claude/donewhen/hook stop " in text
    text = text.replace(".claude/donewhen/hook stop ", "old/donewhen/hook stop ")
    claude_file(project).write_text(text)
    found = envelope(project, "status")
    states = {(row["runtime"], row["scope"]): row["state"] for row in found["data"]["hooks"]}
    assert states["claude", "project"] == "outdated"
    renewal = ("hooks_outdated", str(claude_file(project)), "donewhen hooks install --claude")
    assert [(finding["code"], finding["where"], finding["next"]) for finding in found["findings"]] == [renewal]
    assert "\n  next: donewhen hooks install --claude\n" in done(project, "status")
    done(project, "install", "--claude")
    states = {(one["runtime"], one["scope"]): one["state"] for one in envelope(project, "status")["data"]["hooks"]}
    assert states["claude", "project"] == "installed"


def test_status_names_the_scope_of_an_outdated_hook(project: Path) -> None:
    done(project, "install", "--codex", "--user")
    (project.parent / "home" / ".codex" / "donewhen" / "hook").unlink()
    found = envelope(project, "status")["findings"]
    assert [finding["next"] for finding in found] == ["donewhen hooks install --codex --user"]


def test_status_reports_a_file_that_cannot_be_read_and_goes_on(project: Path) -> None:
    done(project, "install", "--copilot")
    file = project / ".gemini" / "settings.json"
    file.parent.mkdir()
    file.write_text('// mine\n{"theme": "dark"}\n')
    ran = hooks(project, "status")
    assert ran.returncode == 2
    assert_sentences(ran.stdout)
    states = {
        (row["runtime"], row["scope"]): row["state"]
        for row in json.loads(hooks(project, "status", "--json").stdout)["data"]["hooks"]
    }
    assert states["gemini", "project"] == "unreadable"
    assert states["copilot", "project"] == "installed"
    assert file.read_text().startswith("// mine")


def test_status_counts_the_stops_that_were_let_through(project: Path) -> None:
    event = json.dumps({"session_id": "s", "cwd": str(project), "stop_hook_active": True})
    for _ in range(6):
        run_main(["hook", "stop", "--runtime", "codex"], project, os.environ, event).check_returncode()
    assert_sentences(done(project, "status"))
    assert envelope(project, "status")["data"]["unverified_stops"] == 1


def test_status_shows_how_sessions_ended_also_where_the_folder_could_not_be_used(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    event = json.dumps({"session_id": "s", "cwd": str(project), "reason": "other"})
    arguments = ["hook", "session-end", "--runtime", "claude"]
    run_main(arguments, project, os.environ, event).check_returncode()
    (project / ".donewhen").rename(tmp_path / "kept")
    (project / ".donewhen").write_text("a file")
    run_main(arguments, project, os.environ, event).check_returncode()
    (project / ".donewhen").unlink()
    (tmp_path / "kept").rename(project / ".donewhen")
    data = envelope(project, "status")["data"]
    assert data["unverified_stops"] == 2
    assert {(end["status"], end["how"], end["code"]) for end in data["unverified"]} == {
        ("incomplete", "session-end: other", "files_missing")
    }
    here, elsewhere = (Path(end["file"]) for end in data["unverified"])
    assert here == project / ".donewhen" / "state" / "unverified.jsonl"
    assert elsewhere.is_relative_to(tmp_path / f"donewhen-{os.getuid()}")
    said = done(project, "status")
    assert str(here) in said
    assert str(elsewhere) in said


@pytest.mark.parametrize(
    ("says", "codes"),
    [
        ("2.1.77 (Claude Code)", ["client_too_old"]),
        ("2.0.72 (Claude Code)", ["client_too_old"]),
        ("2.1.81 (Claude Code)", []),
        ("2.1.325 (Claude Code)", []),
        ("3.0.0", []),
        ("unknown", []),
    ],
)
def test_a_client_that_does_not_know_the_events_is_reported(
    project: Path, tmp_path: Path, says: str, codes: list[str]
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "claude").write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / "claude").chmod(0o755)
    found = envelope(project, "install", "--claude", PATH=f"{folder}:{PROGRAMS}:/usr/bin:/bin")
    assert [finding["code"] for finding in found["findings"]] == codes
    assert all(says.split()[0] in finding["message"] for finding in found["findings"])


def test_an_older_line_is_outdated_and_install_replaces_it_in_place(project: Path) -> None:
    old = (
        """e=$(cat); printf %s "$e" | donewhen hook stop --runtime claude || { printf %s "$e" | """
        """grep -q '"stop_hook_active": *true' && exit 0; echo "donewhen could not be run, so this stop is not """
        """verified. Install it, or remove its hooks." >&2; exit 2; }"""
    )
    mine = {"hooks": [{"type": "command", "command": "mine"}]}
    ours_before = {"hooks": [{"type": "command", "command": old, "timeout": 1800}]}
    claude_file(project).parent.mkdir()
    claude_file(project).write_text(json.dumps({"hooks": {"Stop": [ours_before, mine]}}))
    rows = {(row["runtime"], row["scope"]): row["state"] for row in envelope(project, "status")["data"]["hooks"]}
    assert rows["claude", "project"] == "outdated"
    done(project, "install", "--claude")
    groups = json.loads(claude_file(project).read_bytes())["hooks"]["Stop"]
    assert groups[1] == mine
    assert groups[0]["hooks"][0]["command"].endswith("/.claude/donewhen/hook stop --runtime claude || exit 2")


@pytest.mark.parametrize("content", [None, "#!/bin/sh\nexit 0\n", "\0"])
def test_a_script_that_is_missing_or_changed_is_outdated_and_install_repairs_it(
    project: Path, content: str | None
) -> None:
    done(project, "install", "--claude")
    script = project / ".claude" / "donewhen" / "hook"
    good = script.read_bytes()
    script.unlink()
    if content is not None:
        script.write_text(content)
    rows = {(row["runtime"], row["scope"]): row["state"] for row in envelope(project, "status")["data"]["hooks"]}
    assert rows["claude", "project"] == "outdated"
    assert str(script) in done(project, "install", "--claude")
    assert script.read_bytes() == good


@pytest.mark.parametrize("timeout", ["null", '"soon"'])
def test_status_and_install_cope_with_an_odd_timeout_in_our_own_hook(project: Path, timeout: str) -> None:
    done(project, "install", "--claude")
    text = claude_file(project).read_text().replace('"timeout": 1800', f'"timeout": {timeout}')
    claude_file(project).write_text(text)
    ran = hooks(project, "status")
    assert "outdated" in ran.stdout, ran.stderr
    done(project, "install", "--claude")
    assert '"timeout": 1800' in claude_file(project).read_text()


# Where


def test_a_persons_own_hooks_stand_in_their_home(project: Path) -> None:
    done(project, "install", "--claude", "--codex", "--user")
    home = project.parent / "home"
    assert list(ours(home / ".claude" / "settings.json")) == EVENTS["claude"]
    assert list(ours(home / ".codex" / "hooks.json")) == EVENTS["codex"]
    assert not claude_file(project).exists()
    done(project, "uninstall", "--claude", "--codex", "--user")
    assert not (home / ".claude" / "settings.json").exists()


def test_the_runtimes_own_variables_say_where_a_persons_hooks_stand(project: Path) -> None:
    told = {
        "CLAUDE_CONFIG_DIR": str(project.parent / "c"),
        "CODEX_HOME": str(project.parent / "x"),
        "GEMINI_CLI_HOME": str(project.parent / "g"),
        "COPILOT_HOME": str(project.parent / "o"),
    }
    done(project, "install", "--claude", "--codex", "--gemini", "--copilot", "--user", **told)
    assert list(ours(project.parent / "g" / ".gemini" / "settings.json")) == EVENTS["gemini"]
    assert list(ours(project.parent / "o" / "hooks" / "donewhen.json")) == EVENTS["copilot"]
    assert list(ours(project.parent / "c" / "settings.json")) == EVENTS["claude"]
    assert list(ours(project.parent / "x" / "hooks.json")) == EVENTS["codex"]
    assert os.listdir(project.parent / "home") == []
    states = {one["state"] for one in envelope(project, "status", **told)["data"]["hooks"] if one["scope"] == "user"}
    assert states == {"installed"}


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_both_scopes_at_once_are_refused(project: Path, verb: str) -> None:
    ran = hooks(project, verb, "--claude", "--user", "--project")
    assert ran.returncode == 2
    assert "Give either --user or --project, not both." in ran.stderr
    assert not claude_file(project).exists()


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_without_a_runtime_it_asks_for_one(project: Path, verb: str) -> None:
    ran = hooks(project, verb)
    assert ran.returncode == 2
    assert_sentences(ran.stderr)
    assert "next: Give --claude, --codex, --gemini or --copilot, or several." in ran.stderr
    assert envelope(project, verb)["findings"][0]["code"] == "usage"


# Trying


def test_a_dry_run_shows_a_diff_and_changes_nothing(project: Path) -> None:
    claude_file(project).parent.mkdir()
    claude_file(project).write_text(json.dumps(FOREIGN, indent=2) + "\n")
    before = sorted((path, path.read_bytes() if path.is_file() else b"") for path in project.rglob("*"))
    said = done(project, "install", "--claude", "--codex", "--dry-run")
    assert str(claude_file(project)) in said
    assert_sentences(said)
    shown = said.splitlines()
    assert shown.count('+    "SubagentStop": [') == 2
    assert not [line for line in shown if line.startswith("-") and "say done" in line]
    assert '             "command": "say done"' in shown
    assert not codex_file(project).parent.exists()
    data = envelope(project, "install", "--claude", "--dry-run")["data"]
    assert data["dry_run"] is True
    assert data["changes"][0]["changed"] is True
    assert any(line.startswith("+") and "donewhen/hook stop" in line for line in data["changes"][0]["diff"])
    assert sorted((path, path.read_bytes() if path.is_file() else b"") for path in project.rglob("*")) == before


def test_a_dry_run_of_uninstall_shows_a_diff_and_changes_nothing(project: Path) -> None:
    done(project, "install", "--claude")
    before = claude_file(project).read_bytes()
    said = done(project, "uninstall", "--claude", "--dry-run")
    assert any(line.startswith("-") and "donewhen/hook stop" in line for line in said.splitlines())
    assert claude_file(project).read_bytes() == before


# What goes wrong


@pytest.mark.parametrize(
    "content",
    [
        b"{ not json",
        b'{"a": 1, "a": 2}',
        b'{"hooks": []}',
    ],
)
@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_a_file_that_is_not_understood_is_refused_loudly_and_left_untouched(
    project: Path, verb: str, content: bytes
) -> None:
    claude_file(project).parent.mkdir()
    claude_file(project).write_bytes(content)
    ran = hooks(project, verb, "--claude")
    assert ran.returncode == 2
    assert_sentences(ran.stderr)
    assert str(claude_file(project)) in ran.stderr
    assert claude_file(project).read_bytes() == content
    assert os.listdir(claude_file(project).parent) == ["settings.json"]


def test_a_mistake_in_the_projects_settings_does_not_keep_anybody_from_taking_the_hooks_out(project: Path) -> None:
    # A broken settings file holds every agent back; uninstalling is the way out.
    done(project, "install", "--claude")
    (project / "donewhen.toml").write_text("[stop\n")
    ran = hooks(project, "uninstall", "--claude")
    assert ran.returncode == 0, ran.stderr
    assert not claude_file(project).exists()


def test_a_folder_that_may_not_be_written_to_is_an_error_and_nothing_is_changed(project: Path) -> None:
    claude_file(project).parent.mkdir()
    claude_file(project).write_text(json.dumps(FOREIGN))
    claude_file(project).parent.chmod(0o555)
    try:
        ran = hooks(project, "install", "--claude", prefix=without_privileges())
    finally:
        claude_file(project).parent.chmod(0o755)
    assert ran.returncode != 0
    assert "Permission denied" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert json.loads(claude_file(project).read_bytes()) == FOREIGN
    assert os.listdir(claude_file(project).parent) == ["settings.json"]


def test_a_project_that_may_not_be_written_to_is_an_error(project: Path) -> None:
    project.chmod(0o555)
    try:
        ran = hooks(project, "install", "--claude", prefix=without_privileges())
    finally:
        project.chmod(0o755)
    assert ran.returncode == 2
    assert_sentences(ran.stderr)
    assert not claude_file(project).parent.exists()


def test_codexs_foreign_hooks_keep_their_places_when_ours_go(project: Path) -> None:
    done(project, "install", "--codex")
    data = json.loads(codex_file(project).read_bytes())
    mine = {"hooks": [{"type": "command", "command": "mine"}]}
    data["hooks"]["Stop"].append(mine)
    codex_file(project).write_text(json.dumps(data))
    done(project, "uninstall", "--codex")
    assert json.loads(codex_file(project).read_bytes()) == {"hooks": {"Stop": [{"hooks": []}, mine]}}


def test_codexs_foreign_hooks_keep_their_places_when_ours_are_brought_up_to_date(project: Path) -> None:
    # A hook that Codex finds at another place than the person has trusted it at is skipped without a word.
    mine = {"hooks": [{"type": "command", "command": "mine"}]}
    old = {"hooks": [{"type": "command", "command": "donewhen hook stop --runtime codex", "timeout": 60}]}
    codex_file(project).parent.mkdir()
    codex_file(project).write_text(json.dumps({"hooks": {"Stop": [old, old, mine], "PreToolUse": [old, mine]}}))
    done(project, "install", "--codex")
    data = json.loads(codex_file(project).read_bytes())["hooks"]
    assert data["Stop"].index(mine) == 2
    assert data["PreToolUse"].index(mine) == 1
    assert ours(codex_file(project)).keys() == {*EVENTS["codex"]}


# Several at once


@pytest.mark.parametrize("count", [2, 8])
def test_installs_at_the_same_time_leave_a_valid_file_with_ours_once_and_the_foreign_hooks(
    project: Path, count: int
) -> None:
    claude_file(project).parent.mkdir()
    original = json.dumps(FOREIGN).encode()
    claude_file(project).write_bytes(original)
    processes = started(project, [["install", "--claude"]] * count)
    for process in processes:
        _, said = process.communicate(timeout=HANG_GUARD)
        assert process.returncode == 0, said
    found = ours(claude_file(project))
    assert {event: len(commands) for event, commands in found.items()} == dict.fromkeys(EVENTS["claude"], 1)
    data = json.loads(claude_file(project).read_bytes())
    assert data["model"] == "opus"
    assert data["hooks"]["Stop"][0] == FOREIGN["hooks"]["Stop"][0]  # type: ignore[index]
    backup = claude_file(project).with_name("settings.json.donewhen-backup")
    assert backup.read_bytes() == original
    assert sorted(os.listdir(backup.parent)) == ["donewhen", "settings.json", "settings.json.donewhen-backup"]
    done(project, "uninstall", "--claude")
    assert claude_file(project).read_bytes() == original


def test_an_install_waits_for_its_turn_and_then_sees_what_was_written_before(project: Path) -> None:
    claude_file(project).parent.mkdir()
    claude_file(project).write_text("{}")
    folder = os.open(claude_file(project).parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        process = launched(project, ["install", "--claude"])
        assert process.stderr is not None
        assert "Waiting for the lock" in process.stderr.readline()
        assert claude_file(project).read_text() == "{}"
        claude_file(project).write_text(json.dumps(FOREIGN))
    finally:
        os.close(folder)
    _, said = process.communicate(timeout=HANG_GUARD)
    assert process.returncode == 0, said
    data = json.loads(claude_file(project).read_bytes())
    assert data["model"] == "opus"
    assert data["hooks"]["Stop"][0] == FOREIGN["hooks"]["Stop"][0]  # type: ignore[index]
    assert list(ours(claude_file(project))) == EVENTS["claude"]


def test_installs_and_uninstalls_at_the_same_time_end_in_one_of_the_two_states(project: Path) -> None:
    claude_file(project).parent.mkdir()
    original = json.dumps(FOREIGN).encode()
    claude_file(project).write_bytes(original)
    for process in started(project, [["install", "--claude"], ["uninstall", "--claude"]] * 4):
        _, said = process.communicate(timeout=HANG_GUARD)
        assert process.returncode == 0, said
    if claude_file(project).read_bytes() != original:
        assert {len(commands) for commands in ours(claude_file(project)).values()} == {1}
        done(project, "uninstall", "--claude")
    assert claude_file(project).read_bytes() == original
    assert os.listdir(claude_file(project).parent) == ["settings.json"]


def started(project: Path, arguments: list[list[str]]) -> list[subprocess.Popen[str]]:
    """All of them wait for the folder, which is handed to them when the last has been started."""
    folder = os.open(claude_file(project).parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        return [launched(project, words) for words in arguments]
    finally:
        os.close(folder)


def launched(project: Path, words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DONEWHEN, "hooks", *words],
        cwd=project,
        env=environment(project, {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("words", [[], ["install"], ["uninstall"], ["status"]], ids=" ".join)
def test_it_explains_itself(project: Path, words: list[str]) -> None:
    said = done(project, *words, "--help")
    assert said.startswith(f"Usage: donewhen hooks {' '.join(words)}".rstrip())


def without_privileges() -> list[str]:
    """How to run something that permissions apply to, even when the tests run as root."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("runs as root, and setpriv is not here to drop its privileges")
    return [setpriv, "--bounding-set=-all", "--inh-caps=-all"]


def test_install_writes_the_rules_for_agents_and_the_last_uninstall_removes_them(project: Path) -> None:
    (project / "AGENTS.md").write_text("Be kind.\n")
    assert hooks(project, "install", "--claude", "--dry-run").returncode == 0
    assert not (project / "CLAUDE.md").exists()
    assert hooks(project, "install", "--claude", "--codex").returncode == 0
    assert "donewhen next" in (project / "AGENTS.md").read_text()
    assert "donewhen next" in (project / "CLAUDE.md").read_text()
    hooks(project, "uninstall", "--codex")
    assert "donewhen next" in (project / "AGENTS.md").read_text()
    hooks(project, "uninstall", "--claude")
    assert (project / "AGENTS.md").read_text() == "Be kind.\n"
    assert not (project / "CLAUDE.md").exists()


def test_hooks_are_not_installed_if_the_rules_can_not_be_written(project: Path) -> None:
    (project / "AGENTS.md").mkdir()
    done = hooks(project, "install", "--codex")
    assert done.returncode == 2
    assert "AGENTS.md" in done.stderr
    assert not (project / ".codex").exists()
