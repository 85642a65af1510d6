"""The machine's own clocks."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from donewhen.foundation.clock import SYSTEM_CLOCK, SystemClock


def test_the_wall_clock_reads_utc():
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert now.utcoffset() == timedelta(0)
    assert before <= now <= datetime.now(UTC)


def test_measuring_uses_the_monotonic_clock():
    before = time.monotonic()
    reading = SYSTEM_CLOCK.monotonic()
    assert before <= reading <= time.monotonic()
