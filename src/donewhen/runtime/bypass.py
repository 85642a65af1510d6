"""The one rule by which a completion check is skipped: the agent could not do more work anyway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from donewhen.runtime.budget import Budget, BudgetTracker

if TYPE_CHECKING:
    from donewhen.runtime.budget import Dimension
    from donewhen.runtime.deadline import Deadline


@dataclass(frozen=True)
class Bypass:
    """Which limit is spent."""

    kind: Literal["deadline", "budget"]
    dimension: Dimension | None = None

    def __str__(self) -> str:
        return "the deadline has passed" if self.kind == "deadline" else f"the budget is spent ({self.dimension})"


@dataclass(frozen=True)
class Limits:
    """The limits one run works under. Every hook asks :meth:`bypass`, and nothing else decides it."""

    deadline: Deadline | None = None
    tracker: BudgetTracker | None = None

    @classmethod
    def of(cls, deadline: Deadline | None, budget: Budget | BudgetTracker | None) -> Limits:
        """The limits for a run. One that names none, such as a judge's inside a check, shares those around it."""
        if deadline is None and budget is None:
            return _around.get() or cls()
        return cls(deadline, BudgetTracker(budget) if isinstance(budget, Budget) else budget)

    @contextmanager
    def around(self) -> Iterator[None]:
        """Let runs that start inside share these limits."""
        token = _around.set(self)
        try:
            yield
        finally:
            _around.reset(token)

    def bypass(self) -> Bypass | None:
        """Why the completion check is to be skipped now, or None when it is to be made."""
        if self.deadline is not None and self.deadline.expired:
            return Bypass("deadline")
        if self.tracker is not None and (dimension := self.tracker.exhausted()) is not None:
            return Bypass("budget", dimension)
        return None


_around: ContextVar[Limits | None] = ContextVar("donewhen_limits", default=None)
