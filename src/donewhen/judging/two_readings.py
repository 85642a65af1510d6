"""Ask a judge about a ticket as it is, and again as a person reads it, if that is another text."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from donewhen.foundation.coroutines import run_awaitable
from donewhen.judging.guidance import Guidance
from donewhen.judging.judge import Judge
from donewhen.judging.mission import Mission
from donewhen.judging.mission_budget import spending_limits
from donewhen.judging.normal_text import normal_texts, read_alike
from donewhen.judging.ticket import Ticket
from donewhen.judging.verdict import Verdict
from donewhen.models import executors
from donewhen.models.metered import BudgetError, Meter, MeteredModel
from donewhen.models.roles import Model, counts_lines


@dataclass(frozen=True)
class TwoReadings:
    """The verdict on the exact text, and how the same judge decides on the text as a person reads it."""

    verdict: Verdict
    model: str
    second: Verdict | None = None
    """None if both forms are the same text, or if the first verdict already needs a person."""
    unasked: str = ""
    """Why the second question could not be asked; empty if it was, or needed not be."""

    @property
    def difference(self) -> str | None:
        """Why a person has to decide although the verdict on the exact text is clear; None if nothing is wrong."""
        if self.unasked:
            return f"the text differs from what a person reads, and it could not be judged in that form: {self.unasked}"
        if self.second is None or self.second.verdict == self.verdict.verdict:
            return None
        other = self.second.verdict or "nothing usable"
        return (
            f"the judge says {self.verdict.verdict} about the exact text, but {other} about the text as a person reads "
            "it, without look-alike letters, hidden characters and split words or lines"
        )


def judge_both_readings(ticket: Ticket, mission: Mission, guidance: Guidance) -> TwoReadings:
    """Ask the mission's judge within its budget. Also works inside a running event loop."""
    if mission.settings.model == "local":
        from donewhen.models.local.weights import default_weights, refuse_other_weights

        refuse_other_weights(default_weights())
    model = executors.InProcessExecutor().open(mission.settings.model)
    began = mission.clock.monotonic()
    meter = Meter(spending_limits(mission, model), elapsed=lambda: mission.clock.monotonic() - began)
    # No answer cache: anybody can write to the cache in the mission's folder. The ledger records what was asked.
    return run_awaitable(
        _judged_and_closed(ticket, mission.able_to_judge(), guidance, MeteredModel(model, meter), model)
    )


async def _judged_and_closed(
    ticket: Ticket, mission: Mission, guidance: Guidance, metered: MeteredModel, model: Model
) -> TwoReadings:
    try:
        return await _both(ticket, mission, guidance, metered, model)
    finally:
        await metered.aclose()


async def _both(
    ticket: Ticket, mission: Mission, guidance: Guidance, metered: MeteredModel, model: Model
) -> TwoReadings:
    judge = Judge(mission, guidance, metered)
    verdict = await judge.judged(ticket)
    second_ticket = _as_read(ticket, model)
    if second_ticket is None or verdict.verdict is None:
        return TwoReadings(verdict, model.name)
    try:
        # One vote is enough to confirm a verdict; to contradict it, all are needed.
        second = await Judge(_with_one_vote(mission), guidance, metered).judged(second_ticket)
        if second.verdict != verdict.verdict and len(mission.decodes) > 1:
            second = await judge.judged(second_ticket)
    except BudgetError as error:
        return TwoReadings(verdict, model.name, unasked=error.message.rstrip("."))
    return TwoReadings(verdict, model.name, second)


def _as_read(ticket: Ticket, model: Model) -> Ticket | None:
    """Return the ticket as a person reads it; None if that is the same text."""
    normal = normal_texts(ticket.evidence, join_lines=not counts_lines(model))
    return None if read_alike(ticket.evidence, normal) else ticket._replace(evidence=normal)


def _with_one_vote(mission: Mission) -> Mission:
    first = msgspec.structs.replace(mission.settings.sampler[0], samples=1)
    return replace(mission, settings=msgspec.structs.replace(mission.settings, sampler=(first,)))
