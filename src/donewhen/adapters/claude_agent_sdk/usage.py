"""Counting tokens as the client reports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from donewhen.runtime import TokenUsage


def usage_of_call(usage: Mapping[str, Any]) -> TokenUsage:
    """One model call, in the API's words."""
    cached = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    return TokenUsage((usage.get("input_tokens") or 0) + cached + written, usage.get("output_tokens") or 0, cached)


def usage_of_run(result: Any) -> TokenUsage:
    """The whole run with its sub-agents, in the client's words."""
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
    """What is in ``total`` and was not counted yet."""
    return TokenUsage(
        max(0, total.input_tokens - counted.input_tokens),
        max(0, total.output_tokens - counted.output_tokens),
        max(0, total.cached_tokens - counted.cached_tokens),
    )
