"""The hook events and answers of Codex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from donewhen.adapters.command_hooks import Answer, HookKind, HookRequest, existing_folder


class CodexDialect:
    """A block with a non-empty reason holds the agent back; an answer with an unknown key lets it stop."""

    name = "codex"

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        folder = existing_folder(event.get("cwd"))
        # A turn starts with a user message; attempts are counted per turn.
        return HookRequest(
            kind,
            ":".join(str(event.get(name, "")) for name in ("session_id", "turn_id", "agent_id")),
            folder,
            output=event.get("last_assistant_message"),
            retried=event.get("stop_hook_active") is True,
            exempt="Codex gives its output through Stop" if kind == "pre-tool-use" else None,
        )

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        return {"decision": "block", "reason": reason}

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        return {}
