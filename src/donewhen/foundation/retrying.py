"""How long to wait before a request is repeated."""

from __future__ import annotations

import email.utils
import math
from datetime import UTC


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """The seconds that a Retry-After header asks for: a number, or a date after ``now``, a Unix timestamp.

    None if there is no header, or if it is neither a finite number nor a date.
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value, now)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _seconds_until(date: str, now: float) -> float | None:
    try:
        time = email.utils.parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    # HTTP dates are in UTC, also where the zone is left out.
    return max(0.0, (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() - now)


def backoff_seconds(attempt: int, jitter: float, *, first: float, longest: float) -> float:
    """The wait after failed attempt number ``attempt``, from 1: it doubles each time, from ``first`` to ``longest``.

    ``jitter`` is between 0 and 1 and shortens the wait by up to a half, so that requests that failed together are not
    repeated together.
    """
    # A large exponent would overflow; by then, the longest wait is reached anyway.
    return min(longest, first * 2.0 ** min(attempt - 1, 64)) * (0.5 + jitter / 2)
