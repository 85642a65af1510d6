"""The transcripts of Codex: one file per session, in a folder for each day; the first line names the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from donewhen.adapters.transcripts import Turn, text_of

_TEXT = frozenset({"output_text", "input_text", "text"})
_MOST_DAYS = 60


def transcripts(base: Path, folder: Path) -> Iterator[Path]:
    """The files of the newest days, of all folders."""
    days = sorted((base / "sessions").glob("[0-9]*/[0-9]*/[0-9]*"), reverse=True)
    return (path for day in islice(days, _MOST_DAYS) for path in day.glob("rollout-*.jsonl"))


def turn_of(line: Mapping[str, Any]) -> Turn | None:
    """What a line says; None if it is no message of the conversation."""
    content, at = line.get("payload"), str(line.get("timestamp", ""))
    if not isinstance(content, dict):
        return None
    if line.get("type") == "session_meta":
        return Turn("none", cwd=str(content.get("cwd", "")))
    if line.get("type") != "response_item":
        return None
    if content.get("type") == "message":
        text = text_of(content.get("content"), _TEXT)
        return Turn("agent" if content.get("role") == "assistant" else "other", text, at)
    # What a tool answers comes between two messages of the agent.
    return Turn("other") if str(content.get("type", "")).endswith("_output") else None
