"""What Codex puts into a hook's event, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from donewhen.adapters.command_hooks import Answer, HookKind, HookRequest


class CodexDialect:
    """A block and a reason that is not empty hold an agent back; a key that Codex doesn't know lets it go."""

    name = "codex"

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        folder = event.get("cwd")
        if not isinstance(folder, str) or not Path(folder).is_dir():
            raise ValueError(f"the event's cwd is not a folder: {folder!r}")
        # A turn is what a person asked for last; attempts are counted within it.
        return HookRequest(
            kind,
            f"{event.get('session_id', 'unknown')}:{event.get('turn_id', '')}",
            Path(folder),
            output=event.get("last_assistant_message"),
            retried=event.get("stop_hook_active") is True,
            exempt="Codex gives its output through Stop" if kind == "pre-tool-use" else None,
        )

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        return {"decision": "block", "reason": reason}

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        return {}
