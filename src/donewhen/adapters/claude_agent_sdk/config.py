"""How the client is set up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from donewhen.completion import GuardPolicy, as_checker

if TYPE_CHECKING:
    from donewhen.completion.composite import Checkable


@dataclass(frozen=True)
class ClaudeAgentSDKClientConfig:
    """Settings of the client. Task completion checking is off unless a checker is given."""

    task_completion_checker: Checkable | None = None
    guard_policy: GuardPolicy = field(default_factory=GuardPolicy)

    def __post_init__(self) -> None:
        if self.task_completion_checker is not None:
            as_checker(self.task_completion_checker)
