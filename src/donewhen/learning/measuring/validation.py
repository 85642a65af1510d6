"""Judge the same tickets under several guidances: validation tickets for trials, training tickets for rule credit."""

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
from donewhen.models.roles import scores_in_points

CREDIT_TICKETS_FREE = 200
CREDIT_TICKETS_PAID = 40
_REMEMBERED = 6


class ValidationPanel:
    """Judges a sample of the tickets, and caches the results of the last few guidances."""

    def __init__(self, mission: Mission, reader: TicketReader, splits: Splits, metered: MeteredModel) -> None:
        self._mission = mission
        self._reader = reader
        self._metered = metered
        self._clusters = {member.key: member.cluster for member in reader.members}
        self._in_points = scores_in_points(metered.model)
        self._known: OrderedDict[tuple[str, str], dict[str, LabelledVerdict] | None] = OrderedDict()
        settings = mission.settings
        max_tickets = len(splits.validation) if settings.trial == "off" else settings.trial.max_tickets
        self.validation = _sample(splits.validation, max_tickets, settings.seed)
        credit_tickets = settings.rules.credit_tickets
        if credit_tickets is None:
            credit_tickets = CREDIT_TICKETS_FREE if metered.free else CREDIT_TICKETS_PAID
        self.credit = _sample(splits.train, credit_tickets, settings.seed)

    async def on_validation(self, guidance: Guidance) -> dict[str, LabelledVerdict]:
        """Judge the validation tickets under a guidance."""
        return await self._judge_tickets(guidance, "validation", self.validation)

    async def on_credit(self, guidance: Guidance) -> dict[str, LabelledVerdict]:
        """Judge the tickets for rule credit under a guidance."""
        return await self._judge_tickets(guidance, "credit", self.credit)

    async def _judge_tickets(self, guidance: Guidance, part: str, keys: Sequence[str]) -> dict[str, LabelledVerdict]:
        cache_key = guidance.hash, part
        known = self._known.get(cache_key)
        if known is not None:
            self._known.move_to_end(cache_key)
            return known
        # Already on the bill if it was judged before the run was interrupted. The answer store accounts for that, but
        # answers of free models are not stored.
        paid = cache_key in self._known and self._metered.free
        judged: dict[str, LabelledVerdict] = {}
        metered = MeteredModel(self._metered.model) if paid else self._metered
        judge = Judge(self._mission, guidance, metered, reasons=metered.reads_reasons)
        stream = judge.stream(self._reader.tickets(keys))
        try:
            async for verdict in stream:
                assert verdict.label is not None  # noqa: S101 - only labelled tickets are in a split
                key = verdict.ticket_key
                score = verdict.score if self._in_points else None
                judged[key] = LabelledVerdict(verdict.label, verdict.verdict, self._clusters[key], score)
        finally:
            await stream.aclose()
        self._remember(cache_key, judged)
        return judged

    def note_validated(self, *guidances: Guidance) -> None:
        """Note that these guidances have judged the validation tickets, now or before the run was interrupted."""
        for guidance in guidances:
            self._remember((guidance.hash, "validation"), self._known.get((guidance.hash, "validation")))

    def note_credited(self, *guidances: Guidance) -> None:
        """Note that these guidances have judged the tickets for rule credit."""
        for guidance in guidances:
            self._remember((guidance.hash, "credit"), self._known.get((guidance.hash, "credit")))

    def forget(self) -> None:
        """Clear the cache."""
        self._known.clear()

    def _remember(self, cache_key: tuple[str, str], judged: dict[str, LabelledVerdict] | None) -> None:
        self._known[cache_key] = judged
        self._known.move_to_end(cache_key)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def _sample(keys: Sequence[str], limit: int, seed: int) -> tuple[str, ...]:
    ordered = sorted(keys)
    return tuple(ordered if len(ordered) <= limit else sorted(random.Random(seed).sample(ordered, limit)))
