"""Audit a judge: judge every labelled ticket once, learn nothing, and report the metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from donewhen.foundation.binary import Binary
from donewhen.foundation.errors import DonewhenError
from donewhen.judging.guidance import Guidance
from donewhen.judging.judge import Judge
from donewhen.judging.mission import Mission
from donewhen.judging.verdict import Verdict
from donewhen.learning.after.report_building import cost_row, learned_from
from donewhen.learning.after.report_data import (
    Baseline,
    BaselineName,
    LearningReport,
    PartSizes,
    RuleRow,
    SplitSizes,
    VerdictRow,
)
from donewhen.learning.after.report_notes import with_notes
from donewhen.learning.measuring.keyed_baseline import word_count_baseline_by_key
from donewhen.learning.measuring.metrics import mcnemar, measure
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.measuring.word_baseline import Learn, majority_baseline, out_of_fold_predictions
from donewhen.models.metered import MeteredModel


async def audit_judge(
    mission: Mission, guidance: Guidance, metered: MeteredModel, advance: Callable[[Verdict], None] = lambda _: None
) -> LearningReport:
    """Judge every labelled ticket of a mission and report. A note says if rules were learned from these tickets."""
    reader = TicketReader(mission)
    started = mission.clock.monotonic()
    counts: Counter[tuple[Binary, Binary | None]] = Counter()
    wrong: list[bool] = []
    votes = 0
    malformed: dict[str, int] = {}
    stream = Judge(mission, guidance, metered, reasons=metered.reads_reasons).stream(
        reader.tickets([member.key for member in reader.members])
    )
    try:
        async for verdict in stream:
            assert verdict.label is not None  # noqa: S101 - the reader holds labelled tickets
            counts[verdict.label, verdict.verdict] += 1
            wrong.append(verdict.label != verdict.verdict)
            votes += len(verdict.answers)
            for vote, _ in verdict.answers:
                if vote not in ("pass", "fail"):
                    malformed[vote] = malformed.get(vote, 0) + 1
            advance(verdict)
    except DonewhenError:
        # No more calls will follow; wait for those in flight, because they cost money.
        await metered.settled()
        raise
    finally:
        await stream.aclose()
        await metered.aclose()
    spent: dict[str, Any] = {**vars(metered.meter), "seconds": round(mission.clock.monotonic() - started, 3)}
    labels = [member.label for member in reader.members]
    sizes = PartSizes(
        passes=labels.count("pass"),
        fails=labels.count("fail"),
        clusters=len({member.cluster for member in reader.members}),
        hash=reader.hash,
    )
    return with_notes(
        LearningReport(
            mission=mission.name,
            run="audit",
            model=metered.name,
            status="audit",
            finished_at=mission.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            seed=mission.settings.seed,
            splits=SplitSizes(
                test=sizes, test_learned_from=learned_from(guidance, (member.key for member in reader.members))
            ),
            before=measure(counts.elements()),
            guidance_before=guidance.step,
            baselines=_baselines(reader, wrong),
            rules=tuple(RuleRow(key=key, text=text) for key, text in guidance.rules.items()),
            votes=votes,
            malformed=malformed,
            cost=cost_row(spent, mission),
        )
    )


def verdict_row(verdict: Verdict) -> VerdictRow:
    """The verdict on one labelled ticket, as a row of the report."""
    assert verdict.label is not None  # noqa: S101 - an audit judges labelled tickets
    return VerdictRow(
        ticket_key=verdict.ticket_key,
        label=verdict.label,
        verdict=verdict.verdict,
        score=verdict.score,
        vote_strength=verdict.signals.vote_strength,
        needs_manual_review=verdict.signals.needs_manual_review,
    )


def _baselines(reader: TicketReader, wrong: list[bool]) -> tuple[Baseline, ...]:
    """Out-of-fold baselines: each ticket is predicted from the tickets of other clusters."""
    tickets = [(member.key, member.label, member.cluster) for member in reader.members]
    learners: dict[BaselineName, Learn] = {
        "majority": majority_baseline,
        "word_counts": word_count_baseline_by_key(reader),
    }
    baselines = []
    for name, learn in learners.items():
        judged = list(zip((label for _, label, _ in tickets), out_of_fold_predictions(tickets, learn), strict=True))
        against = mcnemar([label != verdict for label, verdict in judged], wrong)
        baselines.append(Baseline(name=name, measures=measure(judged), against=against))
    return tuple(baselines)
