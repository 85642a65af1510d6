"""The folder of the demo, in which an agent and a person run real commands, the person at a pseudo-terminal."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.demo.story_lines import StoryBroken, StoryLine, Tell, Who
from donewhen.foundation.caller_variables import CALLER_VARIABLES

AGENT_MARK = "DONEWHEN_AGENT"
_HIDDEN = frozenset({*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"})
_ASKED = "(^To .+ and press Enter)"
_WORD = re.compile(r"type ([a-z]+-[a-z]+) and press Enter")
_ASKED_FOR_WORD = "word:"
_ASKED_FOR_KEY = "q quit"
_GRACE = 5.0
_ROWS = 40


class CommandRun(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    output: str

    @property
    def last(self) -> str:
        lines = self.output.split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


class Stage:
    """Run the commands and report the relevant lines of their output.

    The person and the agent share one environment, because evidence depends on it; only AGENT_MARK differs.
    """

    def __init__(self, folder: Path, tell: Tell, *, columns: int = 100, watched: bool = False) -> None:
        self.folder = folder
        self._tell = tell
        self._columns = columns
        self._watched = watched
        kept = {name: value for name, value in CALLER_VARIABLES.items() if name not in _HIDDEN}
        # The folder of the running Python has a python3, whatever else is installed.
        path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
        self.environment: Mapping[str, str] = {**kept, "PATH": path, "NO_COLOR": "1"}

    def chapter(self, text: str) -> None:
        self._tell(StoryLine("story", "chapter", text))

    def cheat(self, text: str) -> None:
        self._tell(StoryLine("story", "cheat", text))

    def note(self, text: str) -> None:
        self._tell(StoryLine("story", "note", text))

    def says(self, text: str) -> None:
        """Report a claim of the agent, which has no effect."""
        self._tell(StoryLine("agent", "says", text))

    def writes(self, who: Who, files: Mapping[str, str], what: str) -> None:
        """Write files, and report it as ``what``."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self._tell(StoryLine(who, "does", what))

    def run(
        self,
        who: Who,
        *arguments: str,
        show: Sequence[str] = (),
        status: int | None = 0,
        stdin: str | None = None,
        bars: bool = False,
    ) -> CommandRun:
        """Run a command without a terminal.

        Lines of the output that match a pattern in ``show`` are reported at once: the whole line, or the first group
        of the pattern. With ``bars``, the command may draw progress bars if the demo is watched.
        """
        self._tell(StoryLine(who, "command", _written(arguments)))
        said: list[str] = []
        stdin_from = subprocess.PIPE if stdin is not None else subprocess.DEVNULL
        with self._child(arguments, who, stdin_from, bars=bars and self._watched) as child:
            if stdin is not None:
                _given(child.stdin, stdin)
            for line in child.stdout or ():
                said.append(line)
                self._answer(line, show)
        return self._ended(arguments, CommandRun(child.returncode, "".join(said)), status)

    def at_terminal(
        self, *arguments: str, show: Sequence[str] = (), keys: str = "", status: int | None = 0
    ) -> CommandRun:
        """Run a command at a pseudo-terminal: type the word that is asked for, and press ``keys``."""
        self._tell(StoryLine("person", "command", _written(arguments)))
        ours, theirs = pty.openpty()
        try:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, self._columns, 0, 0))
            with self._child(arguments, "person", theirs) as child:
                os.close(theirs)
                theirs = -1
                screen = self._conversation(ours, show, list(keys))
        finally:
            for descriptor in (ours, theirs):
                if descriptor != -1:
                    os.close(descriptor)
        return self._ended(arguments, CommandRun(child.returncode, screen), status)

    def wants_to_stop(self) -> str | None:
        """Send a stop event, as the agent's runtime would. Return the reason of a refusal; None if it may stop."""
        event = {"hook_event_name": "Stop", "session_id": "demo", "cwd": str(self.folder), "stop_hook_active": False}
        arguments = ("hook", "stop", "--runtime", "claude")
        self._tell(StoryLine("agent", "does", "ends its turn; its runtime asks donewhen whether it may stop"))
        answer = json.loads(self.run("agent", *arguments, stdin=json.dumps(event)).output)
        reason: str | None = answer.get("reason") if answer.get("decision") == "block" else None
        message = "It may stop." if reason is None else f"It may not stop: {reason}"
        self._tell(StoryLine("donewhen", "answer", message, good=reason is None))
        return reason

    def git(self, *arguments: str) -> str:
        """Run git with an identity of the demo, and without signing and hooks of the user's settings."""
        settings = ("user.name=Demo", "user.email=demo@localhost", "commit.gpgsign=false", "core.hooksPath=/dev/null")
        done = subprocess.run(
            ["git", *(word for setting in settings for word in ("-c", setting)), *arguments],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise StoryBroken(f"git {arguments[0]} failed: {done.stderr.strip()}")
        return done.stdout

    def _conversation(self, terminal: int, show: Sequence[str], keys: list[str]) -> str:
        """Answer the prompts on the terminal, and return all of its output."""
        screen = ""
        shown_up_to = 0
        for chunk in _chunks(terminal):
            screen += chunk
            whole = screen.rfind("\n") + 1
            lines = screen[shown_up_to:whole].splitlines()
            for line in lines:
                self._answer(line, (*show, _ASKED))
            shown_up_to = whole
            word = _WORD.search(screen)
            if word is not None and screen[shown_up_to:].rstrip().endswith(_ASKED_FOR_WORD):
                self._tell(StoryLine("person", "types", word[1]))
                os.write(terminal, f"{word[1]}\n".encode())
                shown_up_to = len(screen)
            elif any(_ASKED_FOR_KEY in line for line in lines):
                key = keys.pop(0) if keys else "q"
                self._tell(StoryLine("person", "presses", key))
                os.write(terminal, key.encode())
        return screen

    def _answer(self, line: str, show: Sequence[str]) -> None:
        found = next((match for pattern in show if (match := re.search(pattern, line.strip()))), None)
        if found is not None:
            text = found[1] if found.re.groups else found.string
            self._tell(StoryLine("donewhen", "answer", text, good=_judged(text)))

    @contextmanager
    def _child(
        self, arguments: Sequence[str], who: Who, stdin: int, *, bars: bool = False
    ) -> Iterator[subprocess.Popen[str]]:
        """Start the command as a process that ends with this context, also on an exception."""
        terminal = stdin not in (subprocess.PIPE, subprocess.DEVNULL)
        mark = {AGENT_MARK: "1"} if who == "agent" else {}
        child = subprocess.Popen(
            [sys.executable, "-m", "donewhen", *arguments],
            cwd=self.folder,
            env={**self.environment, **mark},
            stdin=stdin,
            stdout=stdin if terminal else subprocess.PIPE,
            stderr=stdin if terminal else None if bars else subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        try:
            yield child
        except BaseException:
            # Like Ctrl-C: donewhen ends its own processes and leaves no half-written files.
            child.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE)
            child.kill()
            raise
        finally:
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()

    def _ended(self, arguments: Sequence[str], ran: CommandRun, status: int | None) -> CommandRun:
        if status is not None and ran.status != status:
            raise StoryBroken(f"{_written(arguments)} exited with {ran.status}, not with {status}: {ran.last}")
        return ran


def _given(pipe: IO[str] | None, text: str) -> None:
    if pipe is not None:
        with suppress(BrokenPipeError):
            pipe.write(text)
            pipe.close()


def _chunks(terminal: int) -> Iterator[str]:
    """Yield the output on a terminal until the other side closes it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    # When the other side is closed, Linux raises an error; other systems return nothing.
    with suppress(OSError):
        while chunk := os.read(terminal, 4096):
            yield decoder.decode(chunk)


def _judged(text: str) -> bool | None:
    if text.startswith(("✓", "<promise>", "receipt:")) or text.endswith((": agreed", ": clean.")):
        return True
    return False if text.startswith(("✗", "[", "▼", "- removed")) or "does not count" in text else None


def _written(arguments: Sequence[str]) -> str:
    words = [f'"{argument}"' if " " in argument else shlex.quote(argument) for argument in arguments]
    return " ".join(["donewhen", *words])
