"""The one rule by which a completion check is skipped: the agent could not do more work anyway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from donewhen.runtime.budget import Budget, BudgetTracker

if TYPE_CHECKING:
    from donewhen.runtime.budget import Dimension, TokenUsage
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
    outer: Limits | None = None
    """The limits of the run around this one, such as that of the agent whose work a judge is looking at."""

    @classmethod
    def of(cls, deadline: Deadline | None, budget: Budget | BudgetTracker | None) -> Limits:
        """The limits for a run: its own, and those of the run around it."""
        outer = _around.get()
        if deadline is None and budget is None:
            return outer or cls()
        return cls(deadline, BudgetTracker(budget) if isinstance(budget, Budget) else budget, outer)

    def bypass(self) -> Bypass | None:
        """Why the completion check is to be skipped now, or None when it is to be made."""
        if self.deadline is not None and self.deadline.expired:
            return Bypass("deadline")
        if self.tracker is not None and (dimension := self.tracker.exhausted()) is not None:
            return Bypass("budget", dimension)
        return None if self.outer is None else self.outer.bypass()

    def record(self, usage: TokenUsage, *, cost_usd: float = 0.0) -> None:
        """Count what was used, here and around."""
        for tracker in self._trackers():
            tracker.record(usage, cost_usd=cost_usd)

    @property
    def counts(self) -> bool:
        """Whether any tracker counts usage."""
        return bool(self._trackers())

    def remaining_seconds(self) -> float | None:
        """The time until the nearest deadline; None where there is none."""
        outer = None if self.outer is None else self.outer.remaining_seconds()
        if self.deadline is None:
            return outer
        own = self.deadline.remaining().total_seconds()
        return own if outer is None else min(own, outer)

    def remaining_usd(self) -> float | None:
        """The money that is left; None where there is no limit."""
        left = [tracker.remaining("cost_usd") for tracker in self._trackers()]
        return min((amount for amount in left if amount is not None), default=None)

    @contextmanager
    def around(self) -> Iterator[None]:
        """Let runs that start inside share these limits."""
        token = _around.set(self)
        try:
            yield
        finally:
            _around.reset(token)

    def _trackers(self) -> list[BudgetTracker]:
        """Every tracker once, also where a run was handed the tracker of the one around it."""
        found = [] if self.outer is None else self.outer._trackers()
        return found if self.tracker is None or self.tracker in found else [self.tracker, *found]


_around: ContextVar[Limits | None] = ContextVar("donewhen_limits", default=None)
