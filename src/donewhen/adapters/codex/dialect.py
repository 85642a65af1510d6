"""What Codex puts into a hook's event, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from donewhen.adapters.command_hooks import Answer, HookKind, HookRequest


class CodexDialect:
    """Exactly two keys hold an agent back; one more and Codex ignores the answer."""

    name = "codex"

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        folder = event.get("cwd")
        if not isinstance(folder, str) or not Path(folder).is_dir():
            raise ValueError(f"the event's cwd is not a folder: {folder!r}")
        return HookRequest(
            kind,
            str(event.get("session_id", "unknown")),
            Path(folder),
            output=event.get("last_assistant_message"),
            retried=event.get("stop_hook_active") is True,
        )

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        return {"decision": "block", "reason": reason}

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        return {}
