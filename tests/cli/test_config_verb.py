"""``donewhen config show``: every value with its source, and every mistake with its place."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from donewhen.config import VerifySettings
from donewhen_kit import run_main
from sentences import assert_sentences

GUARD = {
    "files": [],
    "commands": [],
    "tests": None,
    "pass_env": [],
    "command_timeout": 300.0,
    "check_timeout": 1500.0,
    "max_stalled": 5,
    "max_attempts": 50,
    "jobs": False,
    "require_job": "ask",
    "base": None,
}
REST = {
    "jobs.command_timeout": 900.0,
    "jobs.pass_env": [],
    "jobs.isolation": None,
    "jobs.signs_allowed": [],
    "strength.time": "suite",
    "judge.missions": "missions",
    "judge.trial_accepts": False,
    "verify.from_base": list(VerifySettings().from_base),
    "approval.ci": False,
    "approval.keys": [],
    "approval.ssh": [],
    "github.api_url": "https://api.github.com",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def show(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_main(["config", "show", *arguments], project, {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})


def envelope(project: Path) -> dict[str, Any]:
    ran = show(project, "--json")
    assert ran.stderr == ""
    data: dict[str, Any] = json.loads(ran.stdout)
    assert set(data) == {"schema", "command", "ok", "data", "findings"}
    assert data["schema"] == "donewhen/v1"
    assert data["command"] == "config"
    assert data["ok"] is (ran.returncode == 0)
    return data


def lines(project: Path) -> dict[str, tuple[str, str]]:
    """Each setting that was printed, with its value and its source."""
    ran = show(project)
    assert (ran.returncode, ran.stderr) == (0, "")
    rows = [line for line in ran.stdout.splitlines() if not line.startswith("#")]
    found = {}
    for row in rows:
        name, rest = row.split(" = ", 1)
        value, source = rest.rsplit("  # ", 1)
        found[name] = (value.strip(), source)
    return found


def test_without_a_file_every_value_is_a_default_and_that_is_said(project: Path) -> None:
    ran = show(project)
    assert ran.stdout.startswith("# no settings file: every stop is allowed\n")
    found = lines(project)
    assert {source for _, source in found.values()} == {"default"}
    expected = [f"{table}.{name}" for table in ("stop", "subagent_stop", "task_completed") for name in GUARD]
    assert list(found) == [*expected, *REST]
    assert found["stop.files"] == ("[]", "default")
    assert found["stop.tests"] == ("none", "default")
    assert found["stop.max_stalled"] == ("5", "default")


def test_without_a_file_the_envelope_has_no_source(project: Path) -> None:
    data = envelope(project)["data"]
    assert data["root"] == str(project)
    assert data["source"] is None
    assert data["settings"] == {
        f"{table}.{name}": {"value": value, "source": "default"}
        for table in ("stop", "subagent_stop", "task_completed")
        for name, value in GUARD.items()
    } | {name: {"value": value, "source": "default"} for name, value in REST.items()}


def test_what_the_file_gives_is_shown_with_the_file(project: Path) -> None:
    path = project / "donewhen.toml"
    path.write_text('[stop]\nfiles = ["a.md", "b c.md"]\nmax_stalled = 5\n[stop.tests]\nrun = "t {junit}"\n')
    found = lines(project)
    assert found["stop.files"] == ("['a.md', 'b c.md']", str(path))
    # The same value as the default, and still given.
    assert found["stop.max_stalled"] == ("5", str(path))
    assert found["stop.tests.run"] == ("'t {junit}'", str(path))
    assert found["stop.tests.timeout"] == ("900.0", "default")
    assert found["stop.tests.baseline"] == ("none", "default")
    assert found["stop.max_attempts"] == ("50", "default")
    assert found["subagent_stop.files"] == ("[]", "default")
    assert "stop.tests" not in found


def test_the_envelope_has_the_same_values_and_sources(project: Path) -> None:
    path = project / "pyproject.toml"
    path.write_text('[tool.donewhen.task_completed]\ncommands = ["make check"]\ncheck_timeout = 7\n')
    data = envelope(project)["data"]
    assert data["source"] == str(path)
    settings = data["settings"]
    assert settings["task_completed.commands"] == {"value": ["make check"], "source": str(path)}
    assert settings["task_completed.check_timeout"] == {"value": 7.0, "source": str(path)}
    given = [name for name, one in settings.items() if one["source"] != "default"]
    assert given == ["task_completed.commands", "task_completed.check_timeout"]


def test_from_a_subfolder_the_projects_settings_are_shown(project: Path) -> None:
    (project / "donewhen.toml").write_text('[stop]\nfiles = ["a"]\n')
    below = project / "src"
    below.mkdir()
    data = envelope(below)["data"]
    assert data["root"] == str(project)
    assert data["source"] == str(project / "donewhen.toml")


def test_values_cannot_drive_the_terminal(project: Path) -> None:
    (project / "donewhen.toml").write_text('[stop]\nfiles = ["\\u001b[31mred\\u001b[0m"]\n')
    assert "\x1b" not in show(project).stdout


@pytest.mark.parametrize(
    "text",
    [
        "[stop\n",
        '[stop]\nfile = ["a"]\n',
        "[stop]\nmax_stalled = true\n",
        '[stop]\ncommands = ["a | b"]\n',
    ],
)
def test_a_mistake_is_an_error_with_its_place_and_status_2(project: Path, text: str) -> None:
    path = project / "donewhen.toml"
    path.write_text(text)
    ran = show(project)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"donewhen: {path}: ")
    assert_sentences(ran.stderr)
    (finding,) = envelope(project)["findings"]
    assert finding["code"] == "config"
    assert finding["where"] == str(path)
    assert_sentences(finding["message"])


def test_a_mistake_in_a_command_names_the_table_it_stands_in(project: Path) -> None:
    # Three tables can hold commands; the reader has to find the right one.
    (project / "donewhen.toml").write_text('[task_completed.tests]\nrun = "pytest"\n')
    ran = show(project)
    assert ran.returncode == 2
    assert_sentences(ran.stderr)


@pytest.mark.parametrize("name", ["../a.md", "/etc/passwd", "a/../../b"])
def test_a_file_outside_the_project_is_a_mistake_that_is_found_before_an_agent_meets_it(
    project: Path, name: str
) -> None:
    # Such a check can only ever end as a gate_error.
    (project / "donewhen.toml").write_text(f"[stop]\nfiles = [{json.dumps(name)}]\n")
    ran = show(project)
    assert ran.returncode == 2
    assert name in ran.stderr


@pytest.mark.parametrize("text", [f"[stop]\ncommand_timeout = 1{'0' * 400}\n", f"[stop]\nfiles = {'[' * 5000}\n"])
def test_a_value_that_is_too_much_for_python_is_the_files_mistake_and_not_ours(project: Path, text: str) -> None:
    (project / "donewhen.toml").write_text(text)
    ran = show(project)
    assert ran.returncode == 2
    assert_sentences(ran.stderr)


def test_it_explains_itself(project: Path) -> None:
    ran = show(project, "--help")
    assert ran.returncode == 0
    assert ran.stdout.startswith("Usage: donewhen config show")
    assert "--json" in ran.stdout
