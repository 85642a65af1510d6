"""The hook events and answers of Claude Code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from donewhen.adapters.claude_code.hook_payloads import STRUCTURED_OUTPUT, is_busy, refuse_output, refuse_stop
from donewhen.adapters.command_hooks import Answer, HookKind, HookRequest, existing_folder
from donewhen.foundation.plain_text import one_line


class ClaudeCodeDialect:
    """Refuses stops with ``decision: block`` and tools with a denial, which all released clients honour."""

    name = "claude"
    end_seconds = 45.0

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        session = str(event.get("session_id", "unknown"))
        agent = event.get("agent_id")
        if kind == "pre-tool-use" and (event.get("tool_name") != STRUCTURED_OUTPUT or agent is not None):
            return HookRequest(kind, session, Path.home(), exempt="another tool, or a sub-agent's own output")
        # The project's folder, not the current folder of the agent's shell.
        cwd = existing_folder(environ.get("CLAUDE_PROJECT_DIR") or event.get("cwd"))
        prompt = event.get("prompt_id")
        turn = prompt if isinstance(prompt, str) and prompt else None
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
                    turn=turn,
                    planning=event.get("permission_mode") == "plan",
                )
            case "session-start":
                return HookRequest(kind, session, cwd, exempt="nothing is checked at the start of a session")
            case "stop-failure" | "session-end":
                how = event.get("reason") if kind == "session-end" else event.get("error")
                return HookRequest(
                    kind,
                    session,
                    cwd,
                    retried=True,
                    exempt="nothing was asked in this session" if kind == "session-end" and _is_unused(event) else None,
                    turn=turn,
                    how=one_line(str(how or ""), 80),
                )

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        return refuse_output(reason) if kind == "pre-tool-use" else refuse_stop(reason)

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        return {} if note is None else {"systemMessage": note}


def _is_unused(event: Mapping[str, Any]) -> bool:
    """Whether nobody has written anything in this session, so that it has neither a prompt nor a transcript."""
    transcript = event.get("transcript_path")
    return "prompt_id" not in event and isinstance(transcript, str) and not os.path.lexists(transcript)
