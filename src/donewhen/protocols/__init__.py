"""The contracts between rooms: results, contexts, checkers, adapters, and why something is not done."""

from donewhen.protocols.adapter import CompletionReport, CompletionStatus, PromptResponse, ProviderAdapter
from donewhen.protocols.completion import (
    StopReason,
    TaskCompletionChecker,
    TaskCompletionContext,
    TaskCompletionResult,
)
from donewhen.protocols.reasons import REASONS, Reason, ReasonCode

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
