"""The conditions that best separate the studied cases: whether a case shows any sign of its label."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.candidates import Candidate, CaseSets
from donewhen.models.contrast.rules import Condition, condition_subjects

CAUTION = 2.0
"""Standard errors subtracted from a condition that was picked out of thousands."""
BALANCE = 0.5
"""Extra weight of the rarer label: 0 for none, 1 for equal total weights."""
ALIKE = 0.6
"""Two sets with more than this share in common are nearly the same."""
_WEIGHED = 600
_LEADERS = 40


class Sign(NamedTuple):
    """A condition, the cases for which it holds, and its worth."""

    condition: Condition
    mask: int
    worth: float


def best_signs(candidates: Sequence[Candidate], field: CaseSets, verdict: Binary) -> list[Sign]:
    """Return the best single conditions for a verdict, all with different subjects and cases."""
    wanted, other = (field.failing, field.passing) if verdict == "fail" else (field.passing, field.failing)
    if not wanted or not other:
        return []
    half = field.size / 2
    gain, loss = (half / wanted.bit_count()) ** BALANCE, (half / other.bit_count()) ** BALANCE
    rough = sorted(
        (loss * (candidate.mask & other).bit_count() - gain * (candidate.mask & wanted).bit_count(), number)
        for number, candidate in enumerate(candidates)
    )
    chosen = (candidates[number] for _, number in rough[:_WEIGHED])
    fine = [
        Sign(candidate.condition, candidate.mask, _worth(candidate.mask, field, wanted, gain, loss))
        for candidate in chosen
    ]
    kept: list[Sign] = []
    used_subjects: set[str] = set()
    for sign in sorted(fine, key=lambda sign: -sign.worth):
        subjects = condition_subjects(sign.condition)
        if sign.worth > 0 and not subjects & used_subjects and not _is_known(sign.mask, kept):
            kept.append(sign)
            used_subjects |= subjects
            if len(kept) == _LEADERS:
                break
    return kept


def nearly_same(first: int, second: int) -> bool:
    """Whether two sets are nearly the same."""
    return (first & second).bit_count() > ALIKE * (first | second).bit_count()


def _is_known(mask: int, kept: Iterable[Sign]) -> bool:
    return any(nearly_same(mask, other.mask) for other in kept)


def _worth(mask: int, field: CaseSets, wanted: int, gain: float, loss: float) -> float:
    """The gain of a condition, minus a margin for chance. Chance is estimated by cluster."""
    total = squares = 0.0
    for cluster in field.clusters:
        members = mask & cluster
        here = gain * (members & wanted).bit_count() - loss * (members & ~wanted).bit_count()
        total += here
        squares += here * here
    return total - CAUTION * math.sqrt(squares)
