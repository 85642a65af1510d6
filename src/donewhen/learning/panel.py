"""The same tickets under several guidances: the validation tickets of a trial, the training tickets of a credit."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence

from donewhen.judging.guidance import Guidance
from donewhen.judging.judge import Judge
from donewhen.judging.mission import Mission
from donewhen.learning.book import Book
from donewhen.learning.splits import Splits
from donewhen.learning.trial import Judged
from donewhen.models.asking import Asking

CREDIT_TICKETS_FREE = 200
CREDIT_TICKETS_PAID = 40
_REMEMBERED = 6


class Panel:
    """Judges a part of the tickets, and remembers what the last few guidances came to."""

    def __init__(self, mission: Mission, book: Book, splits: Splits, asking: Asking) -> None:
        self._mission = mission
        self._book = book
        self._asking = asking
        self._known: OrderedDict[tuple[str, str], dict[str, Judged]] = OrderedDict()
        settings = mission.settings
        most = len(splits.validation) if settings.trial == "off" else settings.trial.max_tickets
        self.validation = _sample(splits.validation, most, settings.seed)
        wanted = settings.rules.credit_tickets
        if wanted is None:
            wanted = CREDIT_TICKETS_FREE if asking.free else CREDIT_TICKETS_PAID
        self.credit = _sample(splits.train, wanted, settings.seed)

    async def on_validation(self, guidance: Guidance) -> dict[str, Judged]:
        """The unseen tickets under a guidance."""
        return await self._judged(guidance, "validation", self.validation)

    async def on_credit(self, guidance: Guidance) -> dict[str, Judged]:
        """The tickets on which rules are left out."""
        return await self._judged(guidance, "credit", self.credit)

    async def _judged(self, guidance: Guidance, part: str, keys: Sequence[str]) -> dict[str, Judged]:
        name = guidance.hash, part
        if name in self._known:
            self._known.move_to_end(name)
            return self._known[name]
        found: dict[str, Judged] = {}
        stream = Judge(self._mission, guidance, self._asking).stream(self._book.tickets(keys))
        try:
            async for verdict in stream:
                assert verdict.label is not None  # noqa: S101 - only labelled tickets are in a split
                found[verdict.ticket_key] = Judged(verdict.label, verdict.verdict)
        finally:
            await stream.aclose()
        self._known[name] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found


def _sample(keys: Sequence[str], most: int, seed: int) -> tuple[str, ...]:
    ordered = sorted(keys)
    return tuple(ordered if len(ordered) <= most else sorted(random.Random(seed).sample(ordered, most)))
