"""A deadline is a distance, measured on a clock that nobody sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from donewhen.runtime import Deadline
from donewhen.testing import ManualClock
from sentences import assert_sentences


def test_a_deadline_expires_exactly_when_its_time_has_come():
    clock = ManualClock()
    deadline = Deadline(clock.now() + timedelta(seconds=10), clock)
    clock.advance(9.5)
    assert deadline.expired is False
    assert deadline.remaining() == timedelta(seconds=0.5)
    clock.advance(0.5)
    assert deadline.expired is True
    assert deadline.remaining() == timedelta(0)


def test_the_time_left_is_never_negative():
    clock = ManualClock()
    deadline = Deadline.after(1, clock=clock)
    clock.advance(1000)
    assert deadline.remaining() == timedelta(0)


@pytest.mark.parametrize("jump", [-86400.0, -1.0, 1.0, 86400.0, 365 * 86400.0])
def test_a_wall_clock_that_jumps_neither_extends_nor_shortens_a_deadline(jump: float) -> None:
    clock = ManualClock()
    deadline = Deadline(clock.now() + timedelta(seconds=60), clock)
    clock.jump(jump)
    assert deadline.expired is False
    assert deadline.remaining() == timedelta(seconds=60)
    clock.advance(59)
    clock.jump(jump)
    assert deadline.expired is False
    clock.advance(1)
    clock.jump(-jump)
    assert deadline.expired is True


def test_the_distance_is_taken_when_the_deadline_is_made_whatever_the_clocks_read():
    clock = ManualClock()
    clock.advance(5000)
    clock.jump(-123)
    deadline = Deadline(clock.now() + timedelta(seconds=10), clock)
    assert deadline.remaining() == timedelta(seconds=10)
    clock.advance(10)
    assert deadline.expired is True


def test_a_deadline_in_the_past_has_expired_from_the_start():
    clock = ManualClock()
    deadline = Deadline(clock.now() - timedelta(seconds=1), clock)
    assert deadline.expired is True
    assert deadline.remaining() == timedelta(0)


@pytest.mark.parametrize("duration", [90, 90.0, timedelta(seconds=90)])
def test_a_deadline_can_be_given_as_a_duration(duration: timedelta | float) -> None:
    clock = ManualClock(datetime(2026, 5, 1, tzinfo=UTC))
    deadline = Deadline.after(duration, clock=clock)
    assert deadline.expires_at == datetime(2026, 5, 1, 0, 1, 30, tzinfo=UTC)
    assert deadline.remaining() == timedelta(seconds=90)


def test_no_duration_at_all_has_expired():
    assert Deadline.after(0, clock=ManualClock()).expired is True


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-11)), timezone(timedelta(hours=5, minutes=45))])
def test_a_time_zone_changes_how_a_deadline_is_written_and_not_when_it_is(zone: timezone) -> None:
    clock = ManualClock()
    deadline = Deadline((clock.now() + timedelta(seconds=30)).astimezone(zone), clock)
    assert deadline.remaining() == timedelta(seconds=30)


def test_a_night_in_which_the_clocks_change_is_measured_in_real_hours():
    # Berlin goes from 02:00 to 03:00 in this night: from midnight to six it is five hours.
    try:
        berlin = ZoneInfo("Europe/Berlin")
    except LookupError:
        pytest.skip("this machine has no time zone database")
    clock = ManualClock(datetime(2026, 3, 29, 0, tzinfo=berlin).astimezone(UTC))
    assert Deadline(datetime(2026, 3, 29, 6, tzinfo=berlin), clock).remaining() == timedelta(hours=5)


def test_a_deadline_without_a_time_zone_is_refused_with_advice():
    with pytest.raises(ValueError) as caught:
        Deadline(datetime(2030, 1, 1))  # noqa: DTZ001 - that is the mistake
    assert_sentences(caught.value)


def test_a_deadline_runs_on_the_machines_clock_unless_told_otherwise():
    assert Deadline.after(3600).expired is False
    assert timedelta(minutes=59) < Deadline.after(3600).remaining() <= timedelta(hours=1)
    assert Deadline(datetime.now(UTC) - timedelta(seconds=1)).expired is True


def test_deadlines_for_the_same_moment_are_equal_whatever_clock_measures_them():
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    assert Deadline(moment, ManualClock()) == Deadline(moment)
    assert hash(Deadline(moment, ManualClock())) == hash(Deadline(moment))
    assert Deadline(moment) != Deadline(moment + timedelta(seconds=1))


def test_a_deadline_can_not_be_moved():
    deadline = Deadline.after(1)
    with pytest.raises(AttributeError):
        deadline.expires_at = datetime(2030, 1, 1, tzinfo=UTC)  # type: ignore[misc]
