"""Majority vote over the well-formed answers to a ticket. A tie is a fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.judging.answer import JudgeAnswer, MalformedAnswer


class Vote(NamedTuple):
    """The result of a vote. Malformed answers are counted, but don't vote."""

    passes: int
    fails: int
    malformed: int
    verdict: Binary | None
    """None if no answer was well formed."""
    strength: float
    """The majority's share of the well-formed answers."""
    reason: str
    margin: float | None

    @property
    def contradicts(self) -> bool:
        """Whether both verdicts occur."""
        return self.passes > 0 and self.fails > 0


def count_votes(answers: Sequence[JudgeAnswer | MalformedAnswer]) -> Vote:
    """Count the votes."""
    good = [answer for answer in answers if isinstance(answer, JudgeAnswer)]
    passes = sum(answer.verdict == "pass" for answer in good)
    fails = len(good) - passes
    malformed = len(answers) - len(good)
    if not good:
        return Vote(0, 0, malformed, None, 0.0, "", None)
    verdict: Binary = "pass" if passes > fails else "fail"
    chosen = next(answer for answer in good if answer.verdict == verdict)
    margins = [answer.margin for answer in good if answer.margin is not None]
    margin = sum(margins) / len(margins) if margins else None
    return Vote(passes, fails, malformed, verdict, max(passes, fails) / len(good), chosen.reason, margin)
