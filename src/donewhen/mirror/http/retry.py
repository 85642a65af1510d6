"""When to ask again: a pure look at an answer. GitHub has two rate limits, and servers have bad moments."""

from __future__ import annotations

import email.utils
from collections.abc import Mapping
from typing import NamedTuple

from donewhen.mirror.http.transport import HttpResponse

ATTEMPTS = 5
"""How often something is tried that fails for no reason of ours."""
# Whatever a server says: who asks again at once would ask for ever.
_LEAST = 1.0
_A_MINUTE = 60.0
_LONGEST_BACKOFF = 30.0


class RetryWait(NamedTuple):
    """Ask again after so many seconds. ``limited`` where the server took nothing in, because it was too much."""

    seconds: float
    why: str
    limited: bool


def wait_before_retry(answer: HttpResponse, attempt: int, now: float, jitter: float) -> RetryWait | None:
    """Whether an answer means *later*; ``now`` is the time in seconds since 1970, ``jitter`` is between 0 and 1."""
    if answer.status in (403, 429):
        asked = _seconds(answer.headers.get("retry-after"), now)
        if asked is not None:
            return RetryWait(max(_LEAST, asked), "GitHub asks for a pause", limited=True)
        reset = answer.headers.get("x-ratelimit-reset", "")
        if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
            # A second more, because clocks differ.
            return RetryWait(max(0.0, int(reset) - now) + 1, "the hourly limit of requests is used up", limited=True)
        if answer.status == 429 or b"secondary rate limit" in answer.body:
            return RetryWait(_A_MINUTE * 2 ** (attempt - 1), "GitHub asks for fewer requests", limited=True)
        return None
    if answer.status >= 500 or answer.status == 408:
        return RetryWait(
            backoff_seconds(attempt, jitter), f"the server has a problem (status {answer.status})", limited=False
        )
    return None


def backoff_seconds(attempt: int, jitter: float) -> float:
    """Twice as long each time, and never at the same moment as everybody else."""
    return min(_LONGEST_BACKOFF, 2.0 ** (attempt - 1)) * (0.5 + jitter / 2)


def next_page(headers: Mapping[str, str]) -> str | None:
    """The address of the next page, by the Link header."""
    for part in headers.get("link", "").split(","):
        address, _, rest = part.strip().partition(";")
        relations = [one.strip().replace(" ", "") for one in rest.split(";")]
        if 'rel="next"' in relations and address.startswith("<") and address.endswith(">"):
            return address[1:-1]
    return None


def _seconds(said: str | None, now: float) -> float | None:
    if said is None:
        return None
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(said).timestamp() - now)
    except (TypeError, ValueError):
        return None
