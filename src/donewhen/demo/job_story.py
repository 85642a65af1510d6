"""A job that an agent tries to talk into done: real commands, a real folder, and a person at a real terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from donewhen.jobs.approval import AGENT_VARIABLES, agent_at_work

Who = Literal["person", "agent", "donewhen", "people", "judge", "learned", "in truth"]

TITLE = "Slugs without dashes at the edges"
_CHECK = "python3 -m unittest -q"
_BROKEN = 'def slugify(title):\n    return "-".join(title.lower().split(" "))\n'
_FIXED = 'def slugify(title):\n    return "-".join(title.lower().split())\n'
_TESTS = """\
import unittest

from slugify import slugify


class SlugifyTest(unittest.TestCase):
    def test_edges(self):
        self.assertEqual(slugify(" Done When "), "done-when")
"""
_WORD = re.compile(rb"type ([a-z]+-[a-z]+) and press")


class Line(NamedTuple):
    """One line of the story."""

    who: Who
    text: str
    good: bool = True


class Ending(NamedTuple):
    """How the story ended."""

    told: bool
    """Whether it could be told to its end."""
    because: str = ""
    broken: bool = False


def play_job(folder: Path, tell: Callable[[Line], object]) -> Ending:
    """Tell the story in ``folder``, an empty one."""
    stage = _Stage(folder, tell)
    (folder / "slugify.py").write_text(_BROKEN, encoding="utf-8")
    (folder / "test_slugify.py").write_text(_TESTS, encoding="utf-8")
    stage.run("person", "init", "--title", "Demo")
    criterion = f"The tests pass :: run {_CHECK}"
    stage.run("person", "add", TITLE, "--criterion", criterion, "--output", "/slugify.py")
    job = next(path.name for path in sorted((folder / "jobs").iterdir()) if path.is_dir())
    plan = folder / "jobs" / job / "plan.md"
    stage.run("agent", "agree", show="does not count")
    if stage.typed("agree") != 0:
        told = "An agent seems to run this demo, so nobody can agree for the person, and the story ends here."
        return Ending(False, told, broken=agent_at_work(stage.environment) is None)
    stage.run("agent", "start", "001", show="in_progress")
    stage.run("agent", "complete", "001", show="criterion_failed")
    agreed = plan.read_text(encoding="utf-8")
    stage.edit(plan, agreed.replace("reward_target: 80", "reward_target: 0"), "writes reward_target: 0 into the plan")
    stage.run("agent", "contract", "diff", show="loosened")
    stage.edit(plan, agreed.replace("status: in_progress", "status: done"), "writes status: done into the plan")
    stage.run("agent", "audit", show="the ledger says")
    stage.edit(plan, agreed, "puts the plan back as it was")
    stage.edit(folder / "slugify.py", _FIXED, "repairs slugify.py")
    stage.run("agent", "run", "001", show="✓")
    stage.edit(folder / "slugify.py", _FIXED + "# tidied up\n", "edits slugify.py once more")
    stage.run("agent", "why", "001", show="changed")
    stage.run("agent", "complete", "001", show="<promise>")
    stage.run("person", "audit", show="clean")
    if stage.last != 0:
        return Ending(False, "The last audit was not clean; this demo is broken.", broken=True)
    return Ending(True)


class _Stage:
    """Runs the commands, and tells what of their answers matters."""

    def __init__(self, folder: Path, tell: Callable[[Line], object]) -> None:
        self._folder = folder
        self._tell = tell
        hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS"}
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden} | {"NO_COLOR": "1"}
        self.last = 0

    def run(self, who: Who, *arguments: str, show: str = "") -> None:
        """A command without a terminal; ``show`` picks the line of the answer that is told."""
        self._tell(Line(who, f"donewhen {' '.join(_quoted(one) for one in arguments)}"))
        done = subprocess.run(
            [sys.executable, "-m", "donewhen", *arguments],
            cwd=self._folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.last = done.returncode
        picked = next((line for line in done.stdout.splitlines() if show and show in line), None)
        if picked is not None:
            self._tell(Line("donewhen", picked.strip(), good=done.returncode == 0))

    def typed(self, *arguments: str) -> int:
        """A command at a pseudo-terminal, where the person types the word that is shown."""
        process, terminal = pty.fork()
        if process == 0:  # pragma: no cover - the child becomes another program
            os.chdir(self._folder)
            os.execve(sys.executable, [sys.executable, "-m", "donewhen", *arguments], self.environment)  # noqa: S606
        self._tell(Line("person", f"donewhen {' '.join(arguments)}"))
        screen = _screen(terminal)
        _, status = os.waitpid(process, 0)
        word = _WORD.search(screen)
        if word is not None:
            self._tell(Line("donewhen", f"To agree to this, type {word[1].decode()} and press Enter."))
            self._tell(Line("person", f"types {word[1].decode()}"))
        self.last = os.waitstatus_to_exitcode(status)
        return self.last

    def edit(self, path: Path, text: str, told: str) -> None:
        """The agent changes a file."""
        path.write_text(text, encoding="utf-8")
        self._tell(Line("agent", told))


def _screen(terminal: int) -> bytes:
    """Everything that appears on the terminal; the word is typed when it is asked for."""
    screen = b""
    typed = False
    try:
        while chunk := os.read(terminal, 4096):
            screen += chunk
            shown = _WORD.search(screen)
            if shown and not typed and screen.rstrip().endswith(b"word:"):
                os.write(terminal, shown[1] + b"\n")
                typed = True
    except OSError:
        # Linux says so when the other side has closed.
        pass
    finally:
        os.close(terminal)
    return screen


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word
