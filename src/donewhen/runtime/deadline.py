"""A point in time after which a run should do no more work."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from donewhen.foundation.clock import SYSTEM_CLOCK, Clock


@dataclass(frozen=True)
class Deadline:
    """Expires at ``expires_at``.

    The remaining time is computed once, when the deadline is created, and then measured on the monotonic clock, so
    that changes of the wall clock have no effect.
    """

    expires_at: datetime
    clock: Clock = field(default=SYSTEM_CLOCK, repr=False, compare=False)
    _end: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.expires_at.tzinfo is None:
            raise ValueError("a deadline needs a time zone: use datetime.now(UTC) + timedelta(...)")
        distance = (self.expires_at - self.clock.now()).total_seconds()
        object.__setattr__(self, "_end", self.clock.monotonic() + distance)

    @classmethod
    def after(cls, duration: timedelta | float, *, clock: Clock = SYSTEM_CLOCK) -> Deadline:
        """Return the deadline that is this many seconds (or this timedelta) from now."""
        span = duration if isinstance(duration, timedelta) else timedelta(seconds=duration)
        return cls(clock.now() + span, clock)

    def remaining(self) -> timedelta:
        """Return the time left; zero, never negative, after it has expired."""
        return timedelta(seconds=max(0.0, self._end - self.clock.monotonic()))

    @property
    def expired(self) -> bool:
        return self.clock.monotonic() >= self._end
