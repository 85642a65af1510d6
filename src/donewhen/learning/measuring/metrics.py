"""How good is a judge? Counts against people's labels, each with what it could be by chance.

Positive means *pass*. A verdict that is missing, because no answer was well formed, is wrong and is counted apart: it
is neither a release nor a block, and it is never left out. What can't be said from the tickets that are there is None.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from donewhen.models.roles import Binary

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A number from so many tickets, with its 95 % interval."""

    value: float
    low: float
    high: float
    of: int


@dataclass(frozen=True)
class Confusion:
    """Verdicts against labels."""

    true_pass: int = 0
    false_pass: int = 0
    """Judged pass, labelled fail: a false release."""
    true_fail: int = 0
    false_fail: int = 0
    """Judged fail, labelled pass: a false block."""
    invalid_pass: int = 0
    """No verdict, labelled pass."""
    invalid_fail: int = 0
    """No verdict, labelled fail."""

    @property
    def passes(self) -> int:
        """Tickets labelled pass."""
        return self.true_pass + self.false_fail + self.invalid_pass

    @property
    def fails(self) -> int:
        """Tickets labelled fail."""
        return self.true_fail + self.false_pass + self.invalid_fail

    @property
    def tickets(self) -> int:
        return self.passes + self.fails

    @property
    def right(self) -> int:
        return self.true_pass + self.true_fail

    @property
    def wrong(self) -> int:
        return self.tickets - self.right

    @property
    def invalid(self) -> int:
        return self.invalid_pass + self.invalid_fail


@dataclass(frozen=True)
class Measures:
    """Everything that is said of a judge on some tickets."""

    confusion: Confusion
    accuracy: Estimate | None
    kappa: Estimate | None
    """Agreement beyond chance; None where people gave one label only."""
    tpr: Estimate | None
    """Of the tickets labelled pass, those judged pass."""
    tnr: Estimate | None
    """Of the tickets labelled fail, those judged fail."""
    false_release: Estimate | None
    """Of the tickets labelled fail, those judged pass."""
    false_block: Estimate | None
    """Of the tickets labelled pass, those judged fail."""
    base_rate: Estimate | None
    """The share of tickets labelled pass."""


@dataclass(frozen=True)
class McNemar:
    """Two judges on the same tickets: where they differ, and how likely that is among equals."""

    better: int
    """Tickets that only the second has right."""
    worse: int
    """Tickets that only the first has right."""
    p: float
    """Exact and two-sided."""


@dataclass(frozen=True)
class PairedResult:
    """A change of the error on the same tickets, with what resampling them makes of it. Less than 0 is better."""

    share_lower: float
    """In this share of the resamples, the error is lower after the change."""
    share_no_higher: float
    mean_difference: float
    """The error after the change less the error before, as a share of the tickets."""
    low: float
    high: float


def count_confusion(judged: Iterable[tuple[Binary, Binary | None]]) -> Confusion:
    """Count (label, verdict)."""
    counts = dict.fromkeys(Confusion.__dataclass_fields__, 0)
    for label, verdict in judged:
        if verdict is None:
            counts[f"invalid_{label}"] += 1
        else:
            counts[f"{'true' if verdict == label else 'false'}_{verdict}"] += 1
    return Confusion(**counts)


def measure(judged: Iterable[tuple[Binary, Binary | None]]) -> Measures:
    """All measures of (label, verdict)."""
    return measures_of(count_confusion(judged))


def measures_of(found: Confusion) -> Measures:
    """All measures, from the counts."""
    return Measures(
        confusion=found,
        accuracy=wilson(found.right, found.tickets),
        kappa=cohens_kappa(found),
        tpr=wilson(found.true_pass, found.passes),
        tnr=wilson(found.true_fail, found.fails),
        false_release=wilson(found.false_pass, found.fails),
        false_block=wilson(found.false_fail, found.passes),
        base_rate=wilson(found.passes, found.tickets),
    )


def wilson(hits: int, of: int) -> Estimate | None:
    """A share with Wilson's score interval, which holds for few tickets and near 0 and 1, too."""
    if not 0 <= hits <= of:
        raise ValueError(f"{hits} of {of} is no share")
    if of == 0:
        return None
    share, square = hits / of, Z95 * Z95
    middle = (share + square / (2 * of)) / (1 + square / of)
    reach = Z95 / (1 + square / of) * sqrt(share * (1 - share) / of + square / (4 * of * of))
    # At the ends the bounds are exact, and rounding must not move them past the share.
    low = 0.0 if hits == 0 else max(0.0, middle - reach)
    high = 1.0 if hits == of else min(1.0, middle + reach)
    return Estimate(share, low, high, of)


