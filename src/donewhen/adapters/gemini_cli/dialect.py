"""The hook events and answers of Gemini CLI."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from donewhen.adapters.command_hooks import Answer, HookKind, HookRequest, existing_folder
from donewhen.foundation.plain_text import one_line


class GeminiDialect:
    """A block with a reason holds the agent back; the reason is its next prompt.

    ``stop_hook_active`` is false again as soon as a tool ran, so it says nothing. The person's message stays the same
    through all continuations, and identifies the turn.
    """

    name = "gemini"
    # It does not wait for a hook at the end of a session.
    end_seconds = 1.5

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        prompt = event.get("prompt")
        return HookRequest(
            kind,
            str(event.get("session_id", "unknown")),
            existing_folder(environ.get("GEMINI_PROJECT_DIR") or event.get("cwd")),
            output=event.get("prompt_response"),
            retried=True,
            exempt=None if kind in ("stop", "session-end") else "Gemini CLI has no such event",
            turn=hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
            if isinstance(prompt, str)
            else None,
            turn_may_repeat=True,
            how=one_line(str(event.get("reason", "")), 80),
        )

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        return {"decision": "block", "reason": reason}

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        return {} if note is None else {"systemMessage": note}
