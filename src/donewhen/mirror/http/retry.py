"""When to retry a request, decided from the response alone (GitHub's two rate limits, and server errors)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from donewhen.foundation.retrying import backoff_seconds, retry_after_seconds
from donewhen.mirror.http.transport import HttpResponse

ATTEMPTS = 5
"""Attempts for failures on the server's side."""
# Minimum wait, whatever the server says, so that a retry loop never spins.
_LEAST = 1.0
_A_MINUTE = 60.0
_LONGEST_BACKOFF = 30.0


@dataclass(frozen=True)
class RetryWait:
    """How long to wait before the retry. ``limited``: a rate limit rejected the request unprocessed."""

    seconds: float
    why: str
    limited: bool


def wait_before_retry(answer: HttpResponse, attempt: int, now: float, jitter: float) -> RetryWait | None:
    """Return the wait before a retry, or None. ``now`` is a Unix timestamp, ``jitter`` is between 0 and 1."""
    if answer.status in (403, 429):
        asked = retry_after_seconds(answer.headers.get("retry-after"), now)
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
        seconds = wait_after_failure(attempt, jitter)
        return RetryWait(seconds, f"server error (status {answer.status})", limited=False)
    return None


def wait_after_failure(attempt: int, jitter: float) -> float:
    """Return the wait after a failure on the server's side or on the way to it."""
    return backoff_seconds(attempt, jitter, first=_LEAST, longest=_LONGEST_BACKOFF)


def next_page(headers: Mapping[str, str]) -> str | None:
    """Return the URL of the next page from the Link header."""
    for part in headers.get("link", "").split(","):
        address, _, rest = part.strip().partition(";")
        relations = [parameter.strip().replace(" ", "") for parameter in rest.split(";")]
        if 'rel="next"' in relations and address.startswith("<") and address.endswith(">"):
            return address[1:-1]
    return None
