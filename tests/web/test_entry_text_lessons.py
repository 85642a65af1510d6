"""Entries about lessons, in one sentence each."""

from __future__ import annotations

from typing import Any

import pytest

from donewhen.jobs.board.entry_text import entry_text
from donewhen.jobs.ledger.entries import Actor, Entry, EventKind


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("started", {}, "work started"),
        ("started", {"commit": "0123456789abcdef"}, "work started at commit 0123456789"),
        (
            "started",
            {"lessons": {"LL-1": "sha256:x", "LL-2": "sha256:y"}},
            "work started, with 2 lesson(s) from earlier jobs",
        ),
        ("lesson", {"lesson": "LL-1", "how": "captured"}, "LL-1 captured"),
        ("lesson", {"lesson": "LL-1", "how": "not_relevant", "said": "No\nparser."}, "LL-1 not relevant: No parser."),
    ],
)
def test_what_became_of_lessons_is_told(kind: EventKind, data: dict[str, Any], expected: str) -> None:
    assert entry_text(Entry(1, "", kind, "2026-02-14T00:00:00Z", Actor("bot"), data, "")) == expected
