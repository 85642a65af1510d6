"""The only rule for skipping a completion check: a limit is reached, so the agent can't do more work anyway."""

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
    """The limit that is spent."""

    kind: Literal["deadline", "budget"]
    dimension: Dimension | None = None

    def __str__(self) -> str:
        return "the deadline has passed" if self.kind == "deadline" else f"the budget is spent ({self.dimension})"


@dataclass(frozen=True)
class Limits:
    """The limits of a run. Every hook calls :meth:`bypass`; nothing else decides whether a check is skipped."""

    deadline: Deadline | None = None
    tracker: BudgetTracker | None = None
    outer: Limits | None = None
    """The limits of the enclosing run, for example of the agent whose work a judge checks."""

    @classmethod
    def of(cls, deadline: Deadline | None, budget: Budget | BudgetTracker | None) -> Limits:
        """Return the limits of a run: its own, and those of the enclosing run."""
        outer = _around.get()
        if deadline is None and budget is None:
            return outer or cls()
        return cls(deadline, BudgetTracker(budget) if isinstance(budget, Budget) else budget, outer)

    def bypass(self) -> Bypass | None:
        """Return why the completion check is skipped now, or None if it must run."""
        if self.deadline is not None and self.deadline.expired:
            return Bypass("deadline")
        if self.tracker is not None and (dimension := self.tracker.exhausted()) is not None:
            return Bypass("budget", dimension)
        return None if self.outer is None else self.outer.bypass()

    def record(self, usage: TokenUsage, *, cost_usd: float = 0.0) -> None:
        """Count usage, here and in the enclosing runs."""
        for tracker in self._trackers():
            tracker.record(usage, cost_usd=cost_usd)

    @property
    def counts(self) -> bool:
        """Whether any tracker counts usage."""
        return bool(self._trackers())

    def remaining_seconds(self) -> float | None:
        """Return the time until the nearest deadline; None if there is none."""
        outer = None if self.outer is None else self.outer.remaining_seconds()
        if self.deadline is None:
            return outer
        own = self.deadline.remaining().total_seconds()
        return own if outer is None else min(own, outer)

    def remaining_usd(self) -> float | None:
        """Return the remaining money; None if there is no limit."""
        left = [tracker.remaining("cost_usd") for tracker in self._trackers()]
        return min((amount for amount in left if amount is not None), default=None)

    @contextmanager
    def around(self) -> Iterator[None]:
        """Apply these limits to the runs that start inside the ``with`` block."""
        token = _around.set(self)
        try:
            yield
        finally:
            _around.reset(token)

    def _trackers(self) -> list[BudgetTracker]:
        """Return each tracker once, even if a run uses the tracker of the enclosing run."""
        trackers = [] if self.outer is None else self.outer._trackers()
        return trackers if self.tracker is None or self.tracker in trackers else [self.tracker, *trackers]


_around: ContextVar[Limits | None] = ContextVar("donewhen_limits", default=None)
