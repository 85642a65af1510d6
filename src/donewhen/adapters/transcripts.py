"""The transcripts that agent runtimes keep on this machine: which belong to a folder, and how each ended.

Everything in a transcript is untrusted text. It is read here, and nothing that it names is run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.config.agent_runtimes import agent_runtime
from donewhen.foundation.files import opened

_LONGEST_LINE = 32 << 20
_MOST_FILES = 300

_READERS = {"claude": "claude_code", "codex": "codex"}


class Turn(NamedTuple):
    """What one line says: who spoke, what, and when. ``cwd`` is where the agent worked, if the line says it."""

    role: str
    text: str = ""
    at: str = ""
    cwd: str = ""


TurnOf = Callable[[Mapping[str, Any]], Turn | None]


@dataclass(frozen=True)
class LastMessage:
    """What an agent said at the end of a session."""

    runtime: str
    title: str
    path: Path
    at: str
    text: str


def newest_ending(folder: Path, environ: Mapping[str, str]) -> LastMessage | None:
    """The newest transcript of this folder that ends with a message of the agent; None if there is none."""
    found: list[LastMessage] = []
    for runtime, package in _READERS.items():
        reader = import_module(f"donewhen.adapters.{package}.transcript")
        about = agent_runtime(runtime)
        home = environ.get(about.home_variable)
        base = Path(home) / about.below_home_variable if home else Path.home() / about.folder_in_home
        files: Iterable[Path] = reader.transcripts(base, folder)
        for path in _newest_first(files):
            ending = _ending(path, folder, reader.turn_of)
            if ending is not None:
                found.append(LastMessage(runtime, about.title, path, *ending))
                break
    return max(found, key=lambda message: message.at, default=None)


def _newest_first(files: Iterable[Path]) -> list[Path]:
    dated: list[tuple[float, Path]] = []
    for path in files:
        with suppress(OSError):
            dated.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(dated, reverse=True)[:_MOST_FILES]]


def _ending(path: Path, folder: Path, turn_of: TurnOf) -> tuple[str, str] | None:
    """When and how a session in ``folder`` ended: everything that the agent said after the last other message."""
    texts: list[str] = []
    at, here = "", False
    try:
        for line in _lines(path):
            turn = turn_of(line)
            if turn is None:
                continue
            if turn.cwd and not here:
                # Where the session began; the agent may have gone elsewhere later.
                here = Path(turn.cwd) == folder or folder in Path(turn.cwd).parents
                if not here:
                    return None
            if turn.role == "agent":
                texts.append(turn.text)
                at = turn.at or at
            elif turn.role == "other":
                texts.clear()
    except OSError:
        return None
    said = "\n\n".join(text for text in texts if text.strip())
    return (at, said) if here and said else None


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects of a transcript; lines that are none, or that are still being written, are left out."""
    with opened(path) as stream:
        while raw := stream.readline(_LONGEST_LINE):
            with suppress(ValueError, RecursionError):
                line = json.loads(raw)
                if isinstance(line, dict):
                    yield line


def text_of(content: object, kinds: frozenset[str]) -> str:
    """The text in a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in kinds]
    return "\n".join(text for text in texts if isinstance(text, str))
