"""The word-count baseline for ticket keys: texts are read on demand and not kept in memory."""

from __future__ import annotations

from collections.abc import Iterable

from donewhen.foundation.binary import Binary
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.measuring.word_baseline import MOST_TICKETS, Learn, Predict, word_count_baseline


def word_count_baseline_by_key(reader: TicketReader) -> Learn:
    """``word_count_baseline`` for keys instead of texts."""

    def learn(train: Iterable[tuple[str, Binary]]) -> Predict:
        known = list(train)
        # The same sample that word_count_baseline takes, drawn here before the texts are read.
        known = known[:: -(-len(known) // MOST_TICKETS) or 1]
        predict = word_count_baseline((reader.ticket(key).text, label) for key, label in known)
        return lambda key: predict(reader.ticket(key).text)

    return learn
