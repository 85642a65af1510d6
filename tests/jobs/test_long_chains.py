"""Long chains: every entry is verified, and nothing is computed more often than needed."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import ClassVar

import pytest

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.jobs.gates.score import stalled_tries
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Actor, Chain, verify_chain
from donewhen.jobs.ledger.ledger import Ledger
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import expected_fields

BOT = Actor("bot")
NOW = "2026-02-14T10:00:00Z"


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    """A chain of 1200 entries: a start, runs, and a question at the end."""
    ledger = Ledger(tmp_path / "ledger", tmp_path / "locks")
    ledger.append("WI-1", "started", {"writes": {"status": ["planned", "in_progress"], "iteration": [0, 2]}}, BOT)
    path = tmp_path / "ledger" / "WI-1.jsonl"
    previous = ledger.head("WI-1")
    lines = []
    for number in range(2, 1200):
        run = {"what": "file", "evidence": f"file {number}", "passed": False}
        content = {"v": 2, "seq": number, "prev": previous, "type": "ran", "at": NOW, "data": run}
        content["by"] = {"name": "bot", "kind": "agent"}
        previous = digest(canonical_json(content))
        lines.append(canonical_json({**content, "hash": previous}) + b"\n")
    path.write_bytes(path.read_bytes() + b"".join(lines))
    ledger.append("WI-1", "decided", {"decision": "ask", "reason": "Which?"}, BOT)
    return ledger.read("WI-1")


def test_the_state_of_a_long_chain_is_computed_once(chain: Chain) -> None:
    assert (len(chain.entries), chain.breaks) == (1200, ())
    first = history_of("WI-1", chain.entries, Policy())
    assert (first.status, first.iteration, first.waiting) == ("in_progress", 2, chain.entries[-1])
    assert history_of("WI-1", chain.entries, Policy()) is first
    # Other entries, another chain or another policy have a state of their own.
    assert history_of("WI-1", chain.entries[:-1], Policy()).waiting is None
    assert history_of("WI-2", chain.entries, Policy()) is not first


def test_the_fields_of_a_long_chain_are_handed_out_as_copies(chain: Chain) -> None:
    fields = expected_fields(chain.entries)
    assert fields["iteration"] == 2
    fields["iteration"] = 99
    assert expected_fields(chain.entries)["iteration"] == 2


class Counted(int):
    """A score that counts how often scores are compared."""

    comparisons: ClassVar[int] = 0

    def __gt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return super().__gt__(other)

    def __le__(self, other: int) -> bool:
        Counted.comparisons += 1
        return super().__le__(other)


def test_stalled_attempts_are_counted_in_one_pass() -> None:
    assert [stalled_tries(scores) for scores in ((), (5,), (5, 5), (5, 6, 4, 6, 7))] == [0, 0, 1, 0]
    scores = tuple(Counted(number % 100) for number in range(1000))
    assert stalled_tries(scores) == 900  # since the first 99
    assert Counted.comparisons <= 2 * len(scores)


def test_an_entry_that_has_hashes_inside_its_content_is_verified_like_any_other(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", tmp_path / "locks")
    inner = {"hash": "sha256:" + "0" * 64, "prev": "sha256:" + "1" * 64}
    data = {"outputs": {**inner, 'a","hash":"x","prev":"y': "z"}}
    ledger.append("WI-1", "started", data, Actor('x","hash":"sha256:0","prev":"'))
    ledger.append("WI-1", "started", {"outputs": inner}, BOT)
    content = (tmp_path / "ledger" / "WI-1.jsonl").read_bytes()
    assert verify_chain("WI-1", content).breaks == ()
    changes = {b"sha256:" + b"0" * 64: b"sha256:" + b"7" * 64, b'"seq":1': b'"seq":7', b"sha256:1": b"sha256:7"}
    for before, after in changes.items():
        assert before in content
        assert verify_chain("WI-1", content.replace(before, after, 1)).breaks, before


def test_a_line_whose_link_is_no_text_is_verified_too(tmp_path: Path) -> None:
    content = {"v": 2, "seq": 1, "type": "ran", "at": NOW, "by": {"name": "b", "kind": "agent"}, "data": {}}
    content["prev"] = {"a": 1, "hash": "x", "prev": 2}
    line = canonical_json({**content, "hash": digest(canonical_json(content))}) + b"\n"
    (failure,) = verify_chain("WI-1", line).breaks
    assert "hash link" in failure.problem


def test_the_garbage_collector_runs_again_after_a_chain_was_verified(chain: Chain) -> None:
    assert gc.isenabled()
    gc.disable()
    try:
        verify_chain("WI-1", b"x\n")
        assert not gc.isenabled()
    finally:
        gc.enable()
