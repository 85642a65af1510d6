"""A judge that learns in writing: made-up reports, real learning, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from donewhen.demo.example_mission import NOISE, RULES, make_mission
from donewhen.demo.job_story import Line
from donewhen.judging.guidance import FIRST
from donewhen.judging.mission import read_mission
from donewhen.learning.learn_mission import learn
from donewhen.learning.metrics import Estimate
from donewhen.learning.summary import LearningReport
from donewhen.models.registry import open_model

COUNT = 300


class Learnt(NamedTuple):
    """How the story ended."""

    report: LearningReport
    better: bool


def play_judge(folder: Path, tell: Callable[[Line], None]) -> Learnt:
    """Make the mission, learn, and tell what came of it."""
    make_mission(folder, COUNT)
    tell(
        Line(
            "people",
            f"{COUNT} reports of agents, each labelled pass or fail. (They are made up, by three rules "
            f"that nobody tells the judge, and {NOISE:.0%} of the labels are wrong on purpose.)",
            good=True,
        )
    )
    tell(Line("judge", "I have one rule: unless a rule says otherwise, the verdict is pass."))
    report = learn(read_mission(folder), open_model("contrast")).report
    before, now = report.before, report.now
    tell(
        Line(
            "donewhen",
            f"✗ On {before.confusion.tickets} reports that are kept back, the judge is right in "
            f"{_percent(before.accuracy)}.",
            good=False,
        )
    )
    for row in report.rules:
        if row.key[0] == "G" and row.key != FIRST:
            worth = f"{len(row.evidence)} tickets as evidence; without it {row.hits - row.misses} more mistakes"
            tell(Line("learned", f"{row.key}: {row.text} ({worth})"))
    refused = sum(not one.accepted for one in report.trials)
    tell(
        Line(
            "donewhen",
            f"✓ {len(report.trials) - refused} changes stood their trial on unseen reports, "
            f"{refused} did not and were not made.",
            good=True,
        )
    )
    found = report.comparison
    better = found is not None and found.p < 0.05 and found.better > found.worse
    p = "" if found is None else f" (McNemar p = {found.p:.1g})"
    tell(
        Line(
            "donewhen",
            f"{'✓' if better else '✗'} On the reports that were kept back: {_percent(before.accuracy)} → "
            f"{_percent(now.accuracy)}{p}; bad work let through: {_percent(before.false_release)} → "
            f"{_percent(now.false_release)}.",
            good=better,
        )
    )
    noisy = report.queued("suspected_label_noise")
    if noisy:
        tell(
            Line(
                "donewhen",
                f"! {len(noisy)} labels look wrong, and are for people to settle: "
                f"{', '.join(one.ticket_key for one in noisy[:3])} …",
                good=True,
            )
        )
    tell(Line("in truth", "; ".join(RULES) + "."))
    return Learnt(report, better)


def _percent(found: Estimate | None) -> str:
    return "-" if found is None else f"{found.value:.0%}"
