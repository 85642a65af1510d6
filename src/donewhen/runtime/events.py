"""Events that adapters dispatch to a session. Each event is kept in the slice of its own type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from donewhen.runtime.dispatcher import InProcessDispatcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from donewhen.protocols import ReasonCode
    from donewhen.runtime.bypass import Bypass

__all__ = ["CompletionBypassed", "CompletionChecked", "InProcessDispatcher", "ToolInvoked"]


@dataclass(frozen=True)
class ToolInvoked:
    """A tool call of the agent, with its result."""

    name: str
    arguments: Mapping[str, Any]
    success: bool
    message: str


@dataclass(frozen=True)
class CompletionChecked:
    """An attempt of the agent to stop, with the decision."""

    attempt: int
    complete: bool
    allowed: bool
    feedback: str | None
    code: ReasonCode | None
    stop_reason: str | None


@dataclass(frozen=True)
class CompletionBypassed:
    """An end of a run without a check, because a limit is spent: the work is not verified.

    ``attempts`` is the number of checks before it.
    """

    attempts: int
    bypass: Bypass
    stop_reason: str | None
