"""`donewhen init` looks, proposes, asks, writes, and proves that an agent is held."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from setup_kit import FAILING, PASSING, at_terminal, content, environment, python_project

from donewhen.config import load
from donewhen_kit import git_command
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]
GIVEN = ["init", "--claude", "--run", "test -f done.txt", "--yes"]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path / "home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return python_project(tmp_path / "shop")


def envelope(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def stop(project: Path, home: dict[str, str]) -> dict[str, Any]:
    """What Claude Code is answered when an agent wants to stop."""
    settings = json.loads((project / ".claude" / "settings.json").read_text())
    (line,) = [hook["command"] for group in settings["hooks"]["Stop"] for hook in group["hooks"] if "donewhen" in
               hook["command"]]  # fmt: skip
    event = {"session_id": "one", "cwd": str(project), "hook_event_name": "Stop", "stop_hook_active": False}
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        input=json.dumps(event).encode(),
        capture_output=True,
        cwd=project,
        env=home | {"CLAUDE_PROJECT_DIR": str(project)},
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_one_command_holds_an_agent_whose_tests_fail(project: Path, home: dict[str, str], donewhen: Run) -> None:
    done = donewhen(["init", "--claude", "--run", "pytest -q", "--yes"], project, home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_sentences(done.stdout)
    assert load(project).stop.commands == ("pytest -q",)
    answer = stop(project, home)
    assert answer["decision"] == "block"
    assert "`pytest -q` failed with exit status 1" in answer["reason"]
    (project / "test_it.py").write_text(PASSING)
    assert "decision" not in stop(project, home)


def test_what_is_here_is_found(project: Path, home: dict[str, str], donewhen: Run) -> None:
    (project / ".claude").mkdir()
    (project / ".codex").mkdir()
    told = envelope(donewhen(["init", "--yes", "--json"], project, home))
    assert told["ok"]
    assert told["data"]["runtimes"] == ["claude", "codex"]
    assert told["data"]["commands"] == ["python -m pytest -q --junitxml={junit}"]
    assert [(trial["passed"], "1 of 1 test(s) are failing" in trial["feedback"]) for trial in told["data"]["trials"]] \
        == [(False, True)]  # fmt: skip
    assert [(proof["runtime"], proof["held"], proof["released"]) for proof in told["data"]["proofs"]] == [
        ("claude", True, True),
        ("codex", True, True),
    ]
    settings = load(project).stop
    assert settings.tests is not None
    assert settings.tests.run == "python -m pytest -q --junitxml={junit}"


def test_a_runtime_is_also_found_by_its_program_and_its_variable(
    tmp_path: Path, project: Path, home: dict[str, str], donewhen: Run
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gemini").write_text("#!/bin/sh\n")
    (programs / "gemini").chmod(0o755)
    variables = home | {"PATH": f"{home['PATH']}:{programs}", "CLAUDECODE": "1"}
    told = envelope(donewhen(["init", "--dry-run", "--json"], project, variables))
    assert told["data"]["runtimes"] == ["claude", "gemini"]
    assert sorted(content(project)) == ["test_it.py"]


def test_a_second_time_changes_nothing(project: Path, home: dict[str, str], donewhen: Run) -> None:
    assert donewhen(GIVEN, project, home).returncode == 0
    before = content(project)
    again = donewhen(GIVEN, project, home)
    assert again.returncode == 0
    assert "Everything is set up already." in again.stdout
    assert content(project) == before


@pytest.mark.parametrize("arguments", [["init"], ["init", "--claude", "--run", "pytest -q"], ["init", "--jobs"]])
def test_without_a_terminal_and_without_yes_nothing_is_written_or_run(
    project: Path, home: dict[str, str], donewhen: Run, arguments: list[str]
) -> None:
    (project / ".claude").mkdir()
    (project / "test_it.py").write_text("import pathlib; pathlib.Path('ran').touch()\n" + FAILING)
    before = content(project)
    done = donewhen(arguments, project, home)
    assert done.returncode == 2
    assert "Give --yes to write it." in done.stderr
    assert "+[stop]" in done.stdout
    assert content(project) == before


@pytest.mark.parametrize("answer", [b"\x03", b"n\n", b"\x04"])
def test_at_a_terminal_it_asks_once_and_whoever_declines_gets_nothing(
    project: Path, home: dict[str, str], answer: bytes
) -> None:
    before = content(project)
    played = at_terminal(GIVEN[:-1], project, home, question="Write this?", answer=answer)
    assert played.status == (1 if answer == b"n\n" else 130)
    assert played.screen.count("Write this?") == 1
    assert "Traceback" not in played.screen
    assert content(project) == before


def test_at_a_terminal_enter_writes_it(project: Path, home: dict[str, str]) -> None:
    played = at_terminal(GIVEN[:-1], project, home, question="Write this?", answer=b"\n")
    assert played.status == 0, played.screen
    assert "a red check was held" in played.screen
    assert stop(project, home)["decision"] == "block"


def test_jobs_come_with_a_project_and_the_hooks_check_them(project: Path, home: dict[str, str], donewhen: Run) -> None:
    done = donewhen([*GIVEN, "--jobs", "--title", "Shop"], project, home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project / "jobs" / "plan.md").read_text().count("Shop") > 0
    assert load(project).stop.jobs
    assert donewhen([*GIVEN, "--jobs", "--title", "Shop"], project, home).returncode == 0


def test_a_title_alone_only_creates_a_project_as_before(project: Path, home: dict[str, str], donewhen: Run) -> None:
    assert donewhen(["init", "--title", "Shop"], project, home).returncode == 0
    assert not (project / "donewhen.toml").exists()
    assert not (project / ".claude").exists()
    assert (project / "jobs" / "plan.md").exists()


# settings that are there already


def test_checks_that_are_there_stay_and_what_was_given_is_reported(
    project: Path, home: dict[str, str], donewhen: Run
) -> None:
    (project / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    done = donewhen(GIVEN, project, home)
    assert done.returncode == 0
    assert 'Add them yourself, if you want them: "test -f done.txt"' in done.stdout
    assert (project / "donewhen.toml").read_text() == '[stop]\nfiles = ["report.md"]\n'
    assert stop(project, home)["decision"] == "block"


@pytest.mark.parametrize(
    ("name", "before", "table"),
    [
        ("donewhen.toml", '[judge]\nmissions = "m"', "[stop]"),
        ("pyproject.toml", '[tool.donewhen.judge]\r\nmissions = "m"\r\n', "[tool.donewhen.stop]"),
    ],
)
def test_other_settings_get_a_table(
    project: Path, home: dict[str, str], donewhen: Run, name: str, before: str, table: str
) -> None:
    (project / name).write_bytes(before.encode())
    done = donewhen(GIVEN, project, home)
    assert done.returncode == 0, done.stdout + done.stderr
    after = (project / name).read_bytes().decode()
    assert after.startswith(before)
    assert table in after
    assert after.replace("\r\n", "").count("\n") == (0 if "\r\n" in before else after.count("\n"))
    assert load(project).stop.commands == ("test -f done.txt",)
    tomllib.loads(after)


def test_a_stop_table_without_checks_is_for_a_person(project: Path, home: dict[str, str], donewhen: Run) -> None:
    (project / "donewhen.toml").write_text("[stop]\nmax_stalled = 3\n")
    before = content(project)
    told = envelope(donewhen([*GIVEN, "--json"], project, home))
    assert told["findings"][0]["code"] == "config"
    assert 'commands = ["test -f done.txt"]' in told["findings"][0]["next"]
    assert content(project) == before


# bad input: a sentence, and nothing half written


def test_without_git_the_guard_works_and_it_says_what_needs_git(
    tmp_path: Path, home: dict[str, str], donewhen: Run
) -> None:
    folder = python_project(tmp_path / "plain", repository=False)
    done = donewhen(GIVEN, folder, home)
    assert done.returncode == 0, done.stderr
    assert "This is no git repository." in done.stdout
    assert not (folder / ".gitignore").exists()
    assert stop(folder, home)["decision"] == "block"


def refused(folder: Path, home: dict[str, str], donewhen: Run, arguments: list[str], code: str = "usage") -> str:
    before = content(folder)
    told = envelope(donewhen([*arguments, "--json"], folder, home))
    assert [finding["code"] for finding in told["findings"]] == [code]
    assert content(folder) == before
    return str(told["findings"][0]["message"])


def test_no_tests_and_no_command_is_refused(tmp_path: Path, home: dict[str, str], donewhen: Run) -> None:
    (tmp_path / "empty").mkdir()
    assert_sentences(refused(tmp_path / "empty", home, donewhen, ["init", "--claude", "--yes"]))


def test_no_runtime_is_refused(project: Path, home: dict[str, str], donewhen: Run) -> None:
    assert_sentences(refused(project, home, donewhen, ["init", "--yes"]))


@pytest.mark.parametrize("text", ["nothing-of-this-name --now", "pytest -q | tail"])
def test_a_command_that_cannot_be_started_is_refused(
    project: Path, home: dict[str, str], donewhen: Run, text: str
) -> None:
    assert refused(project, home, donewhen, ["init", "--claude", "--run", text, "--yes"])


def test_the_home_folder_is_no_project(tmp_path: Path, home: dict[str, str], donewhen: Run) -> None:
    assert refused(tmp_path / "home", home, donewhen, GIVEN)


def test_hooks_that_cannot_be_read_are_left_alone(project: Path, home: dict[str, str], donewhen: Run) -> None:
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text("{ // mine\n}")
    assert refused(project, home, donewhen, GIVEN, "config")


def test_settings_that_are_broken_are_left_alone(project: Path, home: dict[str, str], donewhen: Run) -> None:
    (project / "donewhen.toml").write_text("[stop\n")
    assert refused(project, home, donewhen, GIVEN, "config")


@pytest.mark.powerless
def test_a_folder_that_is_read_only_is_refused(project: Path, home: dict[str, str], donewhen: Run) -> None:
    project.chmod(0o555)
    try:
        assert refused(project, home, donewhen, GIVEN)
    finally:
        project.chmod(0o755)


@pytest.mark.parametrize(("error", "status"), [(OSError(28, "No space left on device"), 3), (KeyboardInterrupt(), 130)])
def test_what_was_written_before_an_error_is_taken_back(
    project: Path,
    home: dict[str, str],
    donewhen: Run,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
) -> None:
    (project / ".gitignore").write_text("build/")
    before = content(project)

    def fail(*arguments: object, **options: object) -> None:
        if not options.get("dry_run"):
            assert (project / "donewhen.toml").exists()
            (project / ".claude" / "donewhen").mkdir(parents=True)
            (project / ".claude" / "donewhen" / "hook").write_text("half")
            raise error

    monkeypatch.setattr("donewhen.setup.applying.install_target", fail)
    assert donewhen(GIVEN, project, home).returncode == status
    assert content(project) == before


def test_foreign_hooks_stay(project: Path, home: dict[str, str], donewhen: Run) -> None:
    (project / ".claude").mkdir()
    mine = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo mine"}]}]}}
    (project / ".claude" / "settings.json").write_text(json.dumps(mine))
    assert donewhen(GIVEN, project, home).returncode == 0
    groups = json.loads((project / ".claude" / "settings.json").read_text())["hooks"]["Stop"]
    assert groups[0] == mine["hooks"]["Stop"][0]


@pytest.mark.parametrize("missing", ["donewhen.toml", ".claude/donewhen/hook", ".claude/settings.json", ".donewhen"])
def test_what_is_half_installed_is_completed(project: Path, home: dict[str, str], donewhen: Run, missing: str) -> None:
    assert donewhen(GIVEN, project, home).returncode == 0
    before = content(project)
    path = project / missing
    if path.is_dir():
        subprocess.run(["rm", "-r", path], check=True)
    else:
        path.unlink()
    again = donewhen(GIVEN, project, home)
    assert again.returncode == 0, again.stdout + again.stderr
    expected = {name: text for name, text in before.items() if not (missing == ".donewhen" and ".donewhen" in name)}
    assert {name: text for name, text in content(project).items() if name in expected} == expected
    assert stop(project, home)["decision"] == "block"


def test_a_sub_folder_of_a_repository_says_where_agents_must_be_started(
    tmp_path: Path, home: dict[str, str], donewhen: Run
) -> None:
    git_command(tmp_path, "init", "-q")
    folder = python_project(tmp_path / "part", repository=False)
    done = donewhen(GIVEN, folder, home)
    assert done.returncode == 0
    assert "agents are only held if they are started here" in done.stdout
    assert (folder / ".claude" / "settings.json").exists()


def test_a_hook_that_does_not_work_is_no_proof(
    project: Path, home: dict[str, str], donewhen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert donewhen(GIVEN, project, home).returncode == 0
    script = project / ".claude" / "donewhen" / "hook"
    script.write_text(script.read_text().replace('donewhen "$@"', 'echo nothing "$@"', 1))
    (project / ".claude" / "settings.json").write_text(
        (project / ".claude" / "settings.json").read_text().replace("hook stop --", "hook nothing --")
    )
    monkeypatch.setattr("donewhen.setup.proposal.install_with_script", _as_it_is)
    told = envelope(donewhen([*GIVEN, "--json"], project, home))
    assert [finding["code"] for finding in told["findings"]] == ["not_proven"]


def _as_it_is(path: Path, entries: object, script: Path, text: bytes, **options: object) -> tuple[object, object]:
    from donewhen.adapters.hook_files import FileChange

    return FileChange(path, path.read_bytes(), path.read_bytes()), FileChange(script, text, text)


def test_nothing_of_the_persons_home_is_written(
    tmp_path: Path, project: Path, home: dict[str, str], donewhen: Run
) -> None:
    assert donewhen(GIVEN, project, home).returncode == 0
    assert [name for name in os.listdir(tmp_path / "home") if name in (".claude", ".codex")] == []
