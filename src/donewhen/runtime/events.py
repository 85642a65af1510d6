"""What adapters tell a session. Each event is kept in the slice of its own type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from donewhen.protocols import ReasonCode


@dataclass(frozen=True)
class ToolInvoked:
    """The agent called a tool, and this came of it."""

    name: str
    arguments: Mapping[str, Any]
    success: bool
    message: str


@dataclass(frozen=True)
class CompletionChecked:
    """The agent wanted to stop, and this was the answer."""

    attempt: int
    complete: bool
    allowed: bool
    feedback: str | None
    code: ReasonCode | None
    stop_reason: str | None
