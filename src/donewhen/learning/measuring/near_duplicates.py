"""Find tickets whose text resembles the other label, by word counts and independently of the judge."""

from __future__ import annotations

import random
from collections.abc import Sequence

from donewhen.learning.measuring.splits import SplitMember
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.measuring.word_baseline import out_of_fold_predictions, word_count_baseline

_MAX_TICKETS = 4000


def tickets_unlike_their_label(reader: TicketReader, members: Sequence[SplitMember], seed: int) -> frozenset[str]:
    """Tickets for which a word-count model, trained on other clusters, predicts the other label."""
    sample = list(members) if len(members) <= _MAX_TICKETS else random.Random(seed).sample(members, _MAX_TICKETS)
    predictions = out_of_fold_predictions(
        [(reader.ticket(member.key).text, member.label, member.cluster) for member in sample], word_count_baseline
    )
    return frozenset(member.key for member, verdict in zip(sample, predictions, strict=True) if verdict != member.label)