def cohens_kappa(found: Confusion) -> Estimate | None:
    """Cohen's kappa. A missing verdict is a third category that no label is in.

    The interval is that of the agreement, by Wilson, with chance agreement taken as it is: Cohen's own standard error,
    without the zero width that it has, as resampling has, where a few tickets are all right.
    """
    total = found.tickets
    agreement = wilson(found.right, total)
    if agreement is None or not found.passes or not found.fails:
        return None
    judged_pass, judged_fail = found.true_pass + found.false_pass, found.true_fail + found.false_fail
    chance = (found.passes * judged_pass + found.fails * judged_fail) / (total * total)
    value, low, high = ((one - chance) / (1 - chance) for one in (agreement.value, agreement.low, agreement.high))
    return Estimate(value, max(-1.0, low), high, total)


def mcnemar(first_wrong: Sequence[bool], second_wrong: Sequence[bool]) -> McNemar | None:
    """Compare two judges on the same tickets, in the same order."""
    _same_tickets(first_wrong, second_wrong)
    if not first_wrong:
        return None
    better = sum(one and not two for one, two in zip(first_wrong, second_wrong, strict=True))
    worse = sum(two and not one for one, two in zip(first_wrong, second_wrong, strict=True))
    differing = better + worse
    # Binomial coefficients, each from the one before: with thousands of tickets they are long numbers.
    tail, ways = 0, 1
    for k in range(min(better, worse) + 1):
        tail += ways
        ways = ways * (differing - k) // (k + 1)
    return McNemar(better, worse, min(1.0, 2 * tail / 2**differing))


def paired_bootstrap(
    before_wrong: Sequence[bool], after_wrong: Sequence[bool], resamples: int, seed: int
) -> PairedResult:
    """Resample the tickets to see how far a change of the error is owed to which of them were there."""
    _same_tickets(before_wrong, after_wrong)
    if not before_wrong or resamples < 1:
        raise ValueError("there is nothing to resample")
    changes = [int(after) - int(before) for before, after in zip(before_wrong, after_wrong, strict=True)]
    count = len(changes)
    draw = random.Random(seed).choices
    sums = sorted(sum(draw(changes, k=count)) for _ in range(resamples))
    return PairedResult(
        share_lower=sum(one < 0 for one in sums) / resamples,
        share_no_higher=sum(one <= 0 for one in sums) / resamples,
        mean_difference=sum(changes) / count,
        low=sums[round(0.025 * (resamples - 1))] / count,
        high=sums[round(0.975 * (resamples - 1))] / count,
    )


def corrected_prevalence(judged_pass: int, of: int, tpr: Estimate | None, tnr: Estimate | None) -> Estimate | None:
    """How many really pass, when a judge whose errors are known passes so many: Rogan and Gladen's estimate.

    The interval is Lang and Reiczigel's (2014), which allows for the errors being estimates themselves. None where the
    judge is no better than chance: then its verdicts say nothing.
    """
    if tpr is None or tnr is None or not of or tpr.value + tnr.value <= 1:
        return None
    share = judged_pass / of
    value = (share + tnr.value - 1) / (tpr.value + tnr.value - 1)
    square = Z95 * Z95
    seen = (judged_pass + square / 2) / (of + square)
    hit, clear = (tpr.value * tpr.of + 1) / (tpr.of + 2), (tnr.value * tnr.of + 1) / (tnr.of + 2)
    gain = hit + clear - 1
    if gain <= 0:
        return None
    rate = (seen + clear - 1) / gain
    of_hit, of_clear = hit * (1 - hit) / (tpr.of + 2), clear * (1 - clear) / (tnr.of + 2)
    shift = 2 * square * (rate * of_hit - (1 - rate) * of_clear)
    error = sqrt(seen * (1 - seen) / (of + square) + rate * rate * of_hit + (1 - rate) ** 2 * of_clear) / gain
    bounds = (rate + shift - Z95 * error, rate + shift + Z95 * error)
    value, low, high = (min(1.0, max(0.0, bound)) for bound in (value, *bounds))
    return Estimate(value, min(low, value), max(high, value), of)


def _same_tickets(first: Sequence[bool], second: Sequence[bool]) -> None:
    if len(first) != len(second):
        raise ValueError(f"{len(first)} tickets can't be compared with {len(second)}")
