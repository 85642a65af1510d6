"""Agreement of a judge with people over the newest verdicts, and an alarm when it is low."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from donewhen.judging.labels import Label, read_label_log
from donewhen.judging.mission import Mission
from donewhen.learning.measuring.metrics import Estimate, wilson


class Point(NamedTuple):
    """Agreement over the window that ends with this label."""

    number: int
    at: str
    share: float
    of: int
    guidance_step: int


class Drift(NamedTuple):
    """Agreement of judge and people over time."""

    points: tuple[Point, ...]
    window: int
    threshold: float
    now: Estimate | None
    """Over the newest window."""
    undecided: int
    """Labels of tickets on which the judge did not decide; they are not compared."""

    @property
    def alarm(self) -> bool:
        """Whether agreement is too low. It needs at least half a window of labels; fewer would be chance."""
        return self.now is not None and self.now.of * 2 >= self.window and self.now.value < self.threshold


def judge_drift(mission: Mission) -> Drift:
    """Return the agreement of a mission's judge with people's labels, in the order of the labels."""
    settings = mission.settings.manual_review
    labels = read_label_log(mission.folder)
    compared = [
        (entry, entry.said.verdict == entry.label) for entry in labels if entry.said is not None and entry.said.decided
    ]
    recent: deque[bool] = deque(maxlen=settings.drift_window)
    points: list[Point] = []
    for number, (label, same) in enumerate(compared, 1):
        recent.append(same)
        points.append(Point(number, label.at, sum(recent) / len(recent), len(recent), _step(label)))
    undecided = sum(entry.said is not None and not entry.said.decided for entry in labels)
    now = wilson(sum(recent), len(recent))
    return Drift(tuple(points), settings.drift_window, settings.alarm_below, now, undecided)


def _step(label: Label) -> int:
    return 0 if label.said is None else label.said.guidance_step
