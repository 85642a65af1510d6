"""Adaptive limit on the calls in flight to a server.

Higher latency alone is no reason for fewer calls: batching servers answer each call later and all calls sooner. What
counts is throughput, which is calls in flight divided by latency (Little's law). If latency rises and throughput does
not, calls queue up on the server, which only causes timeouts.

Calls are grouped into rounds with a median level (calls in flight) and a median latency, and rounds at different levels
are compared. At first the level doubles each round. If a higher level brings no more throughput, the lower level is
tried again. If throughput is the same there, there was a queue, and the level is lowered until throughput drops;
otherwise the calls merely took longer, and the level stays. After a queue was found, each round adds one call, with a
larger step after an improvement.

If the server itself reports overload, the level is halved, and then grows by one call per round without larger steps.
"""

from __future__ import annotations

import statistics
from typing import NamedTuple

FIRST = 64
_ENOUGH = 16
"""Minimum number of answers for a median."""
_SHORT = 0.5
"""Seconds. Queues with less latency than this are ignored."""
_APART = 1.4
"""Levels with a smaller ratio are too close to compare."""
_DOUBLE = 2.0
_LEAP = 1.5
_FEWER = 2 / 3
_GAIN = 1 / 5
"""The share of additional calls that must show up as additional throughput."""


class CallStart(NamedTuple):
    """The state when a call started."""

    began: float
    in_flight: int
    """Calls in flight, including this one."""
    round: int


class CallRound(NamedTuple):
    """Median level and latency of a round."""

    level: float
    latency: float


class CallAllowance:
    """The limit for one server, updated after every call."""

    def __init__(self, most: int, first: int | None = None) -> None:
        self.allowed = float(min(first or FIRST, most))
        self._most = most
        self._stride = _DOUBLE
        self._before: CallRound | None = None
        self._trying_fewer = False
        self._number = 0
        self._wanted = 0
        self._seen: list[tuple[int, float]] = []
        self._refused_in = -1

    def begin(self, now: float, in_flight: int) -> CallStart:
        """Record the start of a call."""
        self._wanted = max(self._wanted, in_flight)
        return CallStart(now, in_flight, self._number)

    def answered(self, call: CallStart, now: float) -> None:
        """Record the answer to a call."""
        growing = self._stride < _DOUBLE and not self._trying_fewer
        if growing and call.in_flight >= int(self.allowed) - 1:
            self.allowed = min(self._most, self.allowed + 1 / self.allowed)
        # Skip calls of earlier rounds, and rounds in which too few calls were requested.
        if call.round < self._number or call.in_flight < self.allowed / 2:
            return
        self._seen.append((call.in_flight, now - call.began))
        # While levels double, half of the calls start together; waiting for the others would take twice as long.
        if len(self._seen) >= max(_ENOUGH, self.allowed / 3 if self._stride == _DOUBLE else self.allowed):
            level, latency = map(statistics.median, zip(*self._seen, strict=True))
            self._compare(CallRound(level, latency))
            self._next_round()

    def refused(self, call: CallStart, in_flight: int) -> None:
        """Record an overload response or a timeout.

        Halves the limit once for all calls that were in flight together.
        """
        if call.round > self._refused_in:
            # Half of the actual calls: the limit may have been higher.
            self.allowed = max(1.0, min(self.allowed, in_flight) / 2)
            self._stride = 1.0
            self._before = None
            self._trying_fewer = False
            self._refused_in = self._number
            self._next_round()

    def _next_round(self) -> None:
        self._number += 1
        self._wanted = 0
        self._seen.clear()

    def _compare(self, latest: CallRound) -> None:
        before = self._before
        self._trying_fewer = False
        if before is None or latest.latency < _SHORT:
            self._before = latest
            self._go_up()
            return
        fewer, more = sorted((before, latest))
        if more.level < fewer.level * _APART:
            if latest.latency > 2 * before.latency:
                # Either a new queue or longer calls: a lower level will show which.
                self._before = latest
                self._try(latest.level * _FEWER)
            elif self._stride == _DOUBLE:
                self._go_up()
        elif latest is more:
            self._before = latest
            if is_faster_with_more(fewer, more):
                self._go_up()
            else:
                self._try(before.level)
        elif is_faster_with_more(fewer, more):
            self.allowed = max(self.allowed, before.level)
        else:
            self._before = latest
            self._stride = min(self._stride, _LEAP)
            self._try(latest.level * _FEWER)

    def _go_up(self) -> None:
        if self._wanted >= int(self.allowed) - 1:
            self.allowed = min(self._most, self.allowed * self._stride)

    def _try(self, fewer: float) -> None:
        self.allowed = max(1.0, fewer)
        self._trying_fewer = True


def is_faster_with_more(fewer: CallRound, more: CallRound) -> bool:
    """Whether more calls in flight brought more throughput."""
    wanted = 1 + (more.level / fewer.level - 1) * _GAIN
    # Compared without division, because a latency may be zero.
    return more.level * fewer.latency >= wanted * fewer.level * more.latency
