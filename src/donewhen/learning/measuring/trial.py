"""Trials: a change must prove itself on tickets that were not used to propose it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log1p, sqrt
from typing import Any, Literal, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.judging.guidance import Op
from donewhen.judging.mission_settings import Trial
from donewhen.learning.measuring.metrics import paired_bootstrap

TrialReason = Literal[
    "better",
    "better_scores",
    "no_worse",
    "too_few_tickets",
    "more_errors",
    "more_false_releases",
    "not_better",
    "not_sure",
    "trivial",
]

MEANINGS: dict[TrialReason, str] = {
    "better": "The added rule lowers the error on unseen tickets, without more false releases.",
    "better_scores": "The added rule makes the labels more probable on unseen tickets, without more errors.",
    "no_worse": "The change raises neither the error nor the false releases on unseen tickets.",
    "too_few_tickets": "There are fewer unseen tickets than a trial needs.",
    "more_errors": "The change raises the error on unseen tickets.",
    "more_false_releases": "The change causes more false releases on unseen tickets.",
    "not_better": "The added rule does not lower the error on unseen tickets.",
    "not_sure": "The error is lower, but not in enough of the resamples.",
    "trivial": "A judge with the same verdict for every ticket would gain as much from the tickets that it changes.",
}


class LabelledVerdict(NamedTuple):
    """A ticket's label and the verdict on the ticket."""

    label: Binary
    verdict: Binary | None
    cluster: str = ""
    score: float | None = None
    """The sum of points, positive for pass; None if the model has no points."""

    @property
    def loss(self) -> float:
        """How improbable the label is by the points, of which two double the odds."""
        points = (self.score or 0.0) if self.label == "pass" else -(self.score or 0.0)
        return log1p(exp(-max(-_DEEPEST, min(_DEEPEST, points)) * _UNIT))

    @property
    def wrong(self) -> bool:
        return self.verdict != self.label

    @property
    def false_release(self) -> bool:
        return self.label == "fail" and self.verdict == "pass"


_UNIT = 0.34657359
"""Half the logarithm of 2."""
_DEEPEST = 60.0
_FIRST_RELEASES = 0.4
"""The part of the share of false releases allowed at adoption that the first rule that passes anything may use up."""
_CHANCE = 1.0
"""By how many standard deviations a rule has to choose better than chance if it beats no trivial judge yet."""


class TrialResult(NamedTuple):
    """The result of a trial: the guidance before and after a change."""

    accepted: bool
    reason: TrialReason
    tickets: int
    errors_before: int
    errors_after: int
    false_releases_before: int
    false_releases_after: int
    share_lower: float
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "fixed": list(self.fixed), "broken": list(self.broken)}


def run_trial(
    op: Op, before: Mapping[str, LabelledVerdict], after: Mapping[str, LabelledVerdict], settings: Trial, seed: int
) -> TrialResult:
    """Compare the verdicts before and after a change on the same tickets."""
    keys: Sequence[str] = sorted(before)
    wrong = [before[key].wrong for key in keys], [after[key].wrong for key in keys]
    errors = sum(wrong[0]), sum(wrong[1])
    released = (
        sum(before[key].false_release for key in keys),
        sum(after[key].false_release for key in keys),
    )
    share = scores = 0.0
    clusters = [before[key].cluster or key for key in keys]
    if keys and op == "add":
        share = paired_bootstrap(*wrong, settings.resamples, seed, clusters).share_lower
        if all(judged[key].score is not None for judged in (before, after) for key in keys):
            losses = [before[key].loss for key in keys], [after[key].loss for key in keys]
            scores = paired_bootstrap(*losses, settings.resamples, seed, clusters).share_lower
    allowed = max(released[0] + settings.max_more_false_releases, _first_releases(op, before, settings))
    reason = _reason(op, len(keys), errors, share, settings, releases_more=released[1] > allowed)
    if reason == "better" and errors[1] >= _trivial_errors(before) and not _chooses(before, after):
        reason = "trivial"
    if reason in ("not_better", "not_sure") and scores >= settings.confidence_of_scores:
        reason = "better_scores"
    return TrialResult(
        reason in ("better", "better_scores", "no_worse"),
        reason,
        len(keys),
        *errors,
        *released,
        round(share, 4),
        tuple(key for key in keys if before[key].wrong and not after[key].wrong),
        tuple(key for key in keys if after[key].wrong and not before[key].wrong),
    )


def _first_releases(op: Op, before: Mapping[str, LabelledVerdict], settings: Trial) -> int:
    """How many false releases an added rule may cause where the judge before it passes nothing.

    Such a judge has no false release only because it blocks everything: compared with it, hardly any rule for pass
    could be learned. As soon as a judge passes anything, no rule may release more than it did.
    """
    if op != "add" or any(judged.verdict == "pass" for judged in before.values()):
        return 0
    return int(_FIRST_RELEASES * settings.max_false_release * _fails(before))


def _fails(judged: Mapping[str, LabelledVerdict]) -> int:
    return sum(verdict.label == "fail" for verdict in judged.values())


def _trivial_errors(judged: Mapping[str, LabelledVerdict]) -> int:
    """The errors of the better of the two judges that always say the same."""
    fails = _fails(judged)
    return min(fails, len(judged) - fails)


def _chooses(before: Mapping[str, LabelledVerdict], after: Mapping[str, LabelledVerdict]) -> bool:
    """Whether a change turns wrong verdicts more often than if it turned as many verdicts at random.

    A rule that applies to nearly every ticket lowers the error of a poor default without telling anything apart.
    """
    for verdict in ("pass", "fail"):
        pool = [key for key, judged in before.items() if judged.verdict == verdict]
        turned = [key for key in pool if after[key].verdict != verdict]
        wrong = sum(before[key].wrong for key in pool)
        if not turned or len(pool) < 2:
            continue
        share = wrong / len(pool)
        spread = sqrt(len(turned) * share * (1 - share) * (len(pool) - len(turned)) / (len(pool) - 1))
        if sum(before[key].wrong for key in turned) - len(turned) * share > _CHANCE * spread > 0:
            return True
    return False


def _reason(
    op: Op, tickets: int, errors: tuple[int, int], share: float, settings: Trial, *, releases_more: bool
) -> TrialReason:
    if tickets < settings.min_tickets:
        return "too_few_tickets"
    if errors[1] > errors[0]:
        return "more_errors"
    if releases_more:
        return "more_false_releases"
    if op != "add":
        return "no_worse"
    if errors[0] - errors[1] < settings.min_gain:
        return "not_better"
    return "better" if share >= settings.confidence else "not_sure"
