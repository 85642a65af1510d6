"""Which tickets read like those of the other label? Told by counting words, never by the judge that is in question."""

from __future__ import annotations

import random
from collections.abc import Sequence

from donewhen.learning.baseline import word_counts
from donewhen.learning.book import Book
from donewhen.learning.splits import Member, folds

_MOST = 2000


def unlike_their_label(book: Book, members: Sequence[Member], seed: int) -> frozenset[str]:
    """Tickets whose words, counted among tickets of other clusters, speak for the other label."""
    found: set[str] = set()
    for inside, others in folds(members, seed):
        if len({one.label for one in others}) < 2:
            continue
        sample = others if len(others) <= _MOST else random.Random(seed).sample(others, _MOST)
        predict = word_counts((book.ticket(one.key).text, one.label) for one in sample)
        found |= {one.key for one in inside if predict(book.ticket(one.key).text) != one.label}
    return frozenset(found)
