"""Whether a judge still says what people say: agreement over the newest verdicts, and an alarm where it is low."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from donewhen.judging.labels import Label, read_label_log
from donewhen.judging.mission import Mission
from donewhen.learning.measuring.metrics import Estimate, wilson


class Point(NamedTuple):
    """Agreement over the window that ends with one label."""

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
    """Labels of tickets that the judge had left to people; they say nothing about its verdicts."""

    @property
    def alarm(self) -> bool:
        """Whether agreement is too low. Half a window has to be full: before, it is chance."""
        return self.now is not None and self.now.of * 2 >= self.window and self.now.value < self.threshold


def judge_drift(mission: Mission) -> Drift:
    """The drift of a mission's judge, from what people have said about its verdicts, in the order in which they did."""
    settings = mission.settings.manual_review
    labels = read_label_log(mission.folder)
    compared = [(one, one.said.verdict == one.label) for one in labels if one.said is not None and one.said.decided]
    recent: deque[bool] = deque(maxlen=settings.drift_window)
    points: list[Point] = []
    for number, (label, same) in enumerate(compared, 1):
        recent.append(same)
        points.append(Point(number, label.at, sum(recent) / len(recent), len(recent), _step(label)))
    undecided = sum(one.said is not None and not one.said.decided for one in labels)
    now = wilson(sum(recent), len(recent))
    return Drift(tuple(points), settings.drift_window, settings.alarm_below, now, undecided)


def _step(label: Label) -> int:
    return 0 if label.said is None else label.said.guidance_step
