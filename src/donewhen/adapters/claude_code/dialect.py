"""The hook events and answers of Claude Code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from donewhen.adapters.claude_code.hook_payloads import STRUCTURED_OUTPUT, is_busy, refuse_output, refuse_stop
from donewhen.adapters.command_hooks import Answer, HookKind, HookRequest, existing_folder


class ClaudeCodeDialect:
    """Refuses stops with ``decision: block`` and tools with a denial, which all released clients honour."""

    name = "claude"

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        session = str(event.get("session_id", "unknown"))
        agent = event.get("agent_id")
        if kind == "pre-tool-use" and (event.get("tool_name") != STRUCTURED_OUTPUT or agent is not None):
            return HookRequest(kind, session, Path.home(), exempt="another tool, or a sub-agent's own output")
        # The project's folder, not the current folder of the agent's shell.
        cwd = existing_folder(environ.get("CLAUDE_PROJECT_DIR") or event.get("cwd"))
        match kind:
            case "pre-tool-use":
                output = event.get("tool_input")
                return HookRequest(kind, session, cwd, output, stop_reason="structured_output", retried=True)
            case "task-completed":
                return HookRequest(kind, f"{session}:{event.get('task_id', '')}", cwd, retried=True)
            case "stop" | "subagent-stop":
                return HookRequest(
                    kind,
                    session if agent is None else f"{session}:{agent}",
                    cwd,
                    output=event.get("last_assistant_message"),
                    retried=event.get("stop_hook_active") is True,
                    exempt="work goes on in the background" if is_busy(event) else None,
                )

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        return refuse_output(reason) if kind == "pre-tool-use" else refuse_stop(reason)

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        return {} if note is None else {"systemMessage": note}
