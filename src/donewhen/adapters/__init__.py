"""Agent runtimes. Each folder knows one; nothing else does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazily

if TYPE_CHECKING:
    from donewhen.protocols import CompletionReport, CompletionStatus, PromptResponse, ProviderAdapter

__all__ = ["CompletionReport", "CompletionStatus", "PromptResponse", "ProviderAdapter"]

__getattr__ = lazily(__name__, {}, dict.fromkeys(__all__, "donewhen.protocols"))
