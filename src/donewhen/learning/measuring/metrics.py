"""Metrics of a judge against human labels, with 95 % intervals.

Positive means *pass*. A missing verdict (no well-formed answer) counts as wrong and is counted separately: it is
neither a release nor a block, and it is never skipped. Metrics that the tickets don't allow to compute are None.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from donewhen.foundation.binary import Binary

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """An estimate from ``of`` tickets, with its 95 % interval."""

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
    """All metrics of a judge on a set of tickets."""

    confusion: Confusion
    accuracy: Estimate | None
    kappa: Estimate | None
    """Agreement beyond chance; None if only one label occurs."""
    tpr: Estimate | None
    """Share of the tickets labelled pass that were judged pass."""
    tnr: Estimate | None
    """Share of the tickets labelled fail that were judged fail."""
    false_release: Estimate | None
    """Share of the tickets labelled fail that were judged pass."""
    false_block: Estimate | None
    """Share of the tickets labelled pass that were judged fail."""
    base_rate: Estimate | None
    """The share of tickets labelled pass."""


@dataclass(frozen=True)
class McNemar:
    """McNemar's test: two judges on the same tickets."""

    better: int
    """Tickets that only the second judge has right."""
    worse: int
    """Tickets that only the first judge has right."""
    p: float
    """Exact two-sided p-value."""


@dataclass(frozen=True)
class PairedResult:
    """The bootstrapped change of the error on the same tickets. Below 0 is better."""

    share_lower: float
    """Share of the resamples in which the error is lower after the change."""
    share_no_higher: float
    mean_difference: float
    """The error rate after the change minus the error rate before."""
    low: float
    high: float


def count_confusion(judged: Iterable[tuple[Binary, Binary | None]]) -> Confusion:
    """Count pairs of (label, verdict)."""
    counts = dict.fromkeys(Confusion.__dataclass_fields__, 0)
    for label, verdict in judged:
        if verdict is None:
            counts[f"invalid_{label}"] += 1
        else:
            counts[f"{'true' if verdict == label else 'false'}_{verdict}"] += 1
    return Confusion(**counts)


def measure(judged: Iterable[tuple[Binary, Binary | None]]) -> Measures:
    """Compute all metrics from pairs of (label, verdict)."""
    return measures_of(count_confusion(judged))


def measures_of(counts: Confusion) -> Measures:
    """Compute all metrics from the counts."""
    return Measures(
        confusion=counts,
        accuracy=wilson(counts.right, counts.tickets),
        kappa=cohens_kappa(counts),
        tpr=wilson(counts.true_pass, counts.passes),
        tnr=wilson(counts.true_fail, counts.fails),
        false_release=wilson(counts.false_pass, counts.fails),
        false_block=wilson(counts.false_fail, counts.passes),
        base_rate=wilson(counts.passes, counts.tickets),
    )


def wilson(hits: int, of: int) -> Estimate | None:
    """A share with Wilson's score interval, which is also valid for few tickets and near 0 and 1."""
    if not 0 <= hits <= of:
        raise ValueError(f"{hits} of {of} is not a valid share")
    if of == 0:
        return None
    share, square = hits / of, Z95 * Z95
    center = (share + square / (2 * of)) / (1 + square / of)
    margin = Z95 / (1 + square / of) * sqrt(share * (1 - share) / of + square / (4 * of * of))
    # At the ends the bounds are exact, and rounding must not move them past the share.
    low = 0.0 if hits == 0 else max(0.0, center - margin)
    high = 1.0 if hits == of else min(1.0, center + margin)
    return Estimate(share, low, high, of)


def cohens_kappa(counts: Confusion) -> Estimate | None:
    """Cohen's kappa. A missing verdict is a third category that no label has.

    The interval comes from Wilson's interval of the agreement, with chance agreement taken as fixed. Cohen's standard
    error and resampling would give zero width if all of a few tickets are right.
    """
    total = counts.tickets
    agreement = wilson(counts.right, total)
    if agreement is None or not counts.passes or not counts.fails:
        return None
    judged_pass, judged_fail = counts.true_pass + counts.false_pass, counts.true_fail + counts.false_fail
    chance = (counts.passes * judged_pass + counts.fails * judged_fail) / (total * total)
    observed = (agreement.value, agreement.low, agreement.high)
    value, low, high = ((share - chance) / (1 - chance) for share in observed)
    return Estimate(value, max(-1.0, low), high, total)


def mcnemar(first_wrong: Sequence[bool], second_wrong: Sequence[bool]) -> McNemar | None:
    """Compare two judges on the same tickets, in the same order; None without tickets."""
    _require_same_length(first_wrong, second_wrong)
    if not first_wrong:
        return None
    better = sum(first and not second for first, second in zip(first_wrong, second_wrong, strict=True))
    worse = sum(second and not first for first, second in zip(first_wrong, second_wrong, strict=True))
    differing = better + worse
    # Each binomial coefficient is computed from the previous: with thousands of tickets they are long numbers.
    tail, ways = 0, 1
    for k in range(min(better, worse) + 1):
        tail += ways
        ways = ways * (differing - k) // (k + 1)
    return McNemar(better, worse, min(1.0, 2 * tail / 2**differing))


def paired_bootstrap(
    before_wrong: Sequence[float],
    after_wrong: Sequence[float],
    resamples: int,
    seed: int,
    clusters: Sequence[str] = (),
) -> PairedResult:
    """Bootstrap the change of the error: how much it depends on the choice of tickets.

    With ``clusters``, whole clusters are drawn, because the tickets of a cluster are alike.
    """
    _require_same_length(before_wrong, after_wrong)
    if not before_wrong or resamples < 1:
        raise ValueError("paired_bootstrap needs at least one ticket and one resample")
    changes = [after - before for before, after in zip(before_wrong, after_wrong, strict=True)]
    count = len(changes)
    by_cluster: dict[str, float] = {}
    for number, change in enumerate(changes):
        name = clusters[number] if clusters else str(number)
        by_cluster[name] = by_cluster.get(name, 0) + change
    drawn = list(by_cluster.values())
    draw = random.Random(seed).choices
    sums = sorted(sum(draw(drawn, k=len(drawn))) for _ in range(resamples))
    return PairedResult(
        share_lower=sum(total < 0 for total in sums) / resamples,
        share_no_higher=sum(total <= 0 for total in sums) / resamples,
        mean_difference=sum(changes) / count,
        low=sums[round(0.025 * (resamples - 1))] / count,
        high=sums[round(0.975 * (resamples - 1))] / count,
    )


def corrected_prevalence(judged_pass: int, of: int, tpr: Estimate | None, tnr: Estimate | None) -> Estimate | None:
    """The true share of good work, corrected for the judge's known error rates: Rogan and Gladen's estimate.

    The interval is Lang and Reiczigel's (2014), which accounts for the error rates being estimates. None if the judge
    is no better than chance.
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


def _require_same_length(first: Sequence[float], second: Sequence[float]) -> None:
    if len(first) != len(second):
        raise ValueError(f"can't compare {len(first)} tickets with {len(second)}")
