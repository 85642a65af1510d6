"""The same tickets under several guidances: the validation tickets of a trial, the training tickets of a credit."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence

from donewhen.judging.guidance import Guidance
from donewhen.judging.judge import Judge
from donewhen.judging.mission import Mission
from donewhen.learning.measuring.splits import Splits
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.measuring.trial import LabelledVerdict
from donewhen.models.metered import MeteredModel

CREDIT_TICKETS_FREE = 200
CREDIT_TICKETS_PAID = 40
_REMEMBERED = 6


class ValidationPanel:
    """Judges a part of the tickets, and remembers what the last few guidances came to."""

    def __init__(self, mission: Mission, book: TicketReader, splits: Splits, asking: MeteredModel) -> None:
        self._mission = mission
        self._book = book
        self._asking = asking
        self._known: OrderedDict[tuple[str, str], dict[str, LabelledVerdict] | None] = OrderedDict()
        settings = mission.settings
        most = len(splits.validation) if settings.trial == "off" else settings.trial.max_tickets
        self.validation = _sample(splits.validation, most, settings.seed)
        wanted = settings.rules.credit_tickets
        if wanted is None:
            wanted = CREDIT_TICKETS_FREE if asking.free else CREDIT_TICKETS_PAID
        self.credit = _sample(splits.train, wanted, settings.seed)

    async def on_validation(self, guidance: Guidance) -> dict[str, LabelledVerdict]:
        """The unseen tickets under a guidance."""
        return await self._judged(guidance, "validation", self.validation)

    async def on_credit(self, guidance: Guidance) -> dict[str, LabelledVerdict]:
        """The tickets on which rules are left out."""
        return await self._judged(guidance, "credit", self.credit)

    async def _judged(self, guidance: Guidance, part: str, keys: Sequence[str]) -> dict[str, LabelledVerdict]:
        name = guidance.hash, part
        known = self._known.get(name)
        if known is not None:
            self._known.move_to_end(name)
            return known
        # Judged before the run was cut off, it is on the bill. Kept answers know that; free ones are not kept.
        paid = name in self._known and self._asking.free
        found: dict[str, LabelledVerdict] = {}
        asking = MeteredModel(self._asking.model) if paid else self._asking
        judge = Judge(self._mission, guidance, asking, reasons=asking.reads_reasons)
        stream = judge.stream(self._book.tickets(keys))
        try:
            async for verdict in stream:
                assert verdict.label is not None  # noqa: S101 - only labelled tickets are in a split
                found[verdict.ticket_key] = LabelledVerdict(verdict.label, verdict.verdict)
        finally:
            await stream.aclose()
        self._remember(name, found)
        return found

    def was_on_validation(self, *guidances: Guidance) -> None:
        """These have judged the validation tickets, now or before the run was cut off."""
        for guidance in guidances:
            self._remember((guidance.hash, "validation"), self._known.get((guidance.hash, "validation")))

    def was_on_credit(self, *guidances: Guidance) -> None:
        """The same for the tickets on which rules are left out."""
        for guidance in guidances:
            self._remember((guidance.hash, "credit"), self._known.get((guidance.hash, "credit")))

    def forget(self) -> None:
        """Know nothing of what was judged before."""
        self._known.clear()

    def _remember(self, name: tuple[str, str], found: dict[str, LabelledVerdict] | None) -> None:
        self._known[name] = found
        self._known.move_to_end(name)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def _sample(keys: Sequence[str], most: int, seed: int) -> tuple[str, ...]:
    ordered = sorted(keys)
    return tuple(ordered if len(ordered) <= most else sorted(random.Random(seed).sample(ordered, most)))
