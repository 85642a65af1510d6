"""Runs prompts on the Claude Agent SDK."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from donewhen.adapters.claude_agent_sdk.config import ClaudeAgentSDKClientConfig
from donewhen.adapters.guarding import AdapterError
from donewhen.foundation.errors import MissingExtraError

if TYPE_CHECKING:
    from donewhen.filesystem import Filesystem
    from donewhen.prompt import Prompt
    from donewhen.protocols import PromptResponse
    from donewhen.runtime import Budget, BudgetTracker, Deadline, Session

OutputT = TypeVar("OutputT")


class ClaudeAgentSDKAdapter:
    """A :class:`~donewhen.protocols.ProviderAdapter` for the Claude Agent SDK."""

    def __init__(
        self,
        *,
        client_config: ClaudeAgentSDKClientConfig | None = None,
        filesystem: Filesystem | None = None,
    ) -> None:
        self.client_config = client_config or ClaudeAgentSDKClientConfig()
        self.filesystem = filesystem

    def evaluate(
        self,
        prompt: Prompt[OutputT],
        *,
        session: Session,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[OutputT]:
        """Run ``prompt`` on the real client."""
        if find_spec("claude_agent_sdk") is None:
            raise MissingExtraError("Running on the Claude Agent SDK", "claude")
        raise AdapterError(
            "This version can set the Claude Agent SDK up, but not run it yet.",
            next_step="Use donewhen.testing.ScriptedAdapter to see the checker at work.",
        )
