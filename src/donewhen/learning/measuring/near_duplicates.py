"""Which tickets read like those of the other label? Told by counting words, never by the judge that is in question."""

from __future__ import annotations

import random
from collections.abc import Sequence

from donewhen.learning.measuring.splits import SplitMember
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.measuring.word_baseline import out_of_fold_predictions, word_count_baseline

_MOST = 4000


def tickets_unlike_their_label(book: TicketReader, members: Sequence[SplitMember], seed: int) -> frozenset[str]:
    """Tickets whose words, counted among tickets of other clusters, speak for the other label."""
    sample = list(members) if len(members) <= _MOST else random.Random(seed).sample(members, _MOST)
    said = out_of_fold_predictions(
        [(book.ticket(one.key).text, one.label, one.cluster) for one in sample], word_count_baseline
    )
    return frozenset(one.key for one, verdict in zip(sample, said, strict=True) if verdict != one.label)
