"""What Claude Code puts into a hook's event, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from donewhen.adapters.command_hooks import Answer, HookKind, HookRequest

STRUCTURED_OUTPUT = "StructuredOutput"


class ClaudeCodeDialect:
    """``decision: block`` is what every released client honours for a stop, and a denial for a tool."""

    name = "claude"

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        # The project's own folder, not the one that the agent's shell happens to be in.
        folder = environ.get("CLAUDE_PROJECT_DIR") or event.get("cwd")
        if not isinstance(folder, str) or not Path(folder).is_dir():
            raise ValueError(f"the event's cwd is not a folder: {folder!r}")
        request = HookRequest(
            kind,
            str(event.get("session_id", "unknown")),
            Path(folder),
            output=event.get("last_assistant_message"),
            retried=event.get("stop_hook_active") is True,
        )
        if kind == "pre-tool-use":
            if event.get("tool_name") != STRUCTURED_OUTPUT:
                return HookRequest(kind, request.session_id, request.cwd, exempt="another tool")
            return HookRequest(
                kind,
                request.session_id,
                request.cwd,
                output=event.get("tool_input"),
                stop_reason="structured_output",
                retried=True,
            )
        tasks = event.get("background_tasks")
        if isinstance(tasks, list) and any(isinstance(one, dict) and one.get("status") == "running" for one in tasks):
            return HookRequest(kind, request.session_id, request.cwd, exempt="work goes on in the background")
        return request

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        if kind == "pre-tool-use":
            return {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                }
            }
        return {"decision": "block", "reason": reason}

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        return {} if note is None else {"systemMessage": note}
