"""What tests in several rooms share: small workspaces, git, and somebody to play the person at the terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from donewhen.jobs.approval import AGENT_VARIABLES

_WORD = re.compile(rb"type ([a-z]+-[a-z]+) and press")


class Played(NamedTuple):
    """How a command ended that a person ran, and what they saw."""

    status: int
    screen: str


def quiet_environment(**extra: str) -> dict[str, str]:
    """The environment without the marks of an agent or of a CI system, as a person at home has it."""
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS", "DONEWHEN_PASSPHRASE", "NO_COLOR"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | {"NO_COLOR": "1"} | extra


def play_person(
    arguments: Sequence[str], cwd: Path, *, answer: str | None = None, env: dict[str, str] | None = None
) -> Played:
    """Run ``donewhen`` on a real pseudo-terminal and type the word that it shows (or ``answer`` instead)."""
    argv = [sys.executable, "-m", "donewhen", *arguments]
    process, terminal = pty.fork()
    if process == 0:  # pragma: no cover - the child becomes another program
        os.chdir(cwd)
        os.execve(argv[0], argv, quiet_environment() if env is None else env)
    screen = b""
    typed = False
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            break
        if not chunk:
            break
        screen += chunk
        shown = _WORD.search(screen)
        if shown and not typed and screen.rstrip().endswith(b"word:"):
            os.write(terminal, (shown[1] if answer is None else answer.encode()) + b"\n")
            typed = True
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    return Played(os.waitstatus_to_exitcode(status), screen.decode("utf-8", "replace"))


def run_donewhen(
    arguments: Sequence[str], cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``donewhen`` without a terminal, as an agent or a script does."""
    return subprocess.run(
        [sys.executable, "-m", "donewhen", *arguments],
        cwd=cwd,
        env=quiet_environment() if env is None else env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def git_command(folder: Path, *arguments: str) -> str:
    """Run git with an identity, and give back what it says."""
    identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def as_person() -> Callable[..., Played]:
    """``as_person(["agree"], folder)``: a person runs donewhen at a terminal."""
    return play_person


@pytest.fixture
def donewhen() -> Callable[..., subprocess.CompletedProcess[str]]:
    """``donewhen(["status"], folder)``: donewhen without a terminal."""
    return run_donewhen


@pytest.fixture
def git() -> Callable[..., str]:
    """``git(folder, "commit", …)``."""
    return git_command


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An empty git repository."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git_command(folder, "init", "-q", "-b", "main")
    return folder
