"""A caller who knows the kind of a record's content gets it typed, and an error if it is of another kind."""

from __future__ import annotations

import pytest

from donewhen.foundation.typed_content import content_as
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import Decided, Ran, Started
from donewhen.learning.running.event_content import BudgetHit, EpochStarted
from donewhen.learning.running.events import RunEvent


def test_content_of_the_right_kind_is_returned_itself() -> None:
    content = Started()
    assert content_as(content, Started, "Entry", 1) is content


def test_content_of_another_kind_is_an_error_that_names_the_record() -> None:
    with pytest.raises(TypeError, match=r"^Entry 7 is Started, not Ran\.$"):
        content_as(Started(), Ran, "Entry", 7)


def test_run_events_and_ledger_entries_read_their_content_in_the_same_way() -> None:
    entry = Entry(2, "", "started", "2026-02-14T10:00:00Z", Actor("ada"), {"commit": "abc"}, "")
    assert entry.read_as(Started).commit == "abc"
    with pytest.raises(TypeError, match=r"^Entry 2 is Started, not Decided\.$"):
        entry.read_as(Decided)
    event = RunEvent(3, "epoch_started", "2026-02-14T10:00:00Z", {"epoch": 1, "step": 0}, {})
    assert event.read_as(EpochStarted).epoch == 1
    with pytest.raises(TypeError, match=r"^Event 3 is EpochStarted, not BudgetHit\.$"):
        event.read_as(BudgetHit)
