"""Trials: a change must prove itself on tickets that were not used to propose it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.judging.guidance import Op
from donewhen.judging.mission_settings import Trial
from donewhen.learning.measuring.metrics import paired_bootstrap

TrialReason = Literal[
    "better", "no_worse", "too_few_tickets", "more_errors", "more_false_releases", "not_better", "not_sure"
]

MEANINGS: dict[TrialReason, str] = {
    "better": "The added rule lowers the error on unseen tickets, without more false releases.",
    "no_worse": "The change raises neither the error nor the false releases on unseen tickets.",
    "too_few_tickets": "There are fewer unseen tickets than a trial needs.",
    "more_errors": "The change raises the error on unseen tickets.",
    "more_false_releases": "The change causes more false releases on unseen tickets.",
    "not_better": "The added rule does not lower the error on unseen tickets.",
    "not_sure": "The error is lower, but not in enough of the resamples.",
}


class LabelledVerdict(NamedTuple):
    """A ticket's label and the verdict on the ticket."""

    label: Binary
    verdict: Binary | None

    @property
    def wrong(self) -> bool:
        return self.verdict != self.label

    @property
    def false_release(self) -> bool:
        return self.label == "fail" and self.verdict == "pass"


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
    share = 0.0
    if keys and op == "add":
        share = paired_bootstrap(*wrong, settings.resamples, seed).share_lower
    reason = _reason(op, len(keys), errors, released, share, settings)
    return TrialResult(
        reason in ("better", "no_worse"),
        reason,
        len(keys),
        *errors,
        *released,
        round(share, 4),
        tuple(key for key in keys if before[key].wrong and not after[key].wrong),
        tuple(key for key in keys if after[key].wrong and not before[key].wrong),
    )


def _reason(
    op: Op, tickets: int, errors: tuple[int, int], released: tuple[int, int], share: float, settings: Trial
) -> TrialReason:
    if tickets < settings.min_tickets:
        return "too_few_tickets"
    if errors[1] > errors[0]:
        return "more_errors"
    if released[1] > released[0] + settings.max_more_false_releases:
        return "more_false_releases"
    if op != "add":
        return "no_worse"
    if errors[0] - errors[1] < settings.min_gain:
        return "not_better"
    return "better" if share >= settings.confidence else "not_sure"
