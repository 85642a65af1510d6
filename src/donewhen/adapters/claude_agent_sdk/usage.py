"""Token usage, as reported by the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from donewhen.runtime import TokenUsage


def usage_of_call(usage: Mapping[str, Any]) -> TokenUsage:
    """Convert the usage of one model call from the API's format."""
    cached = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    return TokenUsage((usage.get("input_tokens") or 0) + cached + written, usage.get("output_tokens") or 0, cached)


def usage_of_run(result: Any) -> TokenUsage:
    """Convert the usage of a whole run with its sub-agents from the client's format."""
    by_model = getattr(result, "model_usage", None)
    if not by_model:
        return usage_of_call(result.usage or {})
    total = TokenUsage()
    for usage in by_model.values():
        cached = usage.get("cacheReadInputTokens", 0)
        given = usage.get("inputTokens", 0) + cached + usage.get("cacheCreationInputTokens", 0)
        total += TokenUsage(given, usage.get("outputTokens", 0), cached)
    return total


def uncounted_usage(total: TokenUsage, counted: TokenUsage) -> TokenUsage:
    """Return the part of ``total`` that was not counted yet."""
    return TokenUsage(
        max(0, total.input_tokens - counted.input_tokens),
        max(0, total.output_tokens - counted.output_tokens),
        max(0, total.cached_tokens - counted.cached_tokens),
    )
