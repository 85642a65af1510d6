"""Adapters for agent runtimes, one folder per runtime. No other code depends on a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazy_attributes

if TYPE_CHECKING:
    from donewhen.adapters.guard_choice import AdapterError
    from donewhen.protocols import CompletionReport, CompletionStatus, PromptResponse, ProviderAdapter

_PROTOCOLS = ("CompletionReport", "CompletionStatus", "PromptResponse", "ProviderAdapter")

__getattr__ = lazy_attributes(
    __name__, {"AdapterError": "guard_choice"}, dict.fromkeys(_PROTOCOLS, "donewhen.protocols")
)

__all__ = ["AdapterError", "CompletionReport", "CompletionStatus", "PromptResponse", "ProviderAdapter"]
