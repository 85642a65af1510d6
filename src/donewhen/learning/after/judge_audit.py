"""How good is the judge as it is? Every ticket judged once, nothing learned, and the same report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from donewhen.foundation.errors import DonewhenError
from donewhen.judging.guidance import Guidance
from donewhen.judging.judge import Judge
from donewhen.judging.mission import Mission
from donewhen.judging.verdict import Verdict
from donewhen.learning.after.report_building import cost_row, learned_from
from donewhen.learning.after.report_data import Baseline, BaselineName, LearningReport, PartSizes, RuleRow, SplitSizes
from donewhen.learning.after.report_notes import with_notes
from donewhen.learning.measuring.keyed_baseline import word_count_baseline_by_key
from donewhen.learning.measuring.metrics import mcnemar, measure
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.measuring.word_baseline import Learn, majority_baseline, out_of_fold_predictions
from donewhen.models.metered import MeteredModel
from donewhen.models.roles import Binary


async def audit_judge(
    mission: Mission, guidance: Guidance, asking: MeteredModel, advance: Callable[[Verdict], None] = lambda _: None
) -> LearningReport:
    """Judge every labelled ticket of a mission. Nothing is learned from any here; what was before, a note says."""
    book = TicketReader(mission)
    began = mission.clock.monotonic()
    counts: Counter[tuple[Binary, Binary | None]] = Counter()
    wrong: list[bool] = []
    votes = 0
    malformed: dict[str, int] = {}
    stream = Judge(mission, guidance, asking, reasons=asking.reads_reasons).stream(
        book.tickets([member.key for member in book.members])
    )
    try:
        async for verdict in stream:
            assert verdict.label is not None  # noqa: S101 - the book holds labelled tickets
            counts[verdict.label, verdict.verdict] += 1
            wrong.append(verdict.label != verdict.verdict)
            votes += len(verdict.answers)
            for vote, _ in verdict.answers:
                if vote not in ("pass", "fail"):
                    malformed[vote] = malformed.get(vote, 0) + 1
            advance(verdict)
    except DonewhenError:
        # Nothing more will be asked; what is being answered is paid for.
        await asking.settled()
        raise
    finally:
        await stream.aclose()
        await asking.aclose()
    spent: dict[str, Any] = {**vars(asking.meter), "seconds": round(mission.clock.monotonic() - began, 3)}
    labels = [member.label for member in book.members]
    every = PartSizes(
        passes=labels.count("pass"),
        fails=labels.count("fail"),
        clusters=len({member.cluster for member in book.members}),
        hash=book.hash,
    )
    return with_notes(
        LearningReport(
            mission=mission.name,
            run="audit",
            model=asking.name,
            status="audit",
            finished_at=mission.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            seed=mission.settings.seed,
            splits=SplitSizes(
                test=every, test_learned_from=learned_from(guidance, (member.key for member in book.members))
            ),
            before=measure(counts.elements()),
            guidance_before=guidance.step,
            baselines=_baselines(book, wrong),
            rules=tuple(RuleRow(key=key, text=text) for key, text in guidance.rules.items()),
            votes=votes,
            malformed=malformed,
            cost=cost_row(spent, mission),
        )
    )


def _baselines(book: TicketReader, wrong: list[bool]) -> tuple[Baseline, ...]:
    """Each ticket by what the tickets of other clusters say."""
    tickets = [(member.key, member.label, member.cluster) for member in book.members]
    learners: dict[BaselineName, Learn] = {
        "majority": majority_baseline,
        "word_counts": word_count_baseline_by_key(book),
    }
    found = []
    for name, learn in learners.items():
        said = list(zip((label for _, label, _ in tickets), out_of_fold_predictions(tickets, learn), strict=True))
        against = mcnemar([label != verdict for label, verdict in said], wrong)
        found.append(Baseline(name=name, measures=measure(said), against=against))
    return tuple(found)
