"""The protocol of an agent runtime adapter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from donewhen.prompt import Prompt
    from donewhen.protocols.completion import StopReason
    from donewhen.protocols.report import CompletionReport
    from donewhen.runtime import Budget, BudgetTracker, Deadline, Session, TokenUsage

OutputT = TypeVar("OutputT")


@dataclass(frozen=True)
class PromptResponse(Generic[OutputT]):
    """The result of evaluating a prompt. ``completion`` is None when no checker guarded the run."""

    prompt_name: str
    text: str | None
    output: OutputT | None
    stop_reason: StopReason
    usage: TokenUsage
    completion: CompletionReport | None = None


@runtime_checkable
class ProviderAdapter(Protocol):
    """Runs a prompt on an agent runtime until the agent stops."""

    def evaluate(
        self,
        prompt: Prompt[OutputT],
        *,
        session: Session,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[OutputT]:
        """Run ``prompt``; tools and events act on ``session``. Pass a tracker to share one budget over several runs."""
        ...
