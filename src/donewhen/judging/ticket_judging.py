"""Judge a stream of tickets within a budget, and count the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from donewhen.foundation.coroutines import run_awaitable
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.judging.guidance import Guidance
from donewhen.judging.judge import Judge
from donewhen.judging.mission import Mission
from donewhen.judging.ticket import Ticket, TicketError
from donewhen.judging.verdict import Verdict
from donewhen.judging.verdict_stream import stream_verdicts
from donewhen.models.metered import MeteredModel


@dataclass
class VerdictCounts:
    """Counts of the verdicts so far."""

    verdicts: dict[str, int] = field(default_factory=lambda: {"pass": 0, "fail": 0})
    unjudged: int = 0
    """Tickets without a well-formed answer."""
    bad: int = 0
    """Lines that are no tickets."""
    review: int = 0
    """Verdicts that a person should review."""
    labelled: int = 0
    right: int = 0
    false_releases: int = 0
    false_blocks: int = 0

    @property
    def judged(self) -> int:
        return sum(self.verdicts.values())

    @property
    def seen(self) -> int:
        return self.judged + self.unjudged + self.bad

    @property
    def accuracy(self) -> float | None:
        return self.right / self.labelled if self.labelled else None

    @property
    def exit_code(self) -> ExitCode:
        """PASS only if every ticket was judged, and there was at least one: zero checks is not a pass."""
        if self.bad or not self.seen:
            return ExitCode.USAGE
        return ExitCode.GATE_FAILED if self.unjudged else ExitCode.PASS

    def count(self, verdict: Verdict | TicketError) -> None:
        if isinstance(verdict, TicketError):
            self.bad += 1
            return
        if verdict.verdict is None:
            self.unjudged += 1
        else:
            self.verdicts[verdict.verdict] += 1
        self.review += verdict.signals.needs_manual_review
        if verdict.label is not None:
            # A missing verdict counts as wrong: leaving those out would overstate the accuracy.
            self.labelled += 1
            self.right += verdict.verdict == verdict.label
            self.false_releases += verdict.verdict == "pass" != verdict.label
            self.false_blocks += verdict.verdict == "fail" != verdict.label

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.verdicts,
            "not_judged": self.unjudged,
            "bad_lines": self.bad,
            "needs_manual_review": self.review,
            "labelled": self.labelled,
            "right": self.right,
            "accuracy": self.accuracy,
            "false_releases": self.false_releases,
            "false_blocks": self.false_blocks,
        }


def judge_tickets(
    mission: Mission,
    guidance: Guidance,
    metered: MeteredModel,
    tickets: Iterable[Ticket | TicketError],
    on_verdict: Callable[[Verdict | TicketError], None] = lambda _: None,
    *,
    piped: bool = False,
    counts: VerdictCounts | None = None,
) -> VerdictCounts:
    """Judge the tickets in their order, and close the model. Each verdict is counted, then given to ``on_verdict``.

    ``piped``: the tickets come from a writer that may wait for a verdict before it writes the next ticket. ``counts``
    is filled, so that a caller knows what was judged when this is interrupted or raises BudgetError.
    """
    counted = VerdictCounts() if counts is None else counts

    async def judge_all() -> None:
        try:
            async for verdict in stream_verdicts(Judge(mission, guidance, metered), tickets, piped=piped):
                counted.count(verdict)
                on_verdict(verdict)
        except DonewhenError:
            # No more calls will follow; wait for those in flight, because they cost money.
            await metered.settled()
            raise
        finally:
            await metered.aclose()

    run_awaitable(judge_all())
    return counted
