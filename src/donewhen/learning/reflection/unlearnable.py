"""Rows of the stop-gradient queue: tickets from which nothing was learned, for people to review."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from donewhen.foundation.binary import Binary

ReasonCode = Literal["reflection_no_evidence_after_gt", "budget_exhausted", "suspected_label_noise", "policy_question"]

MEANINGS: dict[ReasonCode, str] = {
    "reflection_no_evidence_after_gt": "Nothing in the ticket supports its label, so nothing can be learned from it.",
    "budget_exhausted": "The retries or the budget were used up before an answer covered the ticket.",
    "suspected_label_noise": "All votes contradict the label in every epoch, and so do word counts.",
    "policy_question": "The labels contradict each other: decide on a rule, and label accordingly.",
}


class QueuedTicket(NamedTuple):
    """One row of the queue."""

    ticket_key: str
    group_id: str
    mission: str
    gt_label: Binary
    pred_verdict: Binary | None
    pred_reason: str
    reason_code: ReasonCode
    epoch: int
    reflection_cycle: str
    reflection_id: str
    uncertainty_note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()
