"""Counting words in tickets that are named by their keys: texts are read when they are counted, and not kept."""

from __future__ import annotations

from collections.abc import Iterable

from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.measuring.word_baseline import MOST_TICKETS, Learn, Predict, word_count_baseline
from donewhen.models.roles import Binary


def word_count_baseline_by_key(book: TicketReader) -> Learn:
    """``word_counts`` for keys in the place of texts."""

    def learn(train: Iterable[tuple[str, Binary]]) -> Predict:
        known = list(train)
        # Those that would be learned from anyway; now, because after this they are texts.
        known = known[:: -(-len(known) // MOST_TICKETS) or 1]
        predict = word_count_baseline((book.ticket(key).text, label) for key, label in known)
        return lambda key: predict(book.ticket(key).text)

    return learn
