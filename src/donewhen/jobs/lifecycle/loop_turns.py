"""One turn of a loop: run the agent, show what it says while it says it, and keep it."""

from __future__ import annotations

import codecs
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from donewhen.config.state_folder import FOLDER, prepare_state_folder
from donewhen.foundation.process import CommandResult, run_command
from donewhen.jobs.lifecycle.turn_usage import TurnUsage, usage_in

_QUICK = 5.0
"""A turn that ends within so many seconds is a quick one."""
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0
_MAX_LINE = 4000


class LoopLimits(NamedTuple):
    """The loop's own limits, in addition to the agreed budget."""

    turns: int = 20
    seconds: float = 4 * 3600.0
    turn_seconds: float = 3600.0


class AgentTurn(NamedTuple):
    """A run of the agent."""

    agent: CommandResult
    transcript: Path
    """The file with everything that the agent has put out."""
    usage: TurnUsage | None
    """The tokens that it used, if its runtime reports them."""


class AgentRunner:
    """Runs an agent turn by turn. ``on_text`` gets each line that it puts out, at once."""

    def __init__(
        self, root: Path, name: str, limits: LoopLimits, on_text: Callable[[str], object], environ: Mapping[str, str]
    ) -> None:
        self._root, self._on_text, self._environ, self._limits = root, on_text, environ, limits
        self._deadline = time.monotonic() + limits.seconds
        self._quick = 0
        # Two loops may begin in the same second.
        begun = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        self._folder = root / FOLDER / "state" / "loops" / name / begun

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self._deadline - time.monotonic()

    def run(self, number: int, words: Sequence[str], env: Mapping[str, str]) -> AgentTurn:
        """Run the agent once. After quick turns in a row it is started later and later."""
        if self._quick > 1:
            wait(min(_FIRST_PAUSE * 2 ** (self._quick - 2), _LONGEST_PAUSE, max(0.0, self.left)))
        prepare_state_folder(self._root)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"turn-{number:03}.log"
        timeout = max(0.01, min(self.left, self._limits.turn_seconds))
        environment = {**self._environ, **env, "DONEWHEN_AGENT": "loop"}
        lines = _Lines(self._on_text)
        # What an agent says may hold secrets: nobody else may read it.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as file:

            def keep(chunk: bytes) -> None:
                file.write(chunk)
                lines.add(chunk)

            agent = run_command(words, cwd=self._root, timeout=timeout, env=environment, on_output=keep)
        lines.end()
        self._quick = self._quick + 1 if agent.seconds < _QUICK else 0
        return AgentTurn(agent, path, usage_in(agent.output))


def wait(seconds: float) -> None:
    """Wait before the next turn."""
    time.sleep(seconds)


class _Lines:
    """Cuts a stream of bytes into lines of text."""

    def __init__(self, on_text: Callable[[str], object]) -> None:
        self._on_text = on_text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def add(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(chunk)).split("\n")
        for line in lines:
            self._on_text(line)
        if len(self._rest) > _MAX_LINE:
            self._on_text(self._rest)
            self._rest = ""

    def end(self) -> None:
        rest = self._rest + self._decoder.decode(b"", final=True)
        if rest:
            self._on_text(rest)
