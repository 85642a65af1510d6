"""How good a judge is, said without statistics."""

from __future__ import annotations

import pytest

from donewhen.learning.measuring.metrics import Confusion
from donewhen.reports.phrases import plain_sentence


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (
            Confusion(true_pass=56, false_fail=6, true_fail=37, false_pass=1),
            "Right in 93 of 100; lets 1 of 38 bad ones through; stops 6 of 62 good ones.",
        ),
        (Confusion(true_fail=3, invalid_fail=1), "Right in 3 of 4; lets 0 of 4 bad ones through; leaves 1 undecided."),
        (Confusion(true_pass=2), "Right in 2 of 2; stops 0 of 2 good ones."),
        (Confusion(), ""),
    ],
)
def test_the_sentence_counts_tickets(counts: Confusion, said: str) -> None:
    assert plain_sentence(counts) == said
