"""`donewhen uninit` gives every byte back, and touches nothing else."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from setup_kit import at_terminal, content, environment, python_project

Run = Callable[..., subprocess.CompletedProcess[str]]
INIT = ["init", "--claude", "--run", "true", "--yes"]
EVERY = [*INIT, "--codex", "--gemini", "--copilot"]
STARTS: dict[str, dict[str, str]] = {
    "nothing": {},
    "an ignore file without a line end": {".gitignore": "build/\n*.log"},
    "an empty ignore file": {".gitignore": ""},
    "settings of one's own": {"donewhen.toml": '[judge]\nmissions = "m"'},
    "settings in pyproject": {"pyproject.toml": "[tool.donewhen.judge]\nmissions = 'm'\n"},
    "hooks of others": {
        ".claude/settings.json": '{"hooks": {"Stop": [{"hooks": [{"type":"command","command":"x"}]}]}}'
    },
    "a folder of the runtime": {".claude/commands/hello.md": "Hello\n", ".codex/config.toml": "x = 1\n"},
}


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path / "home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return python_project(tmp_path / "shop")


@pytest.mark.parametrize("start", STARTS)
def test_every_byte_comes_back(project: Path, home: dict[str, str], donewhen: Run, start: str) -> None:
    for name, text in STARTS[start].items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    before = content(project)
    done = donewhen(EVERY if start in ("nothing", "a folder of the runtime") else INIT, project, home)
    assert done.returncode == 0, done.stdout
    assert content(project) != before
    done = donewhen(["uninit", "--yes"], project, home)
    assert (done.returncode, done.stderr) == (0, "")
    assert content(project) == before
    again = donewhen(["uninit", "--yes"], project, home)
    assert again.returncode == 0
    assert "There is nothing of donewhen to remove here." in again.stdout


def test_state_that_hooks_left_goes_as_well(project: Path, home: dict[str, str], donewhen: Run) -> None:
    before = content(project)
    donewhen(INIT, project, home)
    event = json.dumps({"session_id": "one", "cwd": str(project), "hook_event_name": "Stop"})
    donewhen(["hook", "stop", "--runtime", "claude"], project, home, event)
    assert (project / ".donewhen" / "state").is_dir()
    donewhen(["uninit", "--yes"], project, home)
    assert content(project) == before


def test_what_was_changed_since_stays_and_is_reported(project: Path, home: dict[str, str], donewhen: Run) -> None:
    donewhen(INIT, project, home)
    (project / "donewhen.toml").write_text('[stop]\nfiles = ["mine.md"]\n')
    with (project / ".gitignore").open("a") as file:
        file.write("mine/\n")
    done = donewhen(["uninit", "--yes", "--json"], project, home)
    told = json.loads(done.stdout)
    assert [kept["path"] for kept in told["data"]["kept"]] == ["donewhen.toml"]
    assert (project / "donewhen.toml").read_text() == '[stop]\nfiles = ["mine.md"]\n'
    assert (project / ".gitignore").read_text() == "mine/\n"
    assert not (project / ".claude").exists()


def test_lines_added_below_ours_stay_valid_settings(project: Path, home: dict[str, str], donewhen: Run) -> None:
    donewhen(INIT, project, home)
    own = (project / "donewhen.toml").read_text()
    (project / "donewhen.toml").write_text(own + '\n[judge]\nmissions = "m"\n')
    donewhen(["uninit", "--yes"], project, home)
    assert (project / "donewhen.toml").read_text() == '\n[judge]\nmissions = "m"\n'


def test_jobs_ledger_and_evidence_stay_unless_purged(project: Path, home: dict[str, str], donewhen: Run) -> None:
    before = content(project)
    donewhen([*INIT, "--jobs"], project, home)
    donewhen(["add", "Sell", "--criterion", "It works"], project, home)
    kept = {name: text for name, text in content(project).items() if name.startswith("jobs/")}
    done = donewhen(["uninit", "--yes"], project, home)
    assert done.returncode == 0
    assert "jobs stay; --purge removes them" in done.stdout
    assert {name: text for name, text in content(project).items() if name.startswith("jobs/")} == kept
    assert not (project / ".claude").exists()
    assert not (project / "donewhen.toml").exists()
    assert donewhen(["status"], project, home).returncode == 0
    assert donewhen(["uninit", "--purge", "--yes"], project, home).returncode == 0
    assert content(project) == before


def test_rules_for_agents_come_with_jobs_and_go_byte_for_byte(
    project: Path, home: dict[str, str], donewhen: Run
) -> None:
    (project / "AGENTS.md").write_text("# Rules\nBe kind.")
    before = content(project)
    assert donewhen(INIT, project, home).returncode == 0
    assert (project / "AGENTS.md").read_bytes() == before["AGENTS.md"]
    assert donewhen([*INIT, "--jobs"], project, home).returncode == 0
    assert "donewhen complete JOB" in (project / "AGENTS.md").read_text()
    assert "donewhen complete JOB" in (project / "CLAUDE.md").read_text()
    again = donewhen([*INIT, "--jobs"], project, home)
    assert "Everything is set up already." in again.stdout
    assert donewhen(["uninit", "--purge", "--yes"], project, home).returncode == 0
    assert content(project) == before


def test_purge_leaves_what_is_not_donewhens(project: Path, home: dict[str, str], donewhen: Run) -> None:
    donewhen([*INIT, "--jobs"], project, home)
    (project / "jobs" / "worker.py").write_text("x = 1\n")
    done = donewhen(["uninit", "--purge", "--yes"], project, home)
    assert "kept: jobs/worker.py" in done.stdout
    assert (project / "jobs" / "worker.py").read_text() == "x = 1\n"


def test_a_record_cannot_name_other_files(project: Path, home: dict[str, str], donewhen: Run, tmp_path: Path) -> None:
    donewhen(INIT, project, home)
    (tmp_path / "mine.txt").write_text("mine\n")
    (project / "own.txt").write_text("mine\n")
    record = project / ".donewhen" / "setup.json"
    data = json.loads(record.read_text())
    data["files"] += [{"path": name, "text": "mine\n", "created": True} for name in ("../mine.txt", "own.txt")]
    data["folders"] += ["../home", "/tmp"]
    record.write_text(json.dumps(data))
    (tmp_path / "empty").mkdir()
    donewhen(["uninit", "--yes"], project, home)
    assert (tmp_path / "mine.txt").exists()
    assert (project / "own.txt").exists()
    assert (tmp_path / "home").exists()


@pytest.mark.parametrize("arguments", [["uninit"], ["uninit", "--purge"], ["uninit", "--dry-run"]])
def test_without_a_terminal_and_without_yes_nothing_is_removed(
    project: Path, home: dict[str, str], donewhen: Run, arguments: list[str]
) -> None:
    donewhen(INIT, project, home)
    before = content(project)
    done = donewhen(arguments, project, home)
    assert done.returncode == (0 if "--dry-run" in arguments else 2)
    assert "donewhen.toml" in done.stdout
    assert content(project) == before


@pytest.mark.parametrize("answer", [b"\x03", b"n\n"])
def test_whoever_declines_keeps_everything(project: Path, home: dict[str, str], donewhen: Run, answer: bytes) -> None:
    donewhen(INIT, project, home)
    before = content(project)
    played = at_terminal(["uninit"], project, home, question="Remove this?", answer=answer)
    assert played.status == (1 if answer == b"n\n" else 130)
    assert content(project) == before


def test_hooks_of_an_older_installation_go_without_a_record(project: Path, home: dict[str, str], donewhen: Run) -> None:
    before = content(project)
    assert donewhen(["hooks", "install", "--claude"], project, home).returncode == 0
    assert donewhen(["uninit", "--yes"], project, home).returncode == 0
    assert {name: text for name, text in content(project).items() if name != ".claude"} == before
