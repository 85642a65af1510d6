"""The transcripts of Claude Code: one file per session, in a folder that is named after the project's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from donewhen.adapters.transcripts import Turn, text_of

_TEXT = frozenset({"text"})


def transcripts(base: Path, folder: Path) -> Iterator[Path]:
    """The files that may belong to a folder. Sub-agents have files of their own, which are left out."""
    projects = base / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(folder))
    return (path for path in projects.glob("*.jsonl") if not path.name.startswith("agent-"))


def turn_of(line: Mapping[str, Any]) -> Turn | None:
    """What a line says; None if it is no message of the conversation."""
    message = line.get("message")
    if line.get("isSidechain") or line.get("isMeta") or line.get("type") not in ("user", "assistant"):
        return None
    if not isinstance(message, dict):
        return None
    text = text_of(message.get("content"), _TEXT)
    role = "agent" if line["type"] == "assistant" and text else "other" if line["type"] == "user" else "none"
    return Turn(role, text, str(line.get("timestamp", "")), str(line.get("cwd", "")))
