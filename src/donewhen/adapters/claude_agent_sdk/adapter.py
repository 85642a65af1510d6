"""Runs prompts on the Claude Agent SDK."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from donewhen.adapters.claude_agent_sdk.config import ClaudeAgentSDKClientConfig
from donewhen.adapters.guard_choice import guard_for, prepare_session
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.coroutines import run_awaitable
from donewhen.runtime import Limits

if TYPE_CHECKING:
    from donewhen.filesystem import Filesystem
    from donewhen.prompt import Prompt
    from donewhen.protocols import PromptResponse
    from donewhen.runtime import Budget, BudgetTracker, Deadline, Session

OutputT = TypeVar("OutputT")


class ClaudeAgentSDKAdapter:
    """A :class:`~donewhen.protocols.ProviderAdapter` for the Claude Agent SDK (``pip install 'donewhen[claude]'``).

    Checkers see the files of ``filesystem`` (default: the folder in which the agent works). The prompt's tools are
    offered to the agent as in-process MCP tools. With a checker, the agent is held back at every stop until its work
    is complete, and the work is checked once more if the run has ended without a call of a hook.
    """

    def __init__(
        self,
        *,
        client_config: ClaudeAgentSDKClientConfig | None = None,
        filesystem: Filesystem | None = None,
    ) -> None:
        self.client_config = client_config or ClaudeAgentSDKClientConfig()
        self.filesystem = filesystem or HostFilesystem(self.client_config.cwd or Path.cwd())

    def evaluate(
        self,
        prompt: Prompt[OutputT],
        *,
        session: Session,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[OutputT]:
        """Run ``prompt`` on the real client. This also works inside a running event loop."""
        return run_awaitable(self.aevaluate(prompt, session=session, deadline=deadline, budget=budget))

    async def aevaluate(
        self,
        prompt: Prompt[OutputT],
        *,
        session: Session,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[OutputT]:
        """Run ``prompt`` like :meth:`evaluate`, for asynchronous programs."""
        from donewhen.adapters.claude_agent_sdk.run import Run

        limits = Limits.of(deadline, budget)
        prepare_session(prompt, session)
        guard = guard_for(self.client_config.task_completion_checker, prompt, limits, self.client_config.guard_policy)
        with limits.around():
            return await Run(self, prompt.render(), session, limits, guard).play()
