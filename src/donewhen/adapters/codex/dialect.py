"""What Codex puts into a hook's event, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from donewhen.adapters.command_hooks import Answer, HookKind, HookRequest, existing_folder


class CodexDialect:
    """A block and a reason that is not empty hold an agent back; a key that Codex doesn't know lets it go."""

    name = "codex"

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        folder = existing_folder(event.get("cwd"))
        # A turn is what a person asked for last; attempts are counted within it.
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
