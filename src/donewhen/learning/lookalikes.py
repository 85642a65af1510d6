"""Which tickets read like those of the other label? Told by counting words, never by the judge that is in question."""

from __future__ import annotations

import random
from collections.abc import Sequence

from donewhen.learning.baseline import word_counts
from donewhen.learning.book import Book
from donewhen.learning.splits import Member

_FOLDS = 5
_MOST = 2000


def unlike_their_label(book: Book, members: Sequence[Member], seed: int) -> frozenset[str]:
    """Tickets whose words, counted among tickets of other clusters, speak for the other label."""
    clusters = sorted({one.cluster for one in members})
    shuffler = random.Random(f"{seed} folds")
    shuffler.shuffle(clusters)
    fold_of = {name: number % _FOLDS for number, name in enumerate(clusters)}
    found: set[str] = set()
    for fold in range(min(_FOLDS, len(clusters))):
        others = [one for one in members if fold_of[one.cluster] != fold]
        if len({one.label for one in others}) < 2:
            continue
        sample = others if len(others) <= _MOST else shuffler.sample(others, _MOST)
        predict = word_counts((book.ticket(one.key).text, one.label) for one in sample)
        found |= {
            one.key
            for one in members
            if fold_of[one.cluster] == fold and predict(book.ticket(one.key).text) != one.label
        }
    return frozenset(found)
