"""The Claude Agent SDK as an agent runtime. Importing needs no extra; running needs ``donewhen[claude]``."""

from donewhen.adapters.claude_agent_sdk.adapter import ClaudeAgentSDKAdapter
from donewhen.adapters.claude_agent_sdk.config import ClaudeAgentSDKClientConfig
from donewhen.adapters.claude_agent_sdk.own_client import ClientHooks, hooks_for
from donewhen.completion import (
    CompositeChecker,
    PlanBasedChecker,
    TaskCompletionChecker,
    TaskCompletionContext,
    TaskCompletionResult,
)

__all__ = [
    "ClaudeAgentSDKAdapter",
    "ClaudeAgentSDKClientConfig",
    "ClientHooks",
    "CompositeChecker",
    "PlanBasedChecker",
    "TaskCompletionChecker",
    "TaskCompletionContext",
    "TaskCompletionResult",
    "hooks_for",
]
