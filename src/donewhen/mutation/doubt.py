"""How much doubt there is about code whose tests pass: three signs, added up. Pure.

The weights were fitted once (logistic regression, standardised signs) on half of the tasks of 772 small solutions
with passing tests, of which 126 are wrong; ``make bench-strength`` prints what they are worth on the other half. They
say how one piece of work compares with others of that kind, and nothing about what the tests do not run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class CodeSigns:
    """What was counted about changed code and its tests."""

    possible: int
    """The small changes that the code allows: how many places there are for a mistake."""
    tried: int
    unnoticed: int
    """The tried changes that no test noticed, and that give another answer to some input near those of the tests."""
    large: int = 0
    """Inputs that are much larger than those of the tests."""
    large_failing: int = 0
    """Those of them that end in an error."""


@dataclass(frozen=True)
class Sign:
    """One sign, how it is standardised, and its weight."""

    mean: float
    deviation: float
    weight: float

    def points(self, value: float) -> float:
        return self.weight * (value - self.mean) / self.deviation


PLACES = Sign(2.103, 0.791, 0.480)
UNNOTICED = Sign(0.119, 0.211, 0.248)
LARGE = Sign(0.038, 0.173, 0.237)
STRONG_BELOW = 0.42
"""Below this, a probe found little to doubt: four of five right solutions are, on the tasks that were fitted."""


def sign_values(signs: CodeSigns) -> tuple[float, float, float]:
    """The values of the three signs."""
    places = math.log1p(signs.possible)
    unnoticed = math.sqrt(signs.unnoticed / signs.tried) if signs.tried else 0.0
    large = signs.large_failing / signs.large if signs.large else 0.0
    return places, unnoticed, large


def doubt(signs: CodeSigns) -> float:
    """The doubt: 0 on average, and more is worse."""
    values = zip((PLACES, UNNOTICED, LARGE), sign_values(signs), strict=True)
    return sum(sign.points(value) for sign, value in values)
