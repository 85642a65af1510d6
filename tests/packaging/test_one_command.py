"""From a clone to the first refusal: how many commands that takes, and how much work."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from donewhen_kit import git_command, quiet_environment

ROOT = Path(__file__).parents[2]
UV = shutil.which("uv")

pytestmark = [pytest.mark.installs, pytest.mark.xdist_group("wheel")]


class Person:
    """Types commands, and counts them."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, dict(environment)
        self.typed: list[str] = []

    def types(self, line: str) -> str:
        self.typed.append(line)
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=self._folder, env=self._environment, capture_output=True, text=True
        )
        if done.returncode and not _index_is_there(done.stderr):
            pytest.skip(f"LOUD: the package index can't be reached, so the commands are NOT counted: {done.stderr}")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def _index_is_there(text: str) -> bool:
    unreachable = ("No matching distribution", "Could not find a version", "ConnectionError", "Temporary failure")
    return not any(word in text for word in unreachable)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_from_a_clone_to_the_first_refusal_in_two_commands(tmp_path: Path) -> None:
    clone, project, home = tmp_path / "donewhen", tmp_path / "shop", tmp_path / "home"
    git_command(tmp_path, "clone", "-q", "--no-hardlinks", str(ROOT), str(clone))
    home.mkdir()
    project.mkdir()
    git_command(project, "init", "-q")
    (project / "Makefile").write_text("test:\n\t@test -f done.txt\n")
    programs = home / ".local" / "bin"
    environment = quiet_environment(HOME=str(home), PATH=f"{programs}:{Path(UV or '/usr/bin/x').parent}:/usr/bin:/bin")
    for name in ("VIRTUAL_ENV", "PYTHONPATH"):
        environment.pop(name, None)
    if UV is not None:
        environment["UV_CACHE_DIR"] = subprocess.run(
            [UV, "cache", "dir"], capture_output=True, text=True, check=True
        ).stdout.strip()
        install = f"uv tool install --quiet --python {sys.executable} {clone}"
    else:
        subprocess.run([sys.executable, "-m", "venv", home / ".local"], check=True)
        install = f"pip install --quiet {clone}"
    person = Person(project, environment)
    began, used = time.monotonic(), cpu_seconds()

    person.types(install)
    shown = person.types('donewhen init --claude --run "make test" --yes')
    assert "a red check was held" in shown

    settings = json.loads((project / ".claude" / "settings.json").read_text())
    (line,) = [hook["command"] for group in settings["hooks"]["Stop"] for hook in group["hooks"]]
    event = {"session_id": "one", "cwd": str(project), "hook_event_name": "Stop", "stop_hook_active": False}
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        input=json.dumps(event).encode(),
        capture_output=True,
        cwd=project,
        env=environment | {"CLAUDE_PROJECT_DIR": str(project)},
    )
    answer = json.loads(done.stdout)
    took, used = time.monotonic() - began, cpu_seconds() - used

    assert answer["decision"] == "block"
    assert "`make test` failed" in answer["reason"]
    assert len(person.typed) <= 2
    # How long it took says something about the machine; how much was computed, about donewhen.
    print(f"{len(person.typed)} commands, {took:.1f} s, {used:.1f} s of CPU time")
    assert used <= 60
    assert os.access(programs / "donewhen", os.X_OK)
