"""When to retry a request, decided from the response alone (GitHub's two rate limits, and server errors)."""

from __future__ import annotations

import email.utils
from collections.abc import Mapping
from typing import NamedTuple

from donewhen.mirror.http.transport import HttpResponse

ATTEMPTS = 5
"""Attempts for failures on the server's side."""
# Minimum wait, whatever the server says, so that a retry loop never spins.
_LEAST = 1.0
_A_MINUTE = 60.0
_LONGEST_BACKOFF = 30.0


class RetryWait(NamedTuple):
    """How long to wait before the retry. ``limited``: a rate limit rejected the request unprocessed."""

    seconds: float
    why: str
    limited: bool


def wait_before_retry(answer: HttpResponse, attempt: int, now: float, jitter: float) -> RetryWait | None:
    """Return the wait before a retry, or None. ``now`` is a Unix timestamp, ``jitter`` is between 0 and 1."""
    if answer.status in (403, 429):
        asked = _seconds(answer.headers.get("retry-after"), now)
        if asked is not None:
            return RetryWait(max(_LEAST, asked), "GitHub asked for a pause", limited=True)
        reset = answer.headers.get("x-ratelimit-reset", "")
        if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
            # One more second, because clocks differ.
            return RetryWait(max(0.0, int(reset) - now) + 1, "the hourly rate limit is exhausted", limited=True)
        if answer.status == 429 or b"secondary rate limit" in answer.body:
            return RetryWait(_A_MINUTE * 2 ** (attempt - 1), "GitHub's secondary rate limit was hit", limited=True)
        return None
    if answer.status >= 500 or answer.status == 408:
        return RetryWait(backoff_seconds(attempt, jitter), f"server error (status {answer.status})", limited=False)
    return None


def backoff_seconds(attempt: int, jitter: float) -> float:
    """Return the wait of an exponential backoff with jitter."""
    return min(_LONGEST_BACKOFF, 2.0 ** (attempt - 1)) * (0.5 + jitter / 2)


def next_page(headers: Mapping[str, str]) -> str | None:
    """Return the URL of the next page from the Link header."""
    for part in headers.get("link", "").split(","):
        address, _, rest = part.strip().partition(";")
        relations = [parameter.strip().replace(" ", "") for parameter in rest.split(";")]
        if 'rel="next"' in relations and address.startswith("<") and address.endswith(">"):
            return address[1:-1]
    return None


def _seconds(retry_after: str | None, now: float) -> float | None:
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - now)
    except (TypeError, ValueError):
        return None
