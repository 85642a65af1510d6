"""The plots about a judge that reports and served pages share: how it learns, and how it agrees with people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from donewhen.reports import plots
from donewhen.review.judge_drift import Drift

_MAX_POINTS = 200


class EpochPoint(NamedTuple):
    """The accuracies of one epoch; None where they are not measured yet."""

    number: int
    train: float | None
    before: float | None
    """On validation tickets, before the epoch."""
    after: float | None
    changes: str = ""
    """How many changes were accepted."""


def learning_curve(epochs: Sequence[EpochPoint]) -> str:
    """Return a plot of the accuracy after each epoch; empty if there are none."""
    if not epochs:
        return ""
    # An epoch begins with judging the training tickets, so its training accuracy is the result of the epochs before it.
    training = [*(epoch.train for epoch in epochs), None]
    validation = [epochs[0].before, *(epoch.after for epoch in epochs)]
    lines = [plots.PlotLine("training", training, "then"), plots.PlotLine("validation", validation, "now")]
    numbers = [epochs[0].number - 1, *(epoch.number for epoch in epochs)]
    return plots.curve(
        "Accuracy after each epoch, with changes accepted", numbers, lines, ["", *(epoch.changes for epoch in epochs)]
    )


def drift_plot(drift: Drift) -> str:
    """Return a plot of the agreement of judge and people, with the alarm threshold; empty if there are no points."""
    points = drift.points[-_MAX_POINTS:]
    if not points:
        return ""
    lines = [
        plots.PlotLine("agreement", [point.share for point in points], "bad" if drift.alarm else "now"),
        plots.PlotLine("alarm below", [drift.threshold] * len(points), "warn"),
    ]
    return plots.curve(f"Judge and people, over {drift.window} verdicts", [point.number for point in points], lines)
