"""The budget of a run, and the usage that counts against it."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, fields
from typing import Literal

from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.errors import DonewhenError, ExitCode

_NOTHING = 1e-9

Dimension = Literal["input_tokens", "output_tokens", "total_tokens", "cost_usd", "seconds"]


class BudgetExceededError(DonewhenError):
    """A budget is spent."""

    code = "budget_exhausted"
    exit_code = ExitCode.GATE_FAILED

    def __init__(self, dimension: Dimension, used: float, limit: float) -> None:
        super().__init__(f"The budget is spent: {dimension} {used:.12g} of {limit:.12g}.")
        self.dimension = dimension


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one or more model calls; cached input is part of the input."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 0:
                raise ValueError(f"{field.name} must not be negative")

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True)
class Budget:
    """Upper limits; a dimension without one is unlimited. The budget is spent when any limit is reached."""

    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_total_tokens: int | None = None
    max_cost_usd: float | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        limits = [getattr(self, field.name) for field in fields(self)]
        if all(limit is None for limit in limits):
            raise ValueError("a budget needs at least one limit")
        for field, limit in zip(fields(self), limits, strict=True):
            if limit is not None and not (math.isfinite(limit) and limit > 0):
                raise ValueError(f"{field.name} must be a positive number, not {limit!r}")

    def limit(self, dimension: Dimension) -> float | None:
        value: float | None = getattr(self, f"max_{dimension}")
        return value


class BudgetTracker:
    """Counts usage against a budget. It can be shared between threads and runs. Time counts from its creation."""

    def __init__(self, budget: Budget, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.budget = budget
        self._clock = clock
        self._started = clock.monotonic()
        self._lock = threading.Lock()
        self._usage = TokenUsage()
        self._cost = 0.0

    def record(self, usage: TokenUsage | None = None, *, cost_usd: float = 0.0) -> None:
        """Add the usage of a call."""
        if not (math.isfinite(cost_usd) and cost_usd >= 0):
            raise ValueError(f"cost_usd must be a non-negative number, not {cost_usd!r}")
        with self._lock:
            self._usage += usage or TokenUsage()
            self._cost += cost_usd

    @property
    def usage(self) -> TokenUsage:
        with self._lock:
            return self._usage

    def used(self, dimension: Dimension) -> float:
        """Return how much of one dimension is used."""
        with self._lock:
            match dimension:
                case "cost_usd":
                    return self._cost
                case "seconds":
                    return self._clock.monotonic() - self._started
                case _:
                    return float(getattr(self._usage, dimension))

    def remaining(self, dimension: Dimension) -> float | None:
        """Return how much of one dimension is left, never negative; None if there is no limit."""
        limit = self.budget.limit(dimension)
        if limit is None:
            return None
        left = limit - self.used(dimension)
        # Ignore rounding errors of binary arithmetic: three times 0.70 is 2.10.
        return left if left > _NOTHING else 0.0

    def exhausted(self) -> Dimension | None:
        """Return the first dimension whose limit is reached, or None."""
        return next((dimension for dimension in DIMENSIONS if self.remaining(dimension) == 0), None)

    def check(self) -> None:
        """Raise :class:`BudgetExceededError` when the budget is spent."""
        if (dimension := self.exhausted()) is not None:
            limit = self.budget.limit(dimension)
            raise BudgetExceededError(dimension, self.used(dimension), limit or 0.0)


DIMENSIONS: tuple[Dimension, ...] = ("input_tokens", "output_tokens", "total_tokens", "cost_usd", "seconds")
