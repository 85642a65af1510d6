"""How many calls may be in flight: as many as bring answers, and no more than the server takes.

Answers that come later are no reason for fewer calls: a server that works on many questions together answers each of
them later, and all of them sooner. What counts is the rate of answers, which is calls in flight over latency (Little's
law). Latency that rises while the rate does not is a queue, and a queue makes nothing but timeouts.

So calls make rounds, each with a median of calls in flight and of latency, and a round is compared with one at another
level. At first each round has twice as many calls as the one before. Where more calls brought no more answers, it goes
back to see whether fewer bring as many. If they do, there was a queue, and the level sinks until fewer bring fewer. If
they don't, the calls just took longer, whatever they were about, and it goes on as before. Once there was a queue, each
round has one call more than the one before, and a leap follows where that brought something.

The server that says itself that it is too much gets half, and from then on one more in each round, without leaps.
"""

from __future__ import annotations

import statistics
from typing import NamedTuple

FIRST = 64
_ENOUGH = 16
"""A median of fewer answers says little."""
_SHORT = 0.5
"""Seconds. A queue in which nobody waits for longer does no harm."""
_APART = 1.4
"""Levels nearer than this can't be told apart by what comes of them."""
_DOUBLE = 2.0
_LEAP = 1.5
_FEWER = 2 / 3
_GAIN = 1 / 5
"""How much of what a level has more must arrive as more answers."""


class CallStart(NamedTuple):
    """A call as it began."""

    began: float
    in_flight: int
    """How many calls there were with it: that is what it has to wait behind."""
    round: int


class CallRound(NamedTuple):
    """What came of calls at one level."""

    level: float
    latency: float


class CallAllowance:
    """One for each server. It hears of every call, and says how many there may be."""

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
        """A call is made, and is one of so many."""
        self._wanted = max(self._wanted, in_flight)
        return CallStart(now, in_flight, self._number)

    def answered(self, call: CallStart, now: float) -> None:
        """A call has its answer."""
        growing = self._stride < _DOUBLE and not self._trying_fewer
        if growing and call.in_flight >= int(self.allowed) - 1:
            self.allowed = min(self._most, self.allowed + 1 / self.allowed)
        # Earlier calls tell of another level; and where there are few, it is because few are wanted.
        if call.round < self._number or call.in_flight < self.allowed / 2:
            return
        self._seen.append((call.in_flight, now - call.began))
        # While levels double, half of the calls begin together. To wait for the others would be to wait twice as long.
        if len(self._seen) >= max(_ENOUGH, self.allowed / 3 if self._stride == _DOUBLE else self.allowed):
            level, latency = map(statistics.median, zip(*self._seen, strict=True))
            self._compare(CallRound(level, latency))
            self._next_round()

    def refused(self, call: CallStart, in_flight: int) -> None:
        """A call was too much for the server, or got no answer in time.

        Halves once for all the calls that were in flight together: they all tell of the same moment.
        """
        if call.round > self._refused_in:
            # Half of what there really was: more was allowed than anybody wanted.
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

    def _compare(self, found: CallRound) -> None:
        before = self._before
        self._trying_fewer = False
        if before is None or found.latency < _SHORT:
            self._before = found
            self._go_up()
            return
        fewer, more = sorted((before, found))
        if more.level < fewer.level * _APART:
            if found.latency > 2 * before.latency:
                # There is a queue that was not there before, or the calls are longer now: fewer of them will tell.
                self._before = found
                self._try(found.level * _FEWER)
            elif self._stride == _DOUBLE:
                self._go_up()
        elif found is more:
            self._before = found
            if is_faster_with_more(fewer, more):
                self._go_up()
            else:
                self._try(before.level)
        elif is_faster_with_more(fewer, more):
            self.allowed = max(self.allowed, before.level)
        else:
            self._before = found
            self._stride = min(self._stride, _LEAP)
            self._try(found.level * _FEWER)

    def _go_up(self) -> None:
        if self._wanted >= int(self.allowed) - 1:
            self.allowed = min(self._most, self.allowed * self._stride)

    def _try(self, fewer: float) -> None:
        self.allowed = max(1.0, fewer)
        self._trying_fewer = True


def is_faster_with_more(fewer: CallRound, more: CallRound) -> bool:
    """Whether more calls at once brought more answers in the same time."""
    wanted = 1 + (more.level / fewer.level - 1) * _GAIN
    # The rates are compared without dividing, because a latency may be nothing.
    return more.level * fewer.latency >= wanted * fewer.level * more.latency
