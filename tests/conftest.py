"""What tests in several rooms share: small workspaces, git, and somebody to play the person at the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from donewhen.config.agent_runtimes import AGENT_VARIABLES

# A CI system is part of the environment that evidence is bound to. Which tests are in one, they say themselves.
for _mark in ("CI", "GITHUB_ACTIONS"):
    os.environ.pop(_mark, None)

# A process of its own, because forking one with threads is not safe; and one that has left its parents behind, because
# donewhen takes whoever descends from an agent's program for an agent, and an agent may be running these tests.
_PLAYER = r"""
import json, os, pty, re, sys
if os.fork():
    os._exit(0)
given = json.loads(sys.argv[1])
process, terminal = pty.fork()
if process == 0:
    os.execv(given["argv"][0], given["argv"])
screen, answered = b"", 0
try:
    while chunk := os.read(terminal, 4096):
        screen += chunk
        shown = re.search(rb"type ([a-z]+-[a-z]+) and press", screen)
        if screen[answered:].rstrip().endswith((b"word:", b"passphrase:", b"confirmation:")):
            answered = len(screen)
            word = given["answer"].encode() if given["answer"] is not None else shown[1]
            os.write(terminal, word + b"\n")
        elif screen[answered:].rstrip().endswith(b"q quit"):
            answered = len(screen)
            os.write(terminal, given["keys"].pop(0).encode() if given["keys"] else b"q")
except OSError:
    pass
_, status = os.waitpid(process, 0)
print(json.dumps({"status": os.waitstatus_to_exitcode(status), "screen": screen.decode("utf-8", "replace")}))
"""


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
    arguments: Sequence[str],
    cwd: Path,
    *,
    answer: str | None = None,
    keys: Sequence[str] = (),
    env: dict[str, str] | None = None,
) -> Played:
    """Run ``donewhen`` on a real pseudo-terminal and type the word that it shows (or ``answer`` instead).

    ``keys`` are pressed where a review asks for one; after the last of them, it is left.
    """
    argv = [sys.executable, "-m", "donewhen", *arguments]
    done = subprocess.run(
        [sys.executable, "-c", _PLAYER, json.dumps({"argv": argv, "answer": answer, "keys": [*keys]})],
        cwd=cwd,
        env=quiet_environment() if env is None else env,
        stdout=subprocess.PIPE,
        text=True,
    )
    told = json.loads(done.stdout)
    return Played(told["status"], told["screen"])


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
