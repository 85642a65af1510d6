"""Agent runtimes. Each folder knows one; nothing else does."""

from donewhen.protocols import CompletionReport, CompletionStatus, PromptResponse, ProviderAdapter

__all__ = ["CompletionReport", "CompletionStatus", "PromptResponse", "ProviderAdapter"]
