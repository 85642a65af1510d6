"""The dialect of each runtime, by its name. Imported one at a time, because a hook needs only one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from donewhen.adapters.command_hooks import Dialect

_DIALECTS = {
    "claude": ("claude_code", "ClaudeCodeDialect"),
    "codex": ("codex", "CodexDialect"),
    "gemini": ("gemini_cli", "GeminiDialect"),
    "copilot": ("copilot_cli", "CopilotDialect"),
}


def dialect_of(runtime: str) -> Dialect:
    """How this runtime writes its events and reads its answers."""
    folder, name = _DIALECTS[runtime]
    dialect: Dialect = getattr(import_module(f"donewhen.adapters.{folder}.dialect"), name)()
    return dialect
