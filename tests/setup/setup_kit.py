"""Small projects to set donewhen up in, and what a folder contains."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from donewhen_kit import git_command, quiet_environment

_GIVE_UP = 300.0
BESIDE = str(Path(sys.executable).parent)
FAILING = "def test_it():\n    assert 1 == 2\n"
PASSING = "def test_it():\n    assert 1 == 1\n"


def environment(home: Path, **more: str) -> dict[str, str]:
    """The variables of a person whose home is empty and who has no client of an agent runtime."""
    home.mkdir(exist_ok=True)
    # The shell of Codex is a login shell.
    (home / ".profile").write_text(f"PATH={BESIDE}:/usr/bin:/bin\n")
    own = {"HOME": str(home), "PATH": f"{BESIDE}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    return quiet_environment(**own | {"PYTEST_ADDOPTS": "-p no:cacheprovider"} | more)


def python_project(folder: Path, test: str = FAILING, *, repository: bool = True) -> Path:
    """A project with one test."""
    folder.mkdir(exist_ok=True)
    (folder / "test_it.py").write_text(test)
    if repository:
        git_command(folder, "init", "-q", "-b", "main")
    return folder


def content(folder: Path) -> dict[str, bytes | None]:
    """Every file with its bytes, and every folder, without git's own and what Python compiles."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not {".git", "__pycache__", ".pytest_cache"} & set(path.relative_to(folder).parts)
    }


class Played(NamedTuple):
    status: int
    screen: str


def at_terminal(
    arguments: list[str], folder: Path, variables: Mapping[str, str], *, question: str, answer: bytes
) -> Played:
    """Run donewhen at a terminal, and type ``answer`` when it asks the question."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "donewhen", *arguments],
        cwd=folder,
        env=dict(variables),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    screen, asked, ends = b"", False, time.monotonic() + _GIVE_UP
    try:
        while time.monotonic() < ends and (chunk := _read(ours)):
            screen += chunk
            if not asked and question.encode() in screen:
                asked = True
                os.write(ours, answer)
        return Played(process.wait(_GIVE_UP), screen.decode("utf-8", "replace"))
    finally:
        process.kill()
        os.close(ours)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""
