"""The hook events and answers of Codex."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from donewhen.adapters.command_hooks import Answer, HookKind, HookRequest, existing_folder
from donewhen.foundation.plain_text import one_line


class CodexDialect:
    """A block with a non-empty reason holds the agent back; an answer with an unknown key lets it stop."""

    name = "codex"
    # Codex waits 3 seconds for a hook at the end of a session.
    end_seconds = 1.5

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        folder = existing_folder(event.get("cwd"))
        # A turn starts with a user message; attempts are counted per turn.
        turn = event.get("turn_id")
        agent = event.get("agent_id")
        session = str(event.get("session_id", ""))
        return HookRequest(
            kind,
            session if agent is None else f"{session}:{agent}",
            folder,
            output=event.get("last_assistant_message"),
            retried=event.get("stop_hook_active") is True,
            exempt=_why_exempt(kind, event),
            turn=turn if isinstance(turn, str) and turn else None,
            planning=event.get("permission_mode") == "plan",
            how=one_line(str(event.get("reason", "")), 80),
        )

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        return {"decision": "block", "reason": reason}

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        return {}


def _why_exempt(kind: HookKind, event: Mapping[str, Any]) -> str | None:
    if kind == "pre-tool-use":
        return "Codex gives its output through Stop"
    transcript = event.get("transcript_path")
    if kind == "session-end" and isinstance(transcript, str) and not os.path.lexists(transcript):
        return "nothing was asked in this session"
    return None
