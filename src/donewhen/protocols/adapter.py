"""What an agent runtime looks like from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from donewhen.prompt import Prompt
    from donewhen.protocols.completion import StopReason
    from donewhen.protocols.reasons import ReasonCode
    from donewhen.runtime import Budget, BudgetTracker, Bypass, Deadline, Session, TokenUsage

OutputT = TypeVar("OutputT")

CompletionStatus = Literal["verified", "incomplete", "bypassed", "capped", "errored"]
"""How a guarded run ended.

* ``verified``: the last check found the work complete.
* ``incomplete``: the run ended (turns, an error) although the last check found the work incomplete.
* ``bypassed``: deadline or budget was spent, so the check was skipped; ``bypass`` says which.
* ``capped``: the agent was held back as often as allowed without progress, and was let go unverified.
* ``errored``: the run ended and the last check itself was broken.
"""


@dataclass(frozen=True)
class CompletionReport:
    """Whether the work was verified, and how the run got there."""

    status: CompletionStatus
    attempts: int
    """How often the agent tried to stop and the question was asked."""
    feedback: str | None = None
    """The last answer's feedback."""
    code: ReasonCode | None = None
    bypass: Bypass | None = None

    @property
    def verified(self) -> bool:
        return self.status == "verified"


@dataclass(frozen=True)
class PromptResponse(Generic[OutputT]):
    """What came out of evaluating a prompt. ``completion`` is None when no checker guarded the run."""

    prompt_name: str
    text: str | None
    output: OutputT | None
    stop_reason: StopReason
    usage: TokenUsage
    completion: CompletionReport | None = None


@runtime_checkable
class ProviderAdapter(Protocol):
    """Runs a prompt to its end on some agent runtime."""

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
