"""Times for people: how long ago, and the moment itself."""

from __future__ import annotations

from datetime import datetime

_UNITS = ((365 * 86400, "year"), (30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))


def moment(at: str, now: str) -> str:
    """A recorded time, such as ``3 days ago (2026-02-14 10:00)``. Clocks of machines differ: what seems to be in the
    future is *just now*."""
    if (ago := time_ago(at, now)) is None:
        return at
    return f"{ago} ({at[:16].replace('T', ' ')})"


def time_ago(at: str, now: str) -> str | None:
    """How long ago something was recorded; None if that is no time."""
    try:
        seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(at)).total_seconds()
    except (ValueError, TypeError):
        return None
    for length, unit in _UNITS:
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"
