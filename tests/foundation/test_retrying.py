"""How long to wait before a request is repeated."""

from __future__ import annotations

import pytest

from donewhen.foundation.retrying import backoff_seconds, retry_after_seconds

NOW = 1_771_063_200.0  # 2026-02-14 10:00:00 UTC


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("0", 0.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("Sat, 14 Feb 2026 10:00:30 GMT", 30.0),
        ("Sat, 14 Feb 2026 10:00:30", 30.0),
        ("Sat, 14 Feb 2026 11:00:30 +0100", 30.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Sat, 99 Feb 2026 10:00:30 GMT", None),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


def test_a_wait_doubles_up_to_the_longest() -> None:
    waits = [backoff_seconds(attempt, 1.0, first=0.5, longest=3.0) for attempt in (1, 2, 3, 4, 10_000)]
    assert waits == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_jitter_shortens_a_wait_by_up_to_a_half() -> None:
    assert [backoff_seconds(3, jitter, first=1.0, longest=30.0) for jitter in (0.0, 0.5, 1.0)] == [2.0, 3.0, 4.0]
