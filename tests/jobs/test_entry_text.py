"""An entry of the ledger in one sentence: for the served page, the dashboard, and whoever reads the events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from donewhen.jobs.board.entry_text import entry_text
from donewhen.jobs.ledger.entries import Entry

MakeEntry = Callable[..., Entry]
SEAL = f"sha256:{'ab' * 32}"


@pytest.mark.parametrize(
    ("kind", "data", "sentence"),
    [
        ("agreed", {"how": "agreed", "hash": SEAL}, "sealed as abababababab"),
        ("agreed", {"how": "tightened", "hash": SEAL}, "terms tightened, sealed as abababababab"),
        ("agreed", {"how": "said", "hash": SEAL}, "unproved, does not count"),
        ("started", {}, "work started"),
        ("started", {"commit": "0123456789abcdef"}, "work started at commit 0123456789"),
        ("ran", {"what": "command", "evidence": "sh a.sh", "passed": True}, "sh a.sh: passed"),
        ("ran", {"what": "command", "evidence": "sh a.sh", "passed": False}, "sh a.sh: failed"),
        ("ran", {"what": "file", "evidence": "file a", "passed": False, "told": "gone"}, "file a: failed, gone"),
        ("ran", {"what": "judge", "evidence": "judge x", "needs_human": True}, "judge x: needs a person"),
        ("evaluated", {"score": 41, "gates": {"truth": ["x"], "reward": []}}, "score 41, closed: truth"),
        ("completed", {"score": 97, "gates": {"truth": []}}, "score 97, all gates open"),
        ("completed", {"jobs": {}}, ""),
        ("decided", {"decision": "raise_budget", "value": 6, "reason": "slow"}, "raise budget 6: slow"),
        ("decided", {"decision": "block", "reason": "no\nnetwork"}, "block: no network"),
        ("decided", {"decision": "sign_off", "value": {"criterion": "AC-2"}, "reason": "seen"}, "sign off AC-2: seen"),
        ("overridden", {"criterion": "AC-1", "verdict": "pass"}, "AC-1 pass"),
        ("overridden", {"criterion": "AC-1", "verdict": "fail", "reason": "no"}, "AC-1 fail: no"),
        ("invalidated", {"why": "WI-1 changed"}, "WI-1 changed"),
        ("unverified", {"why": "it was let go"}, "it was let go"),
        ("started", {"lessons": {"LL-1": SEAL}}, "work started, with 1 lesson(s) from earlier jobs"),
        ("lesson", {"lesson": "LL-1", "how": "captured"}, "LL-1 captured"),
        ("lesson", {"lesson": "LL-1", "how": "not_relevant", "said": "no\nlogs"}, "LL-1 not relevant: no logs"),
    ],
)
def test_an_entry_is_told_in_one_sentence(
    make_entry: MakeEntry, kind: Any, data: dict[str, Any], sentence: str
) -> None:
    assert entry_text(make_entry(kind, **data)) == sentence


@pytest.mark.parametrize(
    "kind", ["agreed", "ran", "decided", "overridden", "completed", "lesson", "invalidated", "started"]
)
def test_an_entry_without_content_breaks_nothing(make_entry: MakeEntry, kind: Any) -> None:
    assert "\n" not in entry_text(make_entry(kind))


def test_what_a_terminal_or_a_page_must_not_see_is_left_out(make_entry: MakeEntry) -> None:
    sentence = entry_text(make_entry("decided", decision="block", reason="a\x1b[31mb\u202ec" + "d" * 500))
    assert sentence.startswith("block: abcd")
    assert len(sentence) == 200
