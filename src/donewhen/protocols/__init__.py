"""The contracts between rooms: results, contexts, checkers, adapters, and why something is not done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazy_attributes

if TYPE_CHECKING:
    from donewhen.protocols.adapter import PromptResponse, ProviderAdapter
    from donewhen.protocols.completion import (
        StopReason,
        TaskCompletionChecker,
        TaskCompletionContext,
        TaskCompletionResult,
    )
    from donewhen.protocols.reasons import REASONS, Reason, ReasonCode
    from donewhen.protocols.report import CompletionReport, CompletionStatus

_FILE_OF = {
    "REASONS": "reasons",
    "CompletionReport": "report",
    "CompletionStatus": "report",
    "PromptResponse": "adapter",
    "ProviderAdapter": "adapter",
    "Reason": "reasons",
    "ReasonCode": "reasons",
    "StopReason": "completion",
    "TaskCompletionChecker": "completion",
    "TaskCompletionContext": "completion",
    "TaskCompletionResult": "completion",
}

__getattr__ = lazy_attributes(__name__, _FILE_OF)

__all__ = [
    "REASONS",
    "CompletionReport",
    "CompletionStatus",
    "PromptResponse",
    "ProviderAdapter",
    "Reason",
    "ReasonCode",
    "StopReason",
    "TaskCompletionChecker",
    "TaskCompletionContext",
    "TaskCompletionResult",
]
