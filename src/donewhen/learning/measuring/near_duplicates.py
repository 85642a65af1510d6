"""Which tickets read like those of the other label? Told by counting words, never by the judge that is in question."""

from __future__ import annotations

import random
from collections.abc import Sequence

from donewhen.learning.measuring.splits import Member
from donewhen.learning.measuring.ticket_reader import Book
from donewhen.learning.measuring.word_baseline import out_of_fold, word_counts

_MOST = 4000


def unlike_their_label(book: Book, members: Sequence[Member], seed: int) -> frozenset[str]:
    """Tickets whose words, counted among tickets of other clusters, speak for the other label."""
    sample = list(members) if len(members) <= _MOST else random.Random(seed).sample(members, _MOST)
    said = out_of_fold([(book.ticket(one.key).text, one.label, one.cluster) for one in sample], word_counts)
    return frozenset(one.key for one, verdict in zip(sample, said, strict=True) if verdict != one.label)
