"""The hook events and answers of Copilot CLI, in the form that it shares with Claude Code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from donewhen.adapters.command_hooks import Answer, HookKind, HookRequest, existing_folder
from donewhen.foundation.plain_text import one_line


class CopilotDialect:
    """A block with a reason holds the agent back. The event has no text of the agent."""

    name = "copilot"
    end_seconds = 30.0

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        session = str(event.get("session_id") or event.get("sessionId") or "unknown")
        agent = event.get("agent_id") or event.get("agentId")
        return HookRequest(
            kind,
            session if agent is None else f"{session}:{agent}",
            existing_folder(environ.get("COPILOT_PROJECT_DIR") or event.get("cwd")),
            retried=event.get("stop_hook_active") is True or kind == "session-end",
            exempt=None if kind in ("stop", "subagent-stop", "session-end") else "Copilot CLI has no such event",
            how=one_line(str(event.get("reason", "")), 80),
        )

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        return {"decision": "block", "reason": reason}

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        return {} if note is None else {"systemMessage": note}
